//! `browser_observe`: lists what is on the page, with handles for actions.

use super::page_tool;
use crate::sessions::BrowserGuard;
use crate::{BrowserError, BrowserSessions, Observation, ObserveOptions, ObservedExtent};
use lango_core::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Shows the content of the page in the active tab, one item per line. Items that you can act on (browser_act) or \
    look into (`scope`) have a handle such as `e12`. The part in the window comes first. A second call for the \
    same page shows only the changes, if that is shorter. To read long texts use browser_extract.";

/// Number of retries for a page that navigates during the observation.
const RETRIES: usize = 2;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ObserveArguments {
    /// The handle of an element, to show only its content, such as all options of a list.
    scope: Option<String>,
    /// The approximate maximum number of tokens in the result; default: 2000, maximum: 20000.
    budget: Option<usize>,
    /// Whether to show the whole page again instead of the changes.
    #[serde(default)]
    full: bool,
}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    page_tool(
        sessions,
        "browser_observe",
        DESCRIPTION,
        Effect::Pure,
        |guard, arguments| Box::pin(observe(guard, arguments)),
    )
}

async fn observe(
    guard: &BrowserGuard,
    arguments: ObserveArguments,
) -> Result<String, BrowserError> {
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
    Ok(observe_active(guard, &options).await?.text)
}

/// Observes the active page, and adds its links to the seen links.
pub(super) async fn observe_active(
    guard: &BrowserGuard,
    options: &ObserveOptions,
) -> Result<Observation, BrowserError> {
    let page = guard.page()?;
    let mut observed = page.observe(options).await;
    for _ in 0..RETRIES {
        if !matches!(observed, Err(BrowserError::PageChanged)) {
            break;
        }
        page.settle().await?;
        observed = page.observe(options).await;
    }
    let observation = observed?;
    guard.add_seen_links(&page, observation.links.iter().map(|link| &**link));
    Ok(observation)
}
