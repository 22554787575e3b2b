//! `browser_search`: the results page of the configured search engine, in the browser.

use super::navigate::{Target, check_address, expect_inspected, open_in};
use crate::Sessions;
use crate::address::host_of;
use crate::sessions::Need;
use lango_core::{
    Caller, Declaration, Effect, Inspection, Risk, SiteAccess, Subject, Tool, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Searches the web: opens the search engine's page of results in the browser. See them with \
    browser_observe or browser_extract.";

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// What to search for.
    query: String,
}

pub(super) fn tool(sessions: &Sessions) -> Arc<dyn Tool> {
    let declaration = Declaration {
        name: "browser_search",
        description: DESCRIPTION,
        effect: Effect::Effect,
        risk: Risk::Safe,
        subject: Subject::Site,
    };
    let (running, looking) = (sessions.clone(), sessions.clone());
    declaration.with_parts(
        move |caller, arguments| run(running.clone(), caller, arguments),
        None,
        Some(Box::new(move |_, arguments| {
            let site = site_of(&looking, &arguments);
            Box::pin(std::future::ready(Inspection {
                site,
                ..Inspection::default()
            }))
        })),
    )
}

/// The search engine is the user's own choice, so its address counts as known.
fn site_of(sessions: &Sessions, arguments: &SearchArguments) -> Option<SiteAccess> {
    let address = search_address(&sessions.setup().search_url, &arguments.query);
    Some(SiteAccess {
        host: host_of(&address)?.into(),
        summary: format!("search for {}", crate::notice::shorten(&arguments.query)).into(),
        url: Some(address.into()),
        is_known: true,
    })
}

async fn run(
    sessions: Sessions,
    caller: Caller,
    arguments: SearchArguments,
) -> Result<ToolOutput, ToolError> {
    expect_inspected(site_of(&sessions, &arguments).as_ref(), &caller)?;
    let address = search_address(&sessions.setup().search_url, &arguments.query);
    check_address(&sessions, &address)?;
    let visit = sessions.visit(&caller, Need::Any).await?;
    let is_link = false;
    let target = Target::Web { address, is_link };
    let opened = open_in(&visit, &target, false).await;
    visit.end(opened).await
}

fn search_address(template: &str, query: &str) -> String {
    let query = percent_encoding::utf8_percent_encode(query, percent_encoding::NON_ALPHANUMERIC);
    template.replace("{query}", &query.to_string())
}
