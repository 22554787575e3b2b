//! The web tools from the configuration: `search_fetch` always, `search_web` if a search service is configured.

use crate::app::failure::Failure;
use crate::app::vault::Credentials;
use lango_config::{SearchProviderConfig, SearchSettings};
use lango_core::{Tool, WebCache};
use lango_engine::SystemClock;
use lango_net::{Egress, PlainHttp, SeenLinks, Url};
use lango_web::{
    FetchParts, ProviderKind, Providers, SearchParts, SearchProvider, fetch_tool, search_tool,
};
use std::sync::Arc;

/// How to get a search service.
pub(super) const NO_PROVIDER: &str = "search_web needs a search service, for example \
     `search.providers.local.kind = \"searxng\"` with `search.providers.local.url`, or \
     `search.providers.brave.apiKeyEnv = \"BRAVE_API_KEY\"` (docs/web.md)";

/// What the tools are built from.
pub(super) struct Parts<'a> {
    pub settings: &'a SearchSettings,
    pub credentials: &'a Arc<Credentials>,
    /// The egress guard.
    pub egress: &'a Egress,
    /// The links that sessions have seen.
    pub links: &'a SeenLinks,
    pub cache: Arc<dyn WebCache>,
}

/// Creates the tools.
pub(super) fn tools(parts: Parts<'_>) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    let Parts {
        settings,
        credentials,
        egress,
        links,
        cache,
    } = parts;
    let mut tools = vec![fetch_tool(FetchParts {
        egress: egress.clone(),
        links: links.clone(),
        cache,
        clock: Arc::new(SystemClock),
    })];
    let services = providers(settings)?;
    if !services.is_empty() {
        let with_key = |(provider, key): (SearchProvider, Option<String>)| SearchProvider {
            key: key.map(|setting| credentials.handle(&setting)),
            ..provider
        };
        let services = services.into_iter().map(with_key).collect();
        tools.push(search_tool(SearchParts {
            providers: Providers::new(services, credentials.masks()),
            links: links.clone(),
            budgets: egress.budgets().clone(),
            clock: Arc::new(SystemClock),
        }));
    }
    Ok(tools)
}

/// Returns whether a search service is configured.
pub(super) fn is_set_up(settings: &SearchSettings) -> bool {
    !settings.providers.is_empty()
}

/// Describes the search services for `lango doctor`.
pub(super) fn describe(settings: &SearchSettings) -> String {
    match providers(settings) {
        Ok(providers) if providers.is_empty() => format!("none; {NO_PROVIDER}"),
        Ok(providers) => {
            let names = providers.iter();
            let names: Vec<String> = names
                .map(|(provider, _)| format!("{} ({})", provider.name, provider.kind))
                .collect();
            names.join(", ")
        }
        Err(failure) => failure.to_string(),
    }
}

/// Returns the services in the order in which they are tried, each with the setting of its key. Without
/// `search.order`: first instances of SearXNG, since they are the user's own, then the others, each group by name.
fn providers(settings: &SearchSettings) -> Result<Vec<(SearchProvider, Option<String>)>, Failure> {
    let mut all = Vec::new();
    for (name, config) in &settings.providers {
        all.push(provider(name, config)?);
    }
    if settings.order.is_empty() {
        all.sort_by_key(|(provider, _)| provider.kind != ProviderKind::SearXng);
        return Ok(all);
    }
    let mut ordered: Vec<(SearchProvider, Option<String>)> = Vec::new();
    for name in &settings.order {
        let is_named = |(provider, _): &&(SearchProvider, _)| provider.name == *name;
        let found = all.iter().find(is_named);
        let found = found.ok_or_else(|| {
            invalid_settings(format!(
                "`search.order` names `{name}`, but there is no `search.providers.{name}`"
            ))
        })?;
        if !ordered.iter().any(|one| is_named(&one)) {
            ordered.push(found.clone());
        }
    }
    Ok(ordered)
}

fn provider(
    name: &str,
    config: &SearchProviderConfig,
) -> Result<(SearchProvider, Option<String>), Failure> {
    let key = format!("search.providers.{name}");
    let kind = config.kind.or_else(|| name.parse().ok()).ok_or_else(|| {
        invalid_settings(format!(
            "`{key}.kind` is not set; it must be `searxng`, `brave`, `tavily` or `kagi`"
        ))
    })?;
    let default_url = kind.default_url().map(str::to_owned);
    let url = config.url.clone().or(default_url).ok_or_else(|| {
        invalid_settings(format!("`{key}.url` is not set; it must be the address of your SearXNG, such as `http://127.0.0.1:8888`"))
    })?;
    let default_key = kind.default_key_variable().map(str::to_owned);
    let key_variable = config.api_key_env.clone().or(default_key);
    let parsed = Url::parse(&url).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
    });
    let parsed = parsed.ok_or_else(|| {
        invalid_settings(format!("`{key}.url` is not an address that starts with `https://` or `http://` and has no password"))
    })?;
    if key_variable.is_some() && PlainHttp::LocalOnly.check(&parsed).is_err() {
        return Err(invalid_settings(format!(
            "`{key}.url` would send a key without encryption; use `https://`"
        )));
    }
    let provider = SearchProvider {
        name: name.to_owned(),
        kind,
        url,
        key: None,
    };
    Ok((provider, key_variable))
}

fn invalid_settings(message: String) -> Failure {
    Failure::config(message).next("see docs/web.md for an example")
}
