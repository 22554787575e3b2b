//! Runs commands: starts them in the sandbox, records their output and handles their end.
//!
//! The future of a call owns its foreground command, so dropping the call ends the command and all processes it
//! started. A task of the runtime owns a background command, which ends with the task.

use super::Commands;
use super::jobs::{Job, JobState, NewJob, RunMode};
use super::output::Output;
use super::report;
use super::request::CommandRequest;
use super::terminal_text::OutputPipe;
use lango_core::{Caller, ToolError};
use lango_net::{Credentials, Proxy};
use lango_sandbox::{
    Child, Command, CommandOutcome, LaunchError, NewFiles, PROXY_PORT, ResourceLimits,
    SandboxProfile, Stdin,
};
use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// How long to wait for the rest of the output after a command has ended.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// How long, and up to which size, to wait for the end of an incomplete line before recording it.
const LINE_TIME: Duration = Duration::from_millis(100);
const LINE_BYTES: usize = 64 * 1024;

/// The variable with the key of the call. Commands can use it as an idempotency key.
const CALL_KEY: &str = "LANGO_CALL_KEY";

impl Commands {
    /// Runs a command until it ends and returns its formatted result.
    pub(crate) async fn run(
        &self,
        caller: &Caller,
        request: CommandRequest,
    ) -> Result<String, ToolError> {
        let (job, mut child) = self.start(caller, &request, RunMode::Foreground).await?;
        let abandoned = AbandonOnDrop(&job);
        let ended = supervise(&mut child, &job).await;
        job.end(state_after(ended, &job));
        drop(abandoned);
        report::result(&job, &request)
    }

    /// Starts a background command.
    pub(crate) async fn run_in_background(
        &self,
        caller: &Caller,
        request: &CommandRequest,
    ) -> Result<Arc<Job>, ToolError> {
        let (job, mut child) = self.start(caller, request, RunMode::Background).await?;
        let task = Arc::clone(&job);
        tokio::spawn(async move {
            let _abandoned = AbandonOnDrop(&task);
            let ended = supervise(&mut child, &task).await;
            task.end(state_after(ended, &task));
        });
        Ok(job)
    }

    /// Starts a command. Must be called inside the runtime, which then watches the command.
    async fn start(
        &self,
        caller: &Caller,
        request: &CommandRequest,
        mode: RunMode,
    ) -> Result<(Arc<Job>, Child), ToolError> {
        let inner = &self.inner;
        let output = inner.outputs.create(caller).map_err(|error| {
            ToolError::new(format!(
                "the command was not run: lango cannot store its output: {error}"
            ))
        })?;
        let found = self.look_up_secrets(caller, &request.command_line).await;
        let new = NewJob {
            is_exclusive: found.sees_values,
            mode,
            session: caller.session.clone(),
            command: request.command_line.summary(),
            time: request.time,
            output,
        };
        let job = inner.jobs.add(new).map_err(ToolError::new)?;
        let mut env = vec![(CALL_KEY.into(), caller.key().into())];
        if inner.proxy.is_some() {
            let variables = Proxy::variables(PROXY_PORT);
            env.extend(variables.map(|(name, value)| (name.into(), value.into())));
        }
        let mut policy = request.policy.clone();
        let secrets = match self.command_secrets(caller, request, mode, found).await {
            Ok(secrets) => secrets,
            Err(message) => {
                job.end(JobState::Failed(message.clone()));
                return Err(ToolError::trusted(message));
            }
        };
        if let Some(access) = &inner.secrets {
            job.output.mask(access.masks());
        }
        // A background job outlives the call.
        if mode == RunMode::Foreground {
            job.output.show_in(&caller.output);
        }
        env.extend(secrets.variables);
        if let Some(file) = secrets.certificates {
            policy.read.push(file.clone());
            policy.read_only.push(file);
        }
        job.traffic.add_remarks(secrets.remarks);
        let command = Command {
            argv: request.command_line.argv(),
            cwd: request.cwd.clone(),
            env,
            stdin: Stdin::Null,
            limits: ResourceLimits {
                time: Some(request.time),
                ..inner.limits.command
            },
            new_files: NewFiles::Remove,
            profile: SandboxProfile::Command,
        };
        // `spawn` reads the workspace first, which must not block the runtime.
        let launcher = inner.launcher.clone();
        let started = tokio::task::spawn_blocking(move || launcher.spawn(&policy, command));
        let started = started.await.unwrap_or_else(|failure| {
            Err(LaunchError::Layer {
                what: failure.to_string(),
            })
        });
        match self.serve(caller, &job, started, secrets.credentials).await {
            Ok(child) => Ok((job, child)),
            Err(error) => {
                let message = sandbox_failure(&error);
                job.end(JobState::Failed(message.clone()));
                Err(ToolError::new(message))
            }
        }
    }

    /// Serves the network of a started command if it has a proxy.
    async fn serve(
        &self,
        caller: &Caller,
        job: &Job,
        started: Result<Child, LaunchError>,
        credentials: Option<Credentials>,
    ) -> io::Result<Child> {
        let mut child = started?;
        if let Some(proxy) = &self.inner.proxy {
            let serving = proxy.serve(&mut child, caller, credentials);
            job.traffic.start(serving.await?);
        }
        Ok(child)
    }
}

/// Marks a job as abandoned if its call is dropped. The command itself ends with its [`Child`].
struct AbandonOnDrop<'a>(&'a Job);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end(JobState::Abandoned);
    }
}

/// Records the output of a command until it has ended, and kills it on request.
async fn supervise(child: &mut Child, job: &Job) -> io::Result<CommandOutcome> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut printed = pin!(async {
        tokio::join!(
            record(OutputPipe::Stdout, stdout, &job.output),
            record(OutputPipe::Stderr, stderr, &job.output)
        );
    });
    let mut stop = pin!(job.wait_for_stop_request());
    let (mut is_drained, mut is_stopping) = (false, false);
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended,
            () = &mut printed, if !is_drained => is_drained = true,
            () = &mut stop, if !is_stopping => {
                is_stopping = true;
                child.kill();
            }
        }
    };
    if !is_drained && timeout(DRAIN_TIME, printed).await.is_err() {
        let note = b"\n[the end of the output did not arrive]\n";
        job.output.push(OutputPipe::Stdout, note);
    }
    ended
}

/// Records standard output or standard error, in whole lines so that the two do not mix within a line.
async fn record(pipe: OutputPipe, reader: Option<impl AsyncRead + Unpin>, output: &Output) {
    let Some(mut reader) = reader else { return };
    let mut line = Vec::new();
    let mut buffer = vec![0; LINE_BYTES];
    let mut is_quiet = true;
    loop {
        let read = reader.read(&mut buffer);
        let arrived = if is_quiet {
            Ok(read.await)
        } else {
            timeout(LINE_TIME, read).await
        };
        let bytes = match arrived {
            Ok(Ok(count @ 1..)) => &buffer[..count],
            Ok(Ok(0) | Err(_)) => break,
            Err(_elapsed) => {
                push_characters(pipe, &mut line, output);
                output.end_lines(pipe);
                is_quiet = line.is_empty();
                continue;
            }
        };
        is_quiet = false;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let (whole, rest) = bytes.split_at(whole.map_or(0, |at| at + 1));
        if !whole.is_empty() {
            line.extend_from_slice(whole);
            output.push(pipe, &std::mem::take(&mut line));
        }
        line.extend_from_slice(rest);
        if line.len() >= LINE_BYTES {
            push_characters(pipe, &mut line, output);
        }
        // A command that prints without end leaves time for the keys of the user.
        tokio::task::yield_now().await;
    }
    output.push(pipe, &line);
}

/// Records the start of a line, without an incomplete character at its end.
fn push_characters(pipe: OutputPipe, line: &mut Vec<u8>, output: &Output) {
    let whole = match std::str::from_utf8(line) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => line.len(),
    };
    let rest = line.split_off(whole);
    output.push(pipe, &std::mem::replace(line, rest));
}

fn state_after(ended: io::Result<CommandOutcome>, job: &Job) -> JobState {
    match ended {
        Ok(ended) => {
            // The result tells the model; this tells the user too.
            lango_sandbox::add_unseen_report(ended.clean_up.clone());
            JobState::Ended(ended, job.elapsed())
        }
        Err(error) => JobState::Failed(sandbox_failure(&error)),
    }
}

/// Formats a failure of the sandbox, as opposed to one of the command, with all its causes.
fn sandbox_failure(error: &dyn Error) -> String {
    let mut text = format!("the command could not be run in the sandbox: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(&format!(": {more}"));
        }
        cause = error.source();
    }
    text
}
