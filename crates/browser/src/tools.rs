//! The `browser_*` tools, one file each.

mod act;
mod back;
mod close;
mod extract;
mod navigate;
mod observe;
mod screenshot;
mod search;
mod secret;
mod tabs;

pub use secret::{TYPING_FIELD, TYPING_TOOL};

use crate::sessions::{BrowserGuard, BrowserNeed};
use crate::{BrowserError, BrowserSessions, Page};
use lango_core::{
    BoxFuture, Caller, Effect, Inspection, Risk, RuleSubject, Tool, ToolDeclaration, ToolError,
    ToolOutput,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

pub fn browser_tools(sessions: &BrowserSessions) -> Vec<Arc<dyn Tool>> {
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

/// Builds a tool that works on the open page and contacts no site, so it needs no approval.
fn page_tool<A, F>(
    sessions: &BrowserSessions,
    name: &'static str,
    description: &'static str,
    effect: Effect,
    code: F,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a BrowserGuard, A) -> BoxFuture<'a, Result<String, BrowserError>>,
    F: Send + Sync + 'static,
{
    let declaration = ToolDeclaration {
        name,
        description,
        effect,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    let (sessions, code) = (sessions.clone(), Arc::new(code));
    declaration.with_code(move |caller: Caller, arguments| {
        let (sessions, code) = (sessions.clone(), Arc::clone(&code));
        async move {
            let guard = sessions.acquire(&caller, BrowserNeed::MustBeOpen).await?;
            let text = code(&guard, arguments).await;
            guard.finish(text).await
        }
    })
}

/// Builds a tool that contacts a site. `inspect` names the site before the call is approved.
fn site_tool<A, R, I>(
    sessions: &BrowserSessions,
    name: &'static str,
    description: &'static str,
    run: impl Fn(BrowserSessions, Caller, A) -> R + Send + Sync + 'static,
    inspect: impl Fn(BrowserSessions, Caller, A) -> I + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + 'static,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    I: Future<Output = Inspection> + Send + 'static,
{
    let declaration = ToolDeclaration {
        name,
        description,
        effect: Effect::NonIdempotent,
        risk: Risk::Safe,
        subject: RuleSubject::Site,
    };
    let (run_sessions, inspect_sessions) = (sessions.clone(), sessions.clone());
    declaration.with_parts(
        move |caller, arguments| run(run_sessions.clone(), caller, arguments),
        None,
        Some(Box::new(move |caller, arguments| {
            Box::pin(inspect(inspect_sessions.clone(), caller, arguments))
        })),
    )
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        Self::new(error.to_string())
    }
}

/// Describes a page in one line: its URL, its title, and its HTTP status if that is an error.
pub(crate) async fn describe_page(page: &Page) -> String {
    // The title of a blocked page cannot be read.
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
