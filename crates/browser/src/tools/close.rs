//! `browser_close`: ends the session's browser, with its cookies and everything that is open.

use crate::Sessions;
use lango_core::{Declaration, Effect, Risk, Subject, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseArguments {}

pub(super) fn tool(sessions: &Sessions) -> Arc<dyn Tool> {
    let declaration = Declaration {
        name: "browser_close",
        description: "Closes the browser with all its tabs, cookies and logins.",
        effect: Effect::Idempotent,
        risk: Risk::Safe,
        subject: Subject::Arguments,
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
