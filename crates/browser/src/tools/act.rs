//! `browser_act`: acts on the page with mouse and keyboard events.

use super::navigate::expect_inspected;
use super::observe::observe_active;
use super::secret::{self, TypedText};
use super::site_tool;
use crate::act::site_of;
use crate::sessions::{BrowserGuard, BrowserNeed};
use crate::uploads::SensitiveFiles;
use crate::{
    ActionKind, ActionStep, BrowserError, BrowserSessions, ObserveOptions, ObservedExtent, Page,
};
use lango_core::{Caller, Inspection, Tool, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const DESCRIPTION: &str = "Acts on the page of the active tab: click, type, press keys, select, check, hover, drag, \
    scroll, upload, highlight text, wait. Name elements by their handles from browser_observe. Several steps run one after the \
    other, until one fails or the page moves to another site; combine steps only if you are sure that each one will \
    work. The result says what changed, so you need not observe again.";

/// Maximum number of steps per call.
const MAX_STEPS: usize = 10;
/// Maximum number of options or files per step. The user sees the names of all files.
const MAX_VALUES: usize = 20;
/// Token budgets for the changes of a page, and for a new page.
const CHANGE_TOKENS: usize = 400;
const NEW_PAGE_TOKENS: usize = 1000;
/// Timeout for a page to settle after a step, unless it loads another document.
const STEP_TIMEOUT: Duration = Duration::from_secs(4);
/// Time to wait for delayed reactions: suggestions commonly appear 300 ms after the last key, submenus and tooltips 300
/// ms after the pointer arrives.
const REACTION_DELAY: Duration = Duration::from_millis(350);

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActArguments {
    /// The steps, in order.
    #[schemars(length(min = 1, max = 10))]
    steps: Vec<ActionStep>,
}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    site_tool(sessions, "browser_act", DESCRIPTION, run, inspect)
}

async fn inspect(sessions: BrowserSessions, caller: Caller, arguments: ActArguments) -> Inspection {
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

fn sensitive_files(sessions: &BrowserSessions, steps: &[ActionStep]) -> SensitiveFiles {
    SensitiveFiles::find(&sessions.setup().launcher.workspace, steps)
}

async fn run(
    sessions: BrowserSessions,
    caller: Caller,
    arguments: ActArguments,
) -> Result<ToolOutput, ToolError> {
    if arguments.steps.is_empty() || arguments.steps.len() > MAX_STEPS {
        return Err(ToolError::trusted(format!("give 1 to {MAX_STEPS} steps")));
    }
    if arguments
        .steps
        .iter()
        .any(|step| step.values.len() > MAX_VALUES)
    {
        return Err(ToolError::trusted(format!(
            "give at most {MAX_VALUES} values or files in a step"
        )));
    }
    let guard = sessions.acquire(&caller, BrowserNeed::MustBeOpen).await?;
    let page = guard.page()?;
    let site = site_of(&page, &arguments.steps).await?;
    expect_inspected(site.as_ref(), &caller)?;
    let sensitive = sensitive_files(&sessions, &arguments.steps);
    if let Some(site) = &site {
        if sensitive.target(&site.host) != caller.inspection.guarded {
            return Err(ToolError::trusted(
                "the files to upload changed after the call was approved; call again",
            ));
        }
        guard.permit_downloads(&page, Some(&site.host));
    }
    let host = site.map(|site| site.host.to_string());
    let call = ActCall {
        sessions: &sessions,
        caller: &caller,
        guard: &guard,
        page: &page,
        host: host.as_deref(),
        sensitive: &sensitive,
    };
    let done = call.carry_out(&arguments.steps).await;
    guard.finish(done).await
}

/// An approved call.
struct ActCall<'a> {
    sessions: &'a BrowserSessions,
    caller: &'a Caller,
    guard: &'a BrowserGuard,
    page: &'a Page,
    /// The approved host.
    host: Option<&'a str>,
    /// The approved sensitive files.
    sensitive: &'a SensitiveFiles,
}

impl ActCall<'_> {
    /// Carries out the steps, and describes their results and the changes of the page.
    async fn carry_out(&self, steps: &[ActionStep]) -> Result<String, BrowserError> {
        let Self { guard, page, .. } = *self;
        let mut text = String::new();
        let (document, url) = (page.document(), page.url());
        let start_host = page.host();
        for (index, step) in steps.iter().enumerate() {
            let rest = steps.len() - index;
            if index > 0 && page.host() != start_host {
                let _ = writeln!(
                    text,
                    "[the page moved to another site; {rest} steps were not carried out]"
                );
                break;
            }
            match self.carry_out_one(step).await {
                Ok(line) => {
                    let _ = writeln!(text, "{line}");
                }
                // Earlier steps have had their effects, so the result must report them.
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
            text.push_str("[the page's address changed]\n");
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
        if last.is_some_and(ActionKind::has_delayed_reaction) {
            wait_for_late_reaction(page).await;
        }
        let mut seen = observe_active(guard, &options).await;
        if seen.as_ref().is_ok_and(|seen| seen.is_same)
            && !last.is_some_and(ActionKind::has_delayed_reaction)
        {
            wait_for_late_reaction(page).await;
            seen = observe_active(guard, &options).await;
        }
        match seen {
            Ok(changes) => text.push_str(&changes.text),
            Err(error) => {
                let _ = writeln!(text, "[the page cannot be observed: {error}]");
            }
        }
        Ok(text)
    }

    async fn carry_out_one(&self, step: &ActionStep) -> Result<String, BrowserError> {
        let Self { page, host, .. } = *self;
        // The previous step may have replaced the element by an element of another site.
        let site = site_of(page, std::slice::from_ref(step)).await?;
        if site.is_some_and(|site| Some(&*site.host) != host) {
            return Err(BrowserError::Argument {
                message: "the element now belongs to another site; observe the page and call again"
                    .to_owned(),
            });
        }
        let files = self.stage(step).await?;
        let line = match secret::resolve(self.sessions, self.caller, page, step).await? {
            TypedText::Text => page.act(step, &files, host).await?,
            TypedText::Literal(remark) => {
                let line = page.act(step, &files, host).await?;
                format!("{line}\n[{remark}]")
            }
            TypedText::Secret(value) => {
                self.sessions.note_typed_secret(&self.caller.session);
                secret::type_secret(page, step, &value, host).await?
            }
        };
        // The step had its effect; the next step or observation reports any error of the page.
        if let Ok(settled) = page.settle_within(STEP_TIMEOUT).await
            && settled.pending.is_some()
            && page.is_loading()
        {
            let _ = page.settle().await;
        }
        Ok(line)
    }

    async fn stage(&self, step: &ActionStep) -> Result<Vec<PathBuf>, BrowserError> {
        let mut files = Vec::new();
        if step.action == ActionKind::Upload {
            for path in &step.values {
                let staged = self.guard.stage_upload(path, self.sensitive).await;
                files.push(staged.map_err(|error| BrowserError::Argument {
                    message: error.message,
                })?);
            }
        }
        Ok(files)
    }
}

/// Waits for reactions that a page delays until typing or the pointer has paused.
async fn wait_for_late_reaction(page: &Page) {
    tokio::time::sleep(REACTION_DELAY).await;
    // The observation that follows reports a page that is gone.
    let _ = page.settle_within(STEP_TIMEOUT).await;
}
