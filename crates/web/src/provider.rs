//! Search services. If one fails, the next one is queried.
//!
//! | kind | request | key | results | date | paging |
//! |---|---|---|---|---|---|
//! | `searxng` | `GET URL/search?q=&format=json&pageno=&time_range=` | none | `results[]`: `title`, `url`, `content` | `publishedDate` | pages |
//! | `brave` | `GET https://api.search.brave.com/res/v1/web/search?q=&count=&offset=&freshness=` | `X-Subscription-Token` | `web.results[]`: `title`, `url`, `description` | `page_age`, else `age` | `offset` counts pages, 0 to 9; `count` up to 20 |
//! | `tavily` | `POST https://api.tavily.com/search` `{query, max_results, time_range}` | `Authorization: Bearer` | `results[]`: `title`, `url`, `content` | `published_date` (news) | none; `max_results` up to 20 |
//! | `kagi` | `POST https://kagi.com/api/v1/search` `{query, workflow, limit, page, filters.after}` | `Authorization: Bearer` | `data.search[]`: `title`, `url`, `snippet` | `time` | pages |
//!
//! SearXNG responds with 403 if `json` is not among its `search.formats`. The URLs come from the user's configuration,
//! so the egress guard does not check them. Redirects are not followed, and time and size are limited.

mod http;
mod wire;

use http::Endpoint;
use lango_net::Budget;
use lango_secrets::{Credential, Masks};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    SearXng,
    Brave,
    Tavily,
    Kagi,
}

impl ProviderKind {
    /// All kinds with their names in the configuration.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("searxng", Self::SearXng),
        ("brave", Self::Brave),
        ("tavily", Self::Tavily),
        ("kagi", Self::Kagi),
    ];

    /// Returns the default URL; `None` for SearXNG, which has no central instance.
    pub fn default_url(self) -> Option<&'static str> {
        match self {
            Self::SearXng => None,
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Kagi => Some("https://kagi.com"),
        }
    }

    /// Returns the environment variable that usually contains the key; `None` for SearXNG, which needs no key.
    pub fn default_key_variable(self) -> Option<&'static str> {
        match self {
            Self::SearXng => None,
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
            Self::Kagi => Some("KAGI_API_KEY"),
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, kind)| kind == self);
        formatter.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for ProviderKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, kind)| *kind)
            .ok_or_else(|| "`searxng`, `brave`, `tavily` or `kagi`".to_owned())
    }
}

/// A configured search service.
#[derive(Debug, Clone)]
pub struct SearchProvider {
    /// The name in the configuration.
    pub name: String,
    pub kind: ProviderKind,
    /// The base URL, without the path of the API.
    pub url: String,
    /// The API key, which is sent only to the origin of the URL.
    pub key: Option<Credential>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchQuery {
    pub text: String,
    pub count: usize,
    /// Starts at 1.
    pub page: usize,
    pub freshness: Option<Freshness>,
    /// The earliest date of a result, for services that filter by date.
    pub after: Option<String>,
}

/// The maximum age of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Freshness {
    Day,
    Week,
    Month,
    Year,
}

impl Freshness {
    pub(crate) fn days(self) -> u64 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
            Self::Year => 366,
        }
    }
}

/// A search result, in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchResult {
    pub title: String,
    pub url: String,
    pub snippet: String,
    pub date: Option<String>,
}

/// The results of a search, with the services that failed.
#[derive(Debug)]
pub(crate) struct SearchOutcome {
    /// The results with the service that returned them; `None` if no service had any.
    pub results: Option<(SearchProvider, Vec<SearchResult>)>,
    /// The services that returned no results, each with the reason.
    pub failures: Vec<(String, ProviderFailure)>,
}

/// The reason why a service returned no results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderFailure {
    /// The service found nothing.
    Empty,
    /// The request failed, or the response was not valid.
    Failed(String),
}

/// The search services in order of preference.
#[derive(Clone)]
pub struct Providers {
    all: Arc<[(SearchProvider, Endpoint)]>,
}

impl Providers {
    /// Creates a list of services that are tried in this order. Secret values in their responses are masked.
    pub fn new(providers: Vec<SearchProvider>, masks: &Masks) -> Self {
        let with_endpoint = |provider: SearchProvider| {
            let endpoint = Endpoint::new(&provider, masks.clone());
            (provider, endpoint)
        };
        Self {
            all: providers.into_iter().map(with_endpoint).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Queries one service after the other until one has results. Requests and responses are charged to the budget.
    pub(crate) async fn search(&self, query: &SearchQuery, budget: &Budget) -> SearchOutcome {
        let mut failures = Vec::new();
        for (provider, endpoint) in &*self.all {
            match self.query_provider(provider, endpoint, query, budget).await {
                Ok(results) if !results.is_empty() => {
                    let results = Some((provider.clone(), results));
                    return SearchOutcome { results, failures };
                }
                Ok(_) => failures.push((provider.name.clone(), ProviderFailure::Empty)),
                Err(reason) => {
                    failures.push((provider.name.clone(), ProviderFailure::Failed(reason)))
                }
            }
        }
        SearchOutcome {
            results: None,
            failures,
        }
    }

    async fn query_provider(
        &self,
        provider: &SearchProvider,
        endpoint: &Endpoint,
        query: &SearchQuery,
        budget: &Budget,
    ) -> Result<Vec<SearchResult>, String> {
        let request = wire::request(provider.kind, query);
        let reply = endpoint.send(provider, &request, budget).await?;
        wire::results(provider.kind, &reply, query)
    }
}
