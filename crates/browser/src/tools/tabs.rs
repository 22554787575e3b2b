//! `browser_tabs`: lists, switches and closes tabs.

use super::{describe_page, page_tool};
use crate::sessions::BrowserGuard;
use crate::{BrowserError, BrowserSessions};
use lango_core::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Lists the open tabs, switches to one, or closes one. The other browser tools work on the active tab.";

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TabsArguments {
    action: TabsAction,
    /// The tab to switch to or close, such as `t2`.
    tab: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TabsAction {
    List,
    Switch,
    Close,
}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    page_tool(
        sessions,
        "browser_tabs",
        DESCRIPTION,
        Effect::Idempotent,
        |guard, arguments| Box::pin(act(guard, arguments)),
    )
}

async fn act(guard: &BrowserGuard, arguments: TabsArguments) -> Result<String, BrowserError> {
    let browser = guard.browser();
    let tab = arguments.tab.as_deref().unwrap_or_default();
    let mut text = String::new();
    match arguments.action {
        TabsAction::List => {}
        TabsAction::Switch => {
            let page = browser.switch(tab)?;
            text = format!("Switched to {tab}: {}\n", describe_page(&page).await);
        }
        TabsAction::Close => {
            browser.close_tab(tab).await?;
            text = format!("Closed {tab}\n");
        }
    }
    let tabs = browser.list();
    if tabs.is_empty() {
        text.push_str("No tab is open.\n");
    }
    for tab in tabs {
        let mark = match (tab.is_active, tab.is_crashed) {
            (_, true) => " (crashed)",
            (true, false) => " (active)",
            (false, false) => "",
        };
        let url = crate::notice::shorten(&tab.url);
        text.push_str(&format!("{}{mark}: {url}\n", tab.id));
    }
    Ok(text)
}
