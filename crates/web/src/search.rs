//! `search_web`: queries the configured search services.

use crate::provider::{Freshness, ProviderFailure, Providers, SearchQuery};
use crate::show;
use lango_core::{
    Caller, Clock, Effect, Risk, RuleSubject, Tool, ToolDeclaration, ToolError, ToolOutput,
};
use lango_net::{Budgets, SeenLinks};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const SEARCH_WEB: ToolDeclaration = ToolDeclaration {
    name: "search_web",
    description: "Searches the web. Returns titles, addresses and snippets; read a page with search_fetch.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: RuleSubject::Arguments,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to search for.
    #[schemars(length(min = 1, max = 400))]
    query: String,
    /// The number of results.
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 20))]
    count: usize,
    /// The page of results, starting at 1.
    #[serde(default = "first_page")]
    #[schemars(range(min = 1, max = 10))]
    page: usize,
    /// Only results from the last day, week, month or year.
    #[serde(default)]
    freshness: Option<Freshness>,
}

fn default_count() -> usize {
    8
}

fn first_page() -> usize {
    1
}

/// The dependencies of the tool.
#[derive(Clone)]
pub struct SearchParts {
    /// At least one search service.
    pub providers: Providers,
    /// The links that each session has seen.
    pub links: SeenLinks,
    /// The network budgets of turns.
    pub budgets: Budgets,
    pub clock: Arc<dyn Clock>,
}

/// Creates the tool `search_web`.
pub fn search_tool(parts: SearchParts) -> Arc<dyn Tool> {
    SEARCH_WEB.with_code(move |caller: Caller, arguments: Arguments| {
        let query = query(arguments, &*parts.clock);
        let parts = parts.clone();
        async move { parts.search(&caller, query?).await }
    })
}

fn query(arguments: Arguments, clock: &dyn Clock) -> Result<SearchQuery, ToolError> {
    let text = arguments
        .query
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if text.is_empty() {
        return Err(ToolError::trusted(
            "`query` is empty; give a text to search for",
        ));
    }
    let after = arguments.freshness.and_then(|freshness| {
        let seconds = (clock.now().0 / 1000).saturating_sub(freshness.days() * 86_400);
        let time = chrono::DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)?;
        Some(time.date_naive().to_string())
    });
    Ok(SearchQuery {
        text: text.chars().take(400).collect(),
        count: arguments.count.clamp(1, 20),
        page: arguments.page.clamp(1, 10),
        freshness: arguments.freshness,
        after,
    })
}

impl SearchParts {
    async fn search(&self, caller: &Caller, query: SearchQuery) -> Result<ToolOutput, ToolError> {
        let budget = self.budgets.of(&caller.session, &caller.turn);
        let outcome = self.providers.search(&query, &budget).await;
        let failures = show::failures(&outcome);
        if let Some((provider, results)) = &outcome.results {
            self.links.add(
                &caller.session,
                results.iter().map(|result| result.url.as_str()),
            );
            let mut text = show::results(&query.text, query.page, provider, results);
            if !failures.is_empty() {
                text.push('\n');
                text.push_str(&failures);
            }
            return Ok(text.into());
        }
        let is_empty =
            |(_, failure): &(String, ProviderFailure)| *failure == ProviderFailure::Empty;
        if outcome.failures.iter().any(is_empty) {
            return Ok(format!("No results for `{}`.\n{failures}", query.text).into());
        }
        Err(ToolError::new(format!(
            "all search services failed; try again later, or tell the user\n{failures}"
        )))
    }
}
