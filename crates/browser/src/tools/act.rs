//! `browser_act`: acts on the page like a person with a mouse and a keyboard.

use super::navigate::expect_inspected;
use super::observe::look;
use super::secret::{self, Typing};
use super::site_tool;
use crate::act::site_of;
use crate::sessions::{Need, Visit};
use crate::uploads::SensitiveFiles;
use crate::{Action, BrowserError, ObserveOptions, ObservedExtent, Page, Sessions, Step};
use lango_core::{Caller, Inspection, Tool, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const DESCRIPTION: &str = "Acts on the page of the active tab: click, type, press keys, select, check, hover, drag, \
    scroll, upload, highlight text, wait. Elements are named by the handles of browser_observe. Several steps are carried out one after the \
    other, until one fails or the page goes to another site; give steps together only if you know that each one will \
    work. The result says what changed, so that you need not observe again.";

/// Maximum number of steps per call.
const MOST_STEPS: usize = 10;
/// Maximum number of options or files per step. The user sees the names of all files.
const MOST_VALUES: usize = 20;
/// Tokens for the changes of a page, and for a new page.
const CHANGE_TOKENS: usize = 400;
const NEW_PAGE_TOKENS: usize = 1000;
/// Time for a page to settle after a step, unless it loads another document.
const STEP_TIME: Duration = Duration::from_secs(4);
/// Time for delayed reactions: suggestions appear 300 ms after the last key, submenus and tooltips as long after the
/// pointer.
const LATE_REACTION: Duration = Duration::from_millis(350);

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActArguments {
    /// What to do, one after the other.
    #[schemars(length(min = 1, max = 10))]
    steps: Vec<Step>,
}

pub(super) fn tool(sessions: &Sessions) -> Arc<dyn Tool> {
    site_tool(sessions, "browser_act", DESCRIPTION, run, inspect)
}

async fn inspect(sessions: Sessions, caller: Caller, arguments: ActArguments) -> Inspection {
    // A call that would fail contacts nothing.
    let page = sessions
        .browser(&caller.session)
        .and_then(|browser| browser.active_page().ok());
    let site = match page {
        Some(page) => site_of(&page, &arguments.steps).await.ok().flatten(),
        None => None,
    };
    let guarded = site
        .as_ref()
        .and_then(|site| sensitive_files(&sessions, &arguments.steps).target(&site.host));
    Inspection {
        site,
        guarded,
        ..Inspection::default()
    }
}

fn sensitive_files(sessions: &Sessions, steps: &[Step]) -> SensitiveFiles {
    SensitiveFiles::find(&sessions.setup().launcher.workspace, steps)
}

async fn run(
    sessions: Sessions,
    caller: Caller,
    arguments: ActArguments,
) -> Result<ToolOutput, ToolError> {
    if arguments.steps.is_empty() || arguments.steps.len() > MOST_STEPS {
        return Err(ToolError::trusted(format!("give 1 to {MOST_STEPS} steps")));
    }
    if arguments
        .steps
        .iter()
        .any(|step| step.values.len() > MOST_VALUES)
    {
        return Err(ToolError::trusted(format!(
            "give at most {MOST_VALUES} values or files in a step"
        )));
    }
    let visit = sessions.visit(&caller, Need::Open).await?;
    let page = visit.page()?;
    let site = site_of(&page, &arguments.steps).await?;
    expect_inspected(site.as_ref(), &caller)?;
    let sensitive = sensitive_files(&sessions, &arguments.steps);
    if let Some(site) = &site {
        if sensitive.target(&site.host) != caller.inspection.guarded {
            return Err(ToolError::trusted(
                "the files to upload changed since the call was allowed; call again",
            ));
        }
        visit.permit_downloads(&page, Some(&site.host));
    }
    let host = site.map(|site| site.host.to_string());
    let call = ActCall {
        sessions: &sessions,
        caller: &caller,
        visit: &visit,
        page: &page,
        host: host.as_deref(),
        sensitive: &sensitive,
    };
    let done = call.carry_out(&arguments.steps).await;
    visit.end(done).await
}

/// An approved call.
struct ActCall<'a> {
    sessions: &'a Sessions,
    caller: &'a Caller,
    visit: &'a Visit,
    page: &'a Page,
    /// The approved host.
    host: Option<&'a str>,
    /// The approved sensitive files.
    sensitive: &'a SensitiveFiles,
}

impl ActCall<'_> {
    /// Carries out the steps, and describes their results and the changes of the page.
    async fn carry_out(&self, steps: &[Step]) -> Result<String, BrowserError> {
        let Self { visit, page, .. } = *self;
        let mut text = String::new();
        let (document, url) = (page.document(), page.url());
        let start_host = page.host();
        for (index, step) in steps.iter().enumerate() {
            let rest = steps.len() - index;
            if index > 0 && page.host() != start_host {
                let _ = writeln!(
                    text,
                    "[the page went to another site; {rest} steps were not carried out]"
                );
                break;
            }
            match self.carry_out_one(step).await {
                Ok(line) => {
                    let _ = writeln!(text, "{line}");
                }
                // Steps that worked have had their effects, and the result must say so.
                Err(error) if index > 0 => {
                    let _ = writeln!(text, "[step {} failed: {error}]", index + 1);
                    if rest > 1 {
                        let _ = writeln!(text, "[{} steps were not carried out]", rest - 1);
                    }
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if page.url() != url {
            text.push_str("[the page has another address now]\n");
        }
        let tokens = if page.document() == document {
            CHANGE_TOKENS
        } else {
            NEW_PAGE_TOKENS
        };
        let options = ObserveOptions {
            scope: None,
            tokens: Some(tokens),
            extent: ObservedExtent::Changes,
        };
        let last = steps.last().map(|step| step.action);
        if last.is_some_and(Action::is_answered_late) {
            wait_for_late_reaction(page).await;
        }
        let mut seen = look(visit, &options).await;
        if seen.as_ref().is_ok_and(|seen| seen.is_same)
            && !last.is_some_and(Action::is_answered_late)
        {
            wait_for_late_reaction(page).await;
            seen = look(visit, &options).await;
        }
        match seen {
            Ok(changes) => text.push_str(&changes.text),
            Err(error) => {
                let _ = writeln!(text, "[the page cannot be looked at: {error}]");
            }
        }
        Ok(text)
    }

    async fn carry_out_one(&self, step: &Step) -> Result<String, BrowserError> {
        let Self { page, host, .. } = *self;
        // The previous step may have replaced the element by one of another site.
        let site = site_of(page, std::slice::from_ref(step)).await?;
        if site.is_some_and(|site| Some(&*site.host) != host) {
            return Err(BrowserError::Argument {
                message: "the element belongs to another site now; observe the page and call again"
                    .to_owned(),
            });
        }
        let files = self.stage(step).await?;
        let line = match secret::resolve(self.sessions, self.caller, page, step).await? {
            Typing::Text => page.act(step, &files, host).await?,
            Typing::Literal(remark) => {
                let line = page.act(step, &files, host).await?;
                format!("{line}\n[{remark}]")
            }
            Typing::Secret(value) => {
                self.sessions.note_typed_secret(&self.caller.session);
                secret::type_secret(page, step, &value, host).await?
            }
        };
        // The step had its effect; an error of the page is reported by the next step or observation.
        if let Ok(settled) = page.settle_within(STEP_TIME).await
            && settled.pending.is_some()
            && page.is_loading()
        {
            let _ = page.settle().await;
        }
        Ok(line)
    }

    async fn stage(&self, step: &Step) -> Result<Vec<PathBuf>, BrowserError> {
        let mut files = Vec::new();
        if step.action == Action::Upload {
            for path in &step.values {
                let staged = self.visit.stage_upload(path, self.sensitive).await;
                files.push(staged.map_err(|error| BrowserError::Argument {
                    message: error.message,
                })?);
            }
        }
        Ok(files)
    }
}

/// Waits for pages that react only after a pause in typing or a resting pointer.
async fn wait_for_late_reaction(page: &Page) {
    tokio::time::sleep(LATE_REACTION).await;
    // The observation that follows reports a page that is gone.
    let _ = page.settle_within(STEP_TIME).await;
}
