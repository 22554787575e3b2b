//! `browser_back`: the page before, in the history of the tab.

use super::describe_page;
use crate::sessions::{Need, Visit};
use crate::{BrowserError, Sessions};
use lango_core::{Declaration, Effect, Risk, Subject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackArguments {}

pub(super) fn tool(sessions: &Sessions) -> Arc<dyn Tool> {
    let declaration = Declaration {
        name: "browser_back",
        description: "Goes back to the page before, in the active tab.",
        effect: Effect::Effect,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    let sessions = sessions.clone();
    declaration.with_code(move |caller, BackArguments {}| {
        let sessions = sessions.clone();
        async move {
            let visit = sessions.visit(&caller, Need::Open).await?;
            let gone = go_back(&visit).await;
            visit.end(gone).await
        }
    })
}

async fn go_back(visit: &Visit) -> Result<String, BrowserError> {
    let page = visit.page()?;
    if !page.go_back().await? {
        return Ok("There is no page before this one.\n".to_owned());
    }
    Ok(format!("Back at {}\n", describe_page(&page).await))
}
