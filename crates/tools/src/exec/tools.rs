//! The four command tools: their specifications, and how they handle a call.

use super::arguments::ExecArguments;
use super::jobs::{Job, RunMode};
use super::page::Position;
use super::preview::preview;
use super::request::CommandRequest;
use super::{Commands, report};
use crate::change::CHANGED_SINCE_CHECK;
use lango_core::{
    BoxFuture, Caller, Effect, Inspection, PreviewRequest, Risk, RuleSubject, Tool,
    ToolDeclaration, ToolError, ToolOutput, ToolSpec, Trust, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long `exec_bg` watches a new job before it returns, so that it can report an immediate failure.
const START_TIME: Duration = Duration::from_millis(500);

/// How long `exec_stop` waits for the job to end.
const STOP_TIME: Duration = Duration::from_secs(10);

const EXEC: &str = "Runs a command and waits until it ends. Returns the exit code, then the standard output and \
    standard error; the middle of a long output is omitted and can be read with `exec_status`. The command sees the \
    workspace and the system's programs. It can write only in the workspace, and its standard input is empty.";
const EXEC_BG: &str = "Starts a command that runs in the background while you do other things: a server, a long build. \
    Returns a job id for `exec_status` and `exec_stop`. The command has the same access as a command of `exec`.";
const EXEC_STATUS: &str = "Shows the status and the output of a background job or of an earlier `exec`. Without `job`, \
    lists them all.";
const EXEC_STOP: &str =
    "Stops a background job and all processes it started, and shows the end of its output.";

pub(super) fn exec(commands: &Commands) -> Arc<dyn Tool> {
    ExecTool::named("exec", EXEC, RunMode::Foreground, commands)
}

pub(super) fn exec_bg(commands: &Commands) -> Arc<dyn Tool> {
    ExecTool::named("exec_bg", EXEC_BG, RunMode::Background, commands)
}

pub(super) fn exec_status(commands: &Commands) -> Arc<dyn Tool> {
    let commands = commands.clone();
    let declaration = ToolDeclaration {
        name: "exec_status",
        description: EXEC_STATUS,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    declaration.with_code(move |caller, arguments: StatusArguments| {
        let commands = commands.clone();
        async move { commands.status(&caller, &arguments) }
    })
}

pub(super) fn exec_stop(commands: &Commands) -> Arc<dyn Tool> {
    let commands = commands.clone();
    let declaration = ToolDeclaration {
        name: "exec_stop",
        description: EXEC_STOP,
        effect: Effect::Idempotent,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    declaration.with_code(move |caller, arguments: StopArguments| {
        let commands = commands.clone();
        async move { commands.stop(&caller, &arguments.job).await }
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {
    /// The id: `job_1` of a job, or `run_1` of an earlier `exec`. Without it, all are listed.
    job: Option<String>,
    /// The line of the output to start with; without it, the start and the end are shown.
    from_line: Option<NonZeroU64>,
    /// Number of bytes of that line to skip, to continue in a very long line.
    skip_bytes: Option<NonZeroU64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopArguments {
    /// The id of the job, as returned by `exec_bg`.
    job: String,
}

impl Commands {
    fn status(&self, caller: &Caller, arguments: &StatusArguments) -> Result<String, ToolError> {
        let Some(id) = &arguments.job else {
            return Ok(report::list(&self.inner.jobs.of_session(&caller.session)));
        };
        let job = self.job(caller, id)?;
        let start = Position {
            line: arguments.from_line.map_or(1, NonZeroU64::get),
            skip_bytes: arguments.skip_bytes.map_or(0, NonZeroU64::get),
        };
        let asked = arguments.from_line.is_some() || arguments.skip_bytes.is_some();
        Ok(report::status(&job, asked.then_some(start), self.policy()))
    }

    async fn stop(&self, caller: &Caller, id: &str) -> Result<String, ToolError> {
        let job = self.job(caller, id)?;
        job.stop();
        if timeout(STOP_TIME, job.wait_until_ended()).await.is_err() {
            let message = format!("`{id}` has not ended yet; try again");
            return Err(ToolError::new(message));
        }
        Ok(report::status(&job, None, self.policy()))
    }

    fn job(&self, caller: &Caller, id: &str) -> Result<Arc<Job>, ToolError> {
        let found = self.inner.jobs.find(&caller.session, id);
        found.ok_or_else(|| {
            ToolError::new(format!(
                "job {id:?} does not exist or is no longer known; list the jobs with `exec_status`"
            ))
        })
    }

    /// Starts a job and watches it briefly, to report an immediate end.
    async fn start_job(
        &self,
        caller: &Caller,
        request: CommandRequest,
    ) -> Result<String, ToolError> {
        let job = self.run_in_background(caller, &request).await?;
        let mut call = StopOnDrop(Some(Arc::clone(&job)));
        let has_ended = timeout(START_TIME, job.wait_until_ended()).await.is_ok();
        call.0 = None;
        let id = &job.id;
        Ok(if has_ended {
            format!(
                "{id} has already ended: {}",
                report::result(&job, &request)?
            )
        } else {
            format!(
                "{id} runs in the background; check it with exec_status {{\"job\":\"{id}\"}}, stop it with exec_stop \
                 {{\"job\":\"{id}\"}}\n"
            )
        })
    }
}

/// Stops a job if the call that started it is dropped before it returned the job's id.
struct StopOnDrop(Option<Arc<Job>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(job) = &self.0 {
            job.stop();
        }
    }
}

/// `exec` and `exec_bg`.
struct ExecTool {
    spec: ToolSpec,
    commands: Commands,
    mode: RunMode,
}

impl ExecTool {
    fn named(
        name: &'static str,
        description: &'static str,
        mode: RunMode,
        commands: &Commands,
    ) -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: schema_of::<ExecArguments>().into(),
            effect: Effect::NonIdempotent,
            risk: Risk::Dangerous,
            escalation: None,
            subject: RuleSubject::Command,
            trust: Trust::Trusted,
        };
        Arc::new(Self {
            spec,
            commands: commands.clone(),
            mode,
        })
    }

    fn request(&self, arguments: &Value) -> Result<CommandRequest, ToolError> {
        let arguments: ExecArguments = parse_arguments(&self.spec, arguments)?;
        let limits = &self.commands.inner.limits;
        let longest = match self.mode {
            RunMode::Foreground => limits.time,
            RunMode::Background => limits.job_time,
        };
        arguments.request(&self.commands, longest)
    }
}

/// Fails if the `cwd` led to another folder when the call was inspected, because the same words can run another program
/// there.
fn expect_inspected_folder(
    request: &CommandRequest,
    inspection: &Inspection,
) -> Result<(), ToolError> {
    if request.cwd_resolution == inspection.path {
        return Ok(());
    }
    Err(ToolError::new(
        "nothing was run, because `cwd` leads to another place than when the call was checked; call again, so that it is \
         checked again",
    ))
}

impl Tool for ExecTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let request = self.request(&arguments)?;
            expect_inspected_folder(&request, &caller.inspection)?;
            let text = match self.mode {
                RunMode::Foreground => self.commands.run(caller, request).await?,
                RunMode::Background => self.commands.start_job(caller, request).await?,
            };
            Ok(text.into())
        })
    }

    fn inspect<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        Box::pin(async move {
            let request = match self.request(&arguments) {
                Ok(request) => request,
                // No user is asked about a command that cannot run, and none that was shown as failing runs later.
                Err(error) => {
                    return Inspection {
                        refused: Some(error.message.into()),
                        ..Inspection::default()
                    };
                }
            };
            let inspecting = self.commands.inspect_secrets(caller, &request, self.mode);
            Inspection {
                path: request.cwd_resolution.clone(),
                ..inspecting.await
            }
        })
    }

    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        shown: PreviewRequest,
    ) -> BoxFuture<'a, Option<String>> {
        let shown = match self.request(&arguments) {
            Ok(request) if request.cwd_resolution != shown.inspection.path => {
                CHANGED_SINCE_CHECK.to_owned()
            }
            Ok(request) => preview(&request),
            Err(error) => format!("This call will fail: {error}\n"),
        };
        Box::pin(std::future::ready(Some(shown)))
    }
}
