//! The four tools: what they say of themselves, and what they do with their arguments.

use super::arguments::ExecArguments;
use super::jobs::{Ground, Job};
use super::page::Position;
use super::preview::preview;
use super::request::Request;
use super::{Commands, report};
use lango_core::{
    BoxFuture, Caller, Declaration, Effect, Extent, Inspection, Risk, Subject, Tool, ToolError,
    ToolOutput, ToolSpec, Trust, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a job is watched before the call returns, so that one that fails at once is told at once.
const START_TIME: Duration = Duration::from_millis(500);

/// How long a job may take to be gone.
const STOP_TIME: Duration = Duration::from_secs(10);

const EXEC: &str = "Runs a command and waits for its end. Gives the exit code, then what it printed to both standard \
    output and standard error; the middle of a long output is left out and can be read with `exec_status`. The command \
    sees the workspace and the system's programs; it cannot write anywhere else, and nobody can type anything in.";
const EXEC_BG: &str = "Starts a command that goes on while you do other things: a server, a long build. Gives a job id \
    for `exec_status` and `exec_stop`. The command sees and may do what one of `exec` does.";
const EXEC_STATUS: &str = "Shows how a command stands and what it printed: of a job in the background, or of an earlier \
    `exec`. Without `job`, lists them all.";
const EXEC_STOP: &str = "Ends a job in the background with everything it started, and shows the end of what it printed.";

pub(super) fn exec(commands: &Commands) -> Arc<dyn Tool> {
    ExecTool::named("exec", EXEC, Ground::Fore, commands)
}

pub(super) fn exec_bg(commands: &Commands) -> Arc<dyn Tool> {
    ExecTool::named("exec_bg", EXEC_BG, Ground::Back, commands)
}

pub(super) fn exec_status(commands: &Commands) -> Arc<dyn Tool> {
    let commands = commands.clone();
    let declaration = Declaration {
        name: "exec_status",
        description: EXEC_STATUS,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    declaration.with_code(move |caller, arguments: StatusArguments| {
        let commands = commands.clone();
        async move { commands.status(&caller, &arguments) }
    })
}

pub(super) fn exec_stop(commands: &Commands) -> Arc<dyn Tool> {
    let commands = commands.clone();
    let declaration = Declaration {
        name: "exec_stop",
        description: EXEC_STOP,
        effect: Effect::Idempotent,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    declaration.with_code(move |caller, arguments: StopArguments| {
        let commands = commands.clone();
        async move { commands.stop(&caller, &arguments.job).await }
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {
    /// The id: `job_1` of a job, or `run_1` of an earlier `exec`. All are listed if not given.
    job: Option<String>,
    /// The line of the output to start with; its start and its end are shown if not given.
    from_line: Option<NonZeroU64>,
    /// How many bytes of that line to leave out, to read on in a very long line.
    skip_bytes: Option<NonZeroU64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopArguments {
    /// The id of the job, as `exec_bg` gave it.
    job: String,
}

impl Commands {
    fn status(&self, caller: &Caller, arguments: &StatusArguments) -> Result<String, ToolError> {
        let Some(id) = &arguments.job else {
            return Ok(report::list(&self.inner.jobs.of(&caller.session)));
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
        if timeout(STOP_TIME, job.ended()).await.is_err() {
            let message = format!("`{id}` was told to end and is still there; try once more");
            return Err(ToolError::new(message));
        }
        Ok(report::status(&job, None, self.policy()))
    }

    fn job(&self, caller: &Caller, id: &str) -> Result<Arc<Job>, ToolError> {
        let found = self.inner.jobs.find(&caller.session, id);
        found.ok_or_else(|| {
            ToolError::new(format!(
                "there is no job {id:?}, or none any more; see what there is with `exec_status`"
            ))
        })
    }

    /// Starts a job and says what became of it in its first moments.
    async fn start_job(&self, caller: &Caller, request: Request) -> Result<String, ToolError> {
        let job = self.run_in_background(caller, &request).await?;
        let mut call = StopOnDrop(Some(Arc::clone(&job)));
        let over = timeout(START_TIME, job.ended()).await.is_ok();
        call.0 = None;
        let id = &job.id;
        Ok(match over {
            true => format!(
                "{id} is over already: {}",
                report::result(&job, &request.policy)?
            ),
            false => format!(
                "{id} runs in the background; see how it stands with exec_status {{\"job\":\"{id}\"}}, end it with \
                 exec_stop {{\"job\":\"{id}\"}}\n"
            ),
        })
    }
}

/// Ends a job whose id nobody was told, because the call that started it was given up.
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
    ground: Ground,
}

impl ExecTool {
    fn named(
        name: &'static str,
        description: &'static str,
        ground: Ground,
        commands: &Commands,
    ) -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: schema_of::<ExecArguments>().into(),
            effect: Effect::Effect,
            risk: Risk::Dangerous,
            escalation: None,
            subject: Subject::Command,
            trust: Trust::Trusted,
        };
        Arc::new(Self {
            spec,
            commands: commands.clone(),
            ground,
        })
    }

    fn request(&self, arguments: &Value) -> Result<Request, ToolError> {
        let arguments: ExecArguments = parse_arguments(&self.spec, arguments)?;
        let limits = &self.commands.inner.limits;
        let longest = match self.ground {
            Ground::Fore => limits.time,
            Ground::Back => limits.job_time,
        };
        arguments.request(&self.commands, longest)
    }
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
            let text = match self.ground {
                Ground::Fore => self.commands.run(caller, request).await?,
                Ground::Back => self.commands.start_job(caller, request).await?,
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
            let Ok(request) = self.request(&arguments) else {
                return Inspection::default();
            };
            let inspecting = self.commands.inspect_secrets(caller, &request, self.ground);
            inspecting.await
        })
    }

    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        _extent: Extent,
    ) -> BoxFuture<'a, Option<String>> {
        let shown = match self.request(&arguments) {
            Ok(request) => preview(&request),
            Err(error) => format!("This call will fail: {error}\n"),
        };
        Box::pin(std::future::ready(Some(shown)))
    }
}
