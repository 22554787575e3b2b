//! `browser_search`: opens the results of the configured search engine in the browser.

use super::navigate::{Target, check_address, expect_inspected, open_in};
use super::site_tool;
use crate::BrowserSessions;
use crate::address::host_of;
use crate::sessions::BrowserNeed;
use lango_core::{Caller, Inspection, SiteAccess, Tool, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Searches the web: opens the search engine's result page in the browser. Read it with \
    browser_observe or browser_extract.";

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// What to search for.
    query: String,
}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    site_tool(sessions, "browser_search", DESCRIPTION, run, inspect)
}

async fn inspect(sessions: BrowserSessions, _: Caller, arguments: SearchArguments) -> Inspection {
    Inspection {
        site: site_of(&sessions, &arguments),
        ..Inspection::default()
    }
}

/// Returns the site of the search engine, which counts as known because the user configured it.
fn site_of(sessions: &BrowserSessions, arguments: &SearchArguments) -> Option<SiteAccess> {
    let address = search_address(&sessions.setup().search_url, &arguments.query);
    Some(SiteAccess {
        host: host_of(&address)?.into(),
        summary: format!("search for {}", crate::notice::shorten(&arguments.query)).into(),
        url: Some(address.into()),
        is_known: true,
    })
}

async fn run(
    sessions: BrowserSessions,
    caller: Caller,
    arguments: SearchArguments,
) -> Result<ToolOutput, ToolError> {
    expect_inspected(site_of(&sessions, &arguments).as_ref(), &caller)?;
    let address = search_address(&sessions.setup().search_url, &arguments.query);
    check_address(&sessions, &address)?;
    let guard = sessions.acquire(&caller, BrowserNeed::StartIfNone).await?;
    let is_link = false;
    let target = Target::Web { address, is_link };
    let opened = open_in(&guard, &target, false).await;
    guard.finish(opened).await
}

fn search_address(template: &str, query: &str) -> String {
    let query = percent_encoding::utf8_percent_encode(query, percent_encoding::NON_ALPHANUMERIC);
    template.replace("{query}", &query.to_string())
}
