//! `browser_back`: goes back in the history of the tab.

use super::{describe_page, page_tool};
use crate::sessions::BrowserGuard;
use crate::{BrowserError, BrowserSessions};
use lango_core::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackArguments {}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    let description = "Goes back to the previous page in the active tab.";
    page_tool(
        sessions,
        "browser_back",
        description,
        Effect::NonIdempotent,
        |guard, BackArguments {}| Box::pin(go_back(guard)),
    )
}

async fn go_back(guard: &BrowserGuard) -> Result<String, BrowserError> {
    let page = guard.page()?;
    if !page.go_back().await? {
        return Ok("There is no previous page.\n".to_owned());
    }
    Ok(format!("Back at {}\n", describe_page(&page).await))
}
