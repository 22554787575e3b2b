//! `browser_back`: goes back in the history of the tab.

use super::{describe_page, page_tool};
use crate::sessions::Visit;
use crate::{BrowserError, Sessions};
use lango_core::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackArguments {}

pub(super) fn tool(sessions: &Sessions) -> Arc<dyn Tool> {
    let description = "Goes back to the page before, in the active tab.";
    page_tool(
        sessions,
        "browser_back",
        description,
        Effect::Effect,
        |visit, BackArguments {}| Box::pin(go_back(visit)),
    )
}

async fn go_back(visit: &Visit) -> Result<String, BrowserError> {
    let page = visit.page()?;
    if !page.go_back().await? {
        return Ok("There is no page before this one.\n".to_owned());
    }
    Ok(format!("Back at {}\n", describe_page(&page).await))
}
