//! The tools of the navigator, one file each.

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

use crate::sessions::{Need, Visit};
use crate::{BrowserError, Page, Sessions};
use lango_core::{
    BoxFuture, Caller, Declaration, Effect, Inspection, Risk, Subject, Tool, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Returns the browser tools.
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

/// Returns a tool about what is open in the browser, which contacts no site that the user would be asked about.
fn page_tool<A, F>(
    sessions: &Sessions,
    name: &'static str,
    description: &'static str,
    effect: Effect,
    code: F,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    F: for<'a> Fn(&'a Visit, A) -> BoxFuture<'a, Result<String, BrowserError>>,
    F: Send + Sync + 'static,
{
    let declaration = Declaration {
        name,
        description,
        effect,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    let (sessions, code) = (sessions.clone(), Arc::new(code));
    declaration.with_code(move |caller: Caller, arguments| {
        let (sessions, code) = (sessions.clone(), Arc::clone(&code));
        async move {
            let visit = sessions.visit(&caller, Need::Open).await?;
            let text = code(&visit, arguments).await;
            visit.end(text).await
        }
    })
}

/// Returns a tool that contacts a site, which `inspect` names before the call is allowed.
fn site_tool<A, R, I>(
    sessions: &Sessions,
    name: &'static str,
    description: &'static str,
    run: impl Fn(Sessions, Caller, A) -> R + Send + Sync + 'static,
    inspect: impl Fn(Sessions, Caller, A) -> I + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + 'static,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    I: Future<Output = Inspection> + Send + 'static,
{
    let declaration = Declaration {
        name,
        description,
        effect: Effect::Effect,
        risk: Risk::Safe,
        subject: Subject::Site,
    };
    let (running, looking) = (sessions.clone(), sessions.clone());
    declaration.with_parts(
        move |caller, arguments| run(running.clone(), caller, arguments),
        None,
        Some(Box::new(move |caller, arguments| {
            Box::pin(inspect(looking.clone(), caller, arguments))
        })),
    )
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        Self::new(error.to_string())
    }
}

/// Describes a page in one line: its URL, its title, and its status if that is an error.
pub(crate) async fn describe_page(page: &Page) -> String {
    // A blocked page has no title.
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
