//! `browser_close`: ends the session's browser, with its tabs and cookies.

use crate::BrowserSessions;
use lango_core::{Effect, Risk, RuleSubject, Tool, ToolDeclaration, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseArguments {}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration {
        name: "browser_close",
        description: "Closes the browser with all its tabs, cookies and logins.",
        effect: Effect::Idempotent,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    let sessions = sessions.clone();
    declaration.with_code(move |caller, CloseArguments {}| {
        let sessions = sessions.clone();
        async move {
            let text = if sessions.close(&caller.session).await {
                "Closed the browser.\n"
            } else {
                "No browser is open.\n"
            };
            Ok(ToolOutput::trusted(text))
        }
    })
}
