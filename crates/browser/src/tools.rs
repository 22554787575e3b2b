//! The tools of the navigator, one file each.

mod act;
mod back;
mod close;
mod extract;
mod navigate;
mod observe;
mod screenshot;
mod search;
mod tabs;

use crate::{BrowserError, Page, Sessions};
use lango_core::{Tool, ToolError};
use std::sync::Arc;

/// The tools that use the browsers of sessions.
pub fn browser_tools(sessions: &Sessions) -> Vec<Arc<dyn Tool>> {
    vec![
        navigate::tool(sessions),
        search::tool(sessions),
        observe::tool(sessions),
        act::tool(sessions),
        extract::tool(sessions),
        back::tool(sessions),
        tabs::tool(sessions),
        screenshot::tool(sessions),
        close::tool(sessions),
    ]
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        Self::new(error.to_string())
    }
}

/// A page in one line: its address, its title, and its status if that is an error.
pub(crate) async fn describe_page(page: &Page) -> String {
    // A page that lets no script run has no title.
    let title = page.title().await.unwrap_or_default();
    let title = crate::notice::shorten(&title);
    let url = crate::notice::shorten(&page.url());
    let mut line = if title.is_empty() {
        url
    } else {
        format!("{url} {}", crate::observe::quote(&title))
    };
    if let Some(status) = page.status().filter(|status| *status >= 400) {
        line.push_str(&format!(" (HTTP status {status})"));
    }
    line
}
