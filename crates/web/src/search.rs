//! `search_web`: asks the search services of the configuration.

use crate::provider::{Failure, Freshness, Providers, Query};
use crate::show;
use lango_core::{Caller, Clock, Declaration, Effect, Risk, Subject, Tool, ToolError, ToolOutput};
use lango_net::{Budgets, SeenLinks};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const SEARCH_WEB: Declaration = Declaration {
    name: "search_web",
    description: "Searches the web. Gives titles, addresses and snippets; read a page with search_fetch.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: Subject::Arguments,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to search for.
    #[schemars(length(min = 1, max = 400))]
    query: String,
    /// How many results.
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 20))]
    count: usize,
    /// Which page of results.
    #[serde(default = "first_page")]
    #[schemars(range(min = 1, max = 10))]
    page: usize,
    /// Only results of the last day, week, month or year.
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
    /// The search services, at least one.
    pub providers: Providers,
    /// The links that each session has seen.
    pub links: SeenLinks,
    /// The network budgets of turns.
    pub budgets: Budgets,
    /// The time.
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

fn query(arguments: Arguments, clock: &dyn Clock) -> Result<Query, ToolError> {
    let text = arguments
        .query
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if text.is_empty() {
        return Err(ToolError::trusted(
            "`query` is empty; say what to search for",
        ));
    }
    let after = arguments.freshness.and_then(|freshness| {
        let seconds = (clock.now().0 / 1000).saturating_sub(freshness.days() * 86_400);
        let time = chrono::DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)?;
        Some(time.date_naive().to_string())
    });
    Ok(Query {
        text: text.chars().take(400).collect(),
        count: arguments.count.clamp(1, 20),
        page: arguments.page.clamp(1, 10),
        freshness: arguments.freshness,
        after,
    })
}

impl SearchParts {
    async fn search(&self, caller: &Caller, query: Query) -> Result<ToolOutput, ToolError> {
        let budget = self.budgets.of(&caller.session, &caller.turn);
        let answer = self.providers.search(&query, &budget).await;
        let failures = show::failures(&answer);
        if let Some((provider, results)) = &answer.results {
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
        let is_empty = |(_, failure): &(String, Failure)| *failure == Failure::Empty;
        if answer.failures.iter().any(is_empty) {
            return Ok(format!("No results for `{}`.\n{failures}", query.text).into());
        }
        Err(ToolError::new(format!(
            "no search service answered; try again later, or tell the user\n{failures}"
        )))
    }
}
