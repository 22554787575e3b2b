//! `browser_observe`: lists what is on the page, with handles for actions.

use super::page_tool;
use crate::sessions::Visit;
use crate::{BrowserError, Observation, ObserveOptions, ObservedExtent, Sessions};
use lango_core::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Shows what is on the page of the active tab, one thing a line, with a handle such as `e12` for \
    what you can act on (browser_act) or look into (`scope`). What is in the window comes first. A second look at the \
    same page shows only what changed, if that is shorter. To read long texts use browser_extract.";

/// Number of attempts for a page that navigates during the observation.
const RETRIES: usize = 2;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ObserveArguments {
    /// The handle of an element, to see only what is inside it, such as all options of a list.
    scope: Option<String>,
    /// How many tokens the answer may have; 2000 if not given, 20000 at most.
    budget: Option<usize>,
    /// Whether to show everything again instead of what changed.
    #[serde(default)]
    full: bool,
}

pub(super) fn tool(sessions: &Sessions) -> Arc<dyn Tool> {
    page_tool(
        sessions,
        "browser_observe",
        DESCRIPTION,
        Effect::Pure,
        |visit, arguments| Box::pin(observe(visit, arguments)),
    )
}

async fn observe(visit: &Visit, arguments: ObserveArguments) -> Result<String, BrowserError> {
    let extent = if arguments.full {
        ObservedExtent::Whole
    } else {
        ObservedExtent::Shorter
    };
    let options = ObserveOptions {
        scope: arguments.scope,
        tokens: arguments.budget,
        extent,
    };
    Ok(look(visit, &options).await?.text)
}

/// Observes the active page, and adds its links to the seen ones.
pub(super) async fn look(
    visit: &Visit,
    options: &ObserveOptions,
) -> Result<Observation, BrowserError> {
    let page = visit.page()?;
    let mut observed = page.observe(options).await;
    for _ in 0..RETRIES {
        if !matches!(observed, Err(BrowserError::PageChanged)) {
            break;
        }
        page.settle().await?;
        observed = page.observe(options).await;
    }
    let observation = observed?;
    visit.add_seen_links(&page, observation.links.iter().map(|link| &**link));
    Ok(observation)
}
