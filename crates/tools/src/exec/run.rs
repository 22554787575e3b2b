//! Running a command: starting it in the sandbox, taking down what it prints, and seeing to its end.
//!
//! A command in the foreground is held by the call's own future, so that whoever drops the call ends the command and all
//! that it started. One in the background is held by a task of the runtime and ends with it.

use super::Commands;
use super::jobs::{Ground, Job, NewJob, State};
use super::output::Output;
use super::report;
use super::request::Request;
use lango_core::{Caller, ToolError};
use lango_net::{Credentials, Proxy};
use lango_sandbox::{
    Child, Command, Ended, LaunchError, Limits, NewFiles, PROXY_PORT, Profile, Stdin,
};
use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// How long what was printed may take to arrive after the end of a command.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// How long the start of a line waits for the rest of it before it is taken down, and how long it may become.
const LINE_TIME: Duration = Duration::from_millis(100);
const LINE_BYTES: usize = 64 * 1024;

/// The variable that names the call to the command that it runs: what must not happen twice can be done under it.
const CALL_KEY: &str = "LANGO_CALL_KEY";

impl Commands {
    /// Runs a command to its end and says how it went.
    pub(crate) async fn run(&self, caller: &Caller, request: Request) -> Result<String, ToolError> {
        let (job, mut child) = self.start(caller, &request, Ground::Fore).await?;
        let abandoned = EndOnDrop(&job);
        let ended = follow(&mut child, &job).await;
        job.end(state_after(ended, &job));
        drop(abandoned);
        report::result(&job, &request.policy)
    }

    /// Starts a command that lives on.
    pub(crate) async fn run_in_background(
        &self,
        caller: &Caller,
        request: &Request,
    ) -> Result<Arc<Job>, ToolError> {
        let (job, mut child) = self.start(caller, request, Ground::Back).await?;
        let task = Arc::clone(&job);
        tokio::spawn(async move {
            let _abandoned = EndOnDrop(&task);
            let ended = follow(&mut child, &task).await;
            task.end(state_after(ended, &task));
        });
        Ok(job)
    }

    /// Starts a command. Called inside of the runtime, which from then on watches it.
    async fn start(
        &self,
        caller: &Caller,
        request: &Request,
        ground: Ground,
    ) -> Result<(Arc<Job>, Child), ToolError> {
        let inner = &self.inner;
        let output = inner.outputs.create(caller).map_err(|error| {
            ToolError::new(format!(
                "the command was not run: lango has no place for what it prints: {error}"
            ))
        })?;
        let found = self.find_secrets(caller, &request.words).await;
        let new = NewJob {
            is_exclusive: found.sees_values,
            ground,
            session: caller.session.clone(),
            command: request.words.short(),
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
        let secrets = match self.command_secrets(caller, request, ground, found).await {
            Ok(secrets) => secrets,
            Err(message) => {
                job.end(State::Failed(message.clone()));
                return Err(ToolError::trusted(message));
            }
        };
        if let Some(access) = &inner.secrets {
            job.output.mask(access.masks());
        }
        env.extend(secrets.variables);
        if let Some(file) = secrets.certificates {
            policy.read.push(file.clone());
            policy.kept.push(file);
        }
        job.traffic.add_remarks(secrets.remarks);
        let command = Command {
            argv: request.words.argv(),
            cwd: request.cwd.clone(),
            env,
            stdin: Stdin::Null,
            limits: Limits {
                time: Some(request.time),
                ..inner.limits.command
            },
            new_files: NewFiles::Remove,
            profile: Profile::Command,
        };
        // It reads the workspace first, and nothing else may stand still for that.
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
                job.end(State::Failed(message.clone()));
                Err(ToolError::new(message))
            }
        }
    }

    /// Serves the network of a command that was started, where there is a proxy for it.
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

/// Ends a job's record when nobody follows the command any more; the command itself ends with its [`Child`].
struct EndOnDrop<'a>(&'a Job);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end(State::Abandoned);
    }
}

/// Takes down what a command prints until it ended, and ends it when that is asked.
async fn follow(child: &mut Child, job: &Job) -> io::Result<Ended> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut printed = pin!(async {
        tokio::join!(
            take_down(stdout, &job.output),
            take_down(stderr, &job.output)
        );
    });
    let mut stop = pin!(job.stop_asked());
    let (mut silent, mut stopping) = (false, false);
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended,
            () = &mut printed, if !silent => silent = true,
            () = &mut stop, if !stopping => {
                stopping = true;
                child.kill();
            }
        }
    };
    if !silent && timeout(DRAIN_TIME, printed).await.is_err() {
        job.output
            .push(b"\n[the end of the output did not arrive]\n");
    }
    ended
}

/// Takes down one of the two things that a command prints, whole lines at a time so that they do not mix.
async fn take_down(pipe: Option<impl AsyncRead + Unpin>, output: &Output) {
    let Some(mut pipe) = pipe else { return };
    let mut line = Vec::new();
    let mut buffer = vec![0; LINE_BYTES];
    loop {
        let read = pipe.read(&mut buffer);
        let arrived = match line.is_empty() {
            true => Ok(read.await),
            false => timeout(LINE_TIME, read).await,
        };
        let bytes = match arrived {
            Ok(Ok(count @ 1..)) => &buffer[..count],
            Ok(Ok(0) | Err(_)) => break,
            Err(_elapsed) => {
                push_characters(&mut line, output);
                continue;
            }
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let (whole, rest) = bytes.split_at(whole.map_or(0, |at| at + 1));
        if !whole.is_empty() {
            line.extend_from_slice(whole);
            output.push(&std::mem::take(&mut line));
        }
        line.extend_from_slice(rest);
        if line.len() >= LINE_BYTES {
            push_characters(&mut line, output);
        }
    }
    output.push(&line);
}

/// Takes down the start of a line, but for a character at its end of which a part is still to come.
fn push_characters(line: &mut Vec<u8>, output: &Output) {
    let whole = match std::str::from_utf8(line) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => line.len(),
    };
    let rest = line.split_off(whole);
    output.push(&std::mem::replace(line, rest));
}

fn state_after(ended: io::Result<Ended>, job: &Job) -> State {
    match ended {
        Ok(ended) => {
            // The model is told in the result; it must not be the only one who knows.
            lango_sandbox::add_unseen_report(ended.clean_up.clone());
            State::Ended(ended, job.elapsed())
        }
        Err(error) => State::Failed(sandbox_failure(&error)),
    }
}

/// What is said when not the command failed but what should hold it.
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
