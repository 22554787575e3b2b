//! `search_fetch`: reads a web page through the egress guard and the cache.

use crate::freshness::{Storage, storage};
use crate::page::{self, Page};
use crate::show;
use lango_core::{
    CachedPage, Caller, Clock, Declaration, Effect, Inspection, Risk, SiteAccess, Subject,
    Timestamp, Tool, ToolError, ToolOutput, WebCache,
};
use lango_net::{Egress, EgressError, Fetched, HeaderMap, HeaderValue, SeenLinks, Url, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const SEARCH_FETCH: Declaration = Declaration {
    name: "search_fetch",
    description: "Reads a web page, PDF or text from an address as Markdown, without running its scripts. \
                  Long pages come in parts: go on with the `start` that is named at the end.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: Subject::Site,
};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The address, `http` or `https`.
    #[schemars(length(min = 1, max = 4096))]
    url: String,
    /// Where to go on in a long page.
    #[serde(default)]
    start: usize,
    /// Fetch the page again although a copy is still fresh.
    #[serde(default)]
    fresh: bool,
}

/// A page in the cache, with the rules of the guard under which it was fetched. Under other rules it is fetched again: the
/// hosts of its redirects, and the addresses behind their names, may be refused by now.
#[derive(Serialize, Deserialize)]
struct StoredPage<P> {
    rules: u64,
    page: P,
}

/// The longest address, in bytes.
const URL_BYTES: usize = 4096;

/// The dependencies of the tool.
#[derive(Clone)]
pub struct FetchParts {
    /// The guard.
    pub egress: Egress,
    /// The links that each session has seen.
    pub links: SeenLinks,
    /// Where pages are stored.
    pub cache: Arc<dyn WebCache>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Creates the tool `search_fetch`.
pub fn fetch_tool(parts: FetchParts) -> Arc<dyn Tool> {
    let parts = Arc::new(parts);
    let inspecting = Arc::clone(&parts);
    SEARCH_FETCH.with_parts(
        move |caller: Caller, arguments: Arguments| {
            let parts = Arc::clone(&parts);
            async move { parts.run(&caller, &arguments).await }
        },
        None,
        Some(Box::new(move |caller, arguments: Arguments| {
            Box::pin(std::future::ready(inspecting.inspect(&caller, &arguments)))
        })),
    )
}

impl FetchParts {
    /// Returns the site that the call contacts; none for a URL that the guard refuses, so that the call fails with the
    /// reason and the user is not asked.
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
                "the address has more than {URL_BYTES} bytes"
            )));
        }
        let mut url = Url::parse(address).map_err(|error| {
            ToolError::trusted(format!(
                "`url` is not an address ({error}); it begins with `https://` or `http://`"
            ))
        })?;
        url.set_fragment(None);
        let destination = self.egress.check(&url);
        let destination = destination.map_err(|refusal| ToolError::new(refusal.to_string()))?;
        let site = SiteAccess {
            host: destination.site().into(),
            url: Some(address.into()),
            // What follows `#` is not sent.
            is_known: self.links.contains(&caller.session, url.as_str()),
            summary: format!("read {address}").into(),
        };
        Ok((url, site))
    }

    async fn run(&self, caller: &Caller, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let (url, site) = self.site(caller, arguments)?;
        let inspected = caller.inspection.site.as_ref();
        let is_same = inspected.is_some_and(|one| one.host == site.host && one.url == site.url);
        if !is_same {
            return Err(ToolError::trusted(
                "the address is not the one that was allowed; call search_fetch again",
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
    ) -> Result<(Page, Timestamp), ToolError> {
        // A cache that cannot be read costs a request and nothing else.
        let cached = if is_fresh_wanted {
            None
        } else {
            let cached = self.cache.cached_page(&caller.user, url.as_str()).await;
            cached.ok().flatten().and_then(|cached| {
                let stored: StoredPage<Page> = serde_json::from_str(&cached.content).ok()?;
                let is_under_these_rules = stored.rules == self.egress.rules().fingerprint();
                is_under_these_rules.then_some((cached, stored.page))
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
                storage(&fetched.headers, now),
                Some(&old),
                &page,
                now,
            )
            .await;
            return Ok((page, now));
        }
        let permitted = storage(&fetched.headers, now);
        let page = read_page(fetched).await?;
        self.store(caller, url, permitted, None, &page, now).await;
        Ok((page, now))
    }

    async fn fetch(
        &self,
        caller: &Caller,
        url: &Url,
        cached: Option<&CachedPage>,
    ) -> Result<Fetched, ToolError> {
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
        permitted: Storage,
        old: Option<&CachedPage>,
        page: &Page,
        now: Timestamp,
    ) {
        let (user, url) = (&caller.user, url.as_str());
        let rules = self.egress.rules().fingerprint();
        let content = serde_json::to_string(&StoredPage { rules, page });
        // Failing to store or to remove a copy must not fail the reading; a copy that stays is stale sooner or later.
        match (permitted, content) {
            (
                Storage::Allowed {
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

/// Reads a page on a blocking thread. An error status becomes an error with the beginning of the page's text.
async fn read_page(fetched: Fetched) -> Result<Page, ToolError> {
    let status = fetched.status;
    let url = fetched.final_url.to_string();
    let read = tokio::task::spawn_blocking(move || page::read(&fetched)).await;
    let read = read.unwrap_or_else(|_| Err("its content cannot be read".to_owned()));
    if (200..300).contains(&status) {
        return read.map_err(|reason| ToolError::new(format!("`{url}` cannot be read: {reason}")));
    }
    let hint = match status {
        401 | 403 => "; it may need a login or a browser",
        404 | 410 => "; there is no such page",
        429 => "; it wants fewer requests",
        500..=599 => "; its server has a fault, try again later",
        _ => "",
    };
    let said = read.map(|page| page.text).unwrap_or_default();
    let said: String = said.chars().take(300).collect();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = if said.is_empty() {
        said
    } else {
        format!("\nIt says: {said}")
    };
    Err(ToolError::new(format!(
        "`{url}` answered with status {status}{hint}{said}"
    )))
}

fn failure_text(error: &EgressError) -> String {
    match error.refusal() {
        Some(refusal) => refusal.to_string(),
        None => lango_core::error_chain(&error),
    }
}
