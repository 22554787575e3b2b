//! `search_fetch`: reads a web page through the egress guard and the cache.

use crate::freshness::{CachePolicy, cache_policy};
use crate::page::{self, FetchedPage};
use crate::show;
use lango_core::{
    CachedPage, Caller, Clock, Effect, Inspection, Risk, RuleSubject, SiteAccess, Timestamp, Tool,
    ToolDeclaration, ToolError, ToolOutput, WebCache,
};
use lango_net::{
    Egress, EgressError, FetchedResponse, HeaderMap, HeaderValue, SeenLinks, Url, header,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const SEARCH_FETCH: ToolDeclaration = ToolDeclaration {
    name: "search_fetch",
    description: "Reads a web page, PDF or text from an address as Markdown, without running its scripts. \
                  Long pages come in parts: continue with the `start` given at the end of a part.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: RuleSubject::Site,
};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The address, `http` or `https`.
    #[schemars(length(min = 1, max = 4096))]
    url: String,
    /// Where to continue in a long page.
    #[serde(default)]
    start: usize,
    /// Fetch the page again even if the cached copy is still fresh.
    #[serde(default)]
    fresh: bool,
}

/// A cached page, with a fingerprint of the egress rules under which it was fetched. If the rules have changed, the
/// page is fetched again, because they may now refuse the hosts of its redirects or their addresses.
#[derive(Serialize, Deserialize)]
struct StoredPage<P> {
    rules: u64,
    page: P,
}

/// Maximum length of a URL, in bytes.
const URL_BYTES: usize = 4096;

/// The dependencies of the tool.
#[derive(Clone)]
pub struct FetchParts {
    pub egress: Egress,
    /// The links that each session has seen.
    pub links: SeenLinks,
    pub cache: Arc<dyn WebCache>,
    pub clock: Arc<dyn Clock>,
}

/// Creates the tool `search_fetch`.
pub fn fetch_tool(parts: FetchParts) -> Arc<dyn Tool> {
    let parts = Arc::new(parts);
    let inspect_parts = Arc::clone(&parts);
    SEARCH_FETCH.with_parts(
        move |caller: Caller, arguments: Arguments| {
            let parts = Arc::clone(&parts);
            async move { parts.run(&caller, &arguments).await }
        },
        None,
        Some(Box::new(move |caller, arguments: Arguments| {
            Box::pin(std::future::ready(
                inspect_parts.inspect(&caller, &arguments),
            ))
        })),
    )
}

impl FetchParts {
    /// Returns the site that the call contacts. Returns none for a URL that the egress guard refuses, so that the user
    /// is not asked and the call fails with the reason.
    fn inspect(&self, caller: &Caller, arguments: &Arguments) -> Inspection {
        Inspection {
            site: self.site(caller, arguments).ok().map(|(_, site)| site),
            ..Inspection::default()
        }
    }

    fn site(&self, caller: &Caller, arguments: &Arguments) -> Result<(Url, SiteAccess), ToolError> {
        let address = arguments.url.trim();
        if address.len() > URL_BYTES {
            return Err(ToolError::trusted(format!(
                "the address is longer than {URL_BYTES} bytes"
            )));
        }
        let mut url = Url::parse(address).map_err(|error| {
            ToolError::trusted(format!(
                "`url` is not a valid address ({error}); it must start with `https://` or `http://`"
            ))
        })?;
        url.set_fragment(None);
        let destination = self.egress.check(&url);
        let destination = destination.map_err(|refusal| ToolError::new(refusal.to_string()))?;
        let site = SiteAccess {
            host: destination.site().into(),
            url: Some(address.into()),
            // The fragment is not sent, so it does not count.
            is_known: self.links.contains(&caller.session, url.as_str()),
            summary: format!("read {address}").into(),
        };
        Ok((url, site))
    }

    async fn run(&self, caller: &Caller, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let (url, site) = self.site(caller, arguments)?;
        let inspected = caller.inspection.site.as_ref();
        let is_same = inspected
            .is_some_and(|inspected| inspected.host == site.host && inspected.url == site.url);
        if !is_same {
            return Err(ToolError::trusted(
                "the address differs from the one that was approved; call search_fetch again",
            ));
        }
        let (page, fetched) = self.load(caller, &url, arguments.fresh).await?;
        let known = page.links.iter().chain([&page.url]);
        self.links.add(&caller.session, known.map(String::as_str));
        let shown = show::page(&page, arguments.start, fetched, self.clock.now());
        Ok(shown.map_err(ToolError::trusted)?.into())
    }

    /// Loads the page, and returns when it was fetched or last revalidated.
    async fn load(
        &self,
        caller: &Caller,
        url: &Url,
        is_fresh_wanted: bool,
    ) -> Result<(FetchedPage, Timestamp), ToolError> {
        // If the cache cannot be read, the page is simply fetched.
        let cached = if is_fresh_wanted {
            None
        } else {
            let cached = self.cache.cached_page(&caller.user, url.as_str()).await;
            cached.ok().flatten().and_then(|cached| {
                let stored: StoredPage<FetchedPage> = serde_json::from_str(&cached.content).ok()?;
                let has_same_rules = stored.rules == self.egress.rules().fingerprint();
                has_same_rules.then_some((cached, stored.page))
            })
        };
        let now = self.clock.now();
        if let Some((cached, page)) = &cached
            && now < cached.fresh_until
            && cached.fetched <= now
        {
            return Ok((page.clone(), cached.fetched));
        }
        let validators = cached.as_ref().map(|(cached, _)| cached);
        let fetched = self.fetch(caller, url, validators).await?;
        let now = self.clock.now();
        if fetched.status == 304
            && let Some((old, page)) = cached
        {
            self.store(
                caller,
                url,
                cache_policy(&fetched.headers, now),
                Some(&old),
                &page,
                now,
            )
            .await;
            return Ok((page, now));
        }
        let permitted = cache_policy(&fetched.headers, now);
        let page = read_page(fetched).await?;
        self.store(caller, url, permitted, None, &page, now).await;
        Ok((page, now))
    }

    async fn fetch(
        &self,
        caller: &Caller,
        url: &Url,
        cached: Option<&CachedPage>,
    ) -> Result<FetchedResponse, ToolError> {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/pdf;q=0.9,*/*;q=0.5"),
        );
        let validators = cached.map_or([None, None], |cached| {
            [
                cached.etag.as_ref().map(|tag| (header::IF_NONE_MATCH, tag)),
                cached
                    .last_modified
                    .as_ref()
                    .map(|date| (header::IF_MODIFIED_SINCE, date)),
            ]
        });
        for (name, value) in validators.into_iter().flatten() {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
        let budget = self.egress.budgets().of(&caller.session, &caller.turn);
        let fetched = self.egress.client().get(url, &headers, &budget).await;
        fetched.map_err(|error| ToolError::new(failure_text(&error)))
    }

    async fn store(
        &self,
        caller: &Caller,
        url: &Url,
        permitted: CachePolicy,
        old: Option<&CachedPage>,
        page: &FetchedPage,
        now: Timestamp,
    ) {
        let (user, url) = (&caller.user, url.as_str());
        let rules = self.egress.rules().fingerprint();
        let content = serde_json::to_string(&StoredPage { rules, page });
        // Errors of the cache must not fail the call; a copy that is not removed becomes stale eventually.
        match (permitted, content) {
            (
                CachePolicy::Allowed {
                    fresh_until,
                    etag,
                    last_modified,
                },
                Ok(content),
            ) => {
                let old_etag = || old.and_then(|old| old.etag.clone());
                let old_date = || old.and_then(|old| old.last_modified.clone());
                let copy = CachedPage {
                    fetched: now,
                    fresh_until,
                    etag: etag.or_else(old_etag),
                    last_modified: last_modified.or_else(old_date),
                    content: content.into(),
                };
                let _ = self.cache.store_page(user, url, copy).await;
            }
            _ => {
                let _ = self.cache.remove_page(user, url).await;
            }
        }
    }
}

/// Reads a page on a blocking thread. Turns an error status into an error with the start of the page's text.
async fn read_page(fetched: FetchedResponse) -> Result<FetchedPage, ToolError> {
    let status = fetched.status;
    let url = fetched.final_url.to_string();
    let read = tokio::task::spawn_blocking(move || page::read(&fetched)).await;
    let read = read.unwrap_or_else(|_| Err("its content cannot be read".to_owned()));
    if (200..300).contains(&status) {
        return read.map_err(|reason| ToolError::new(format!("`{url}` cannot be read: {reason}")));
    }
    let hint = match status {
        401 | 403 => "; it may need a login or a browser",
        404 | 410 => "; the page does not exist",
        429 => "; the server asks for fewer requests",
        500..=599 => "; the server has an internal error, try again later",
        _ => "",
    };
    let excerpt = read.map(|page| page.text).unwrap_or_default();
    let excerpt: String = excerpt.chars().take(300).collect();
    let excerpt = excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
    let excerpt = if excerpt.is_empty() {
        excerpt
    } else {
        format!("\nThe page says: {excerpt}")
    };
    Err(ToolError::new(format!(
        "`{url}` answered with status {status}{hint}{excerpt}"
    )))
}

fn failure_text(error: &EgressError) -> String {
    match error.refusal() {
        Some(refusal) => refusal.to_string(),
        None => lango_core::error_chain(&error),
    }
}
