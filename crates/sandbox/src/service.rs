//! A command that serves lango over its pipes and runs until its handle is dropped, such as an MCP server or a browser.

use crate::{Child, CommandOutcome};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, watch};

/// Number of bytes that are kept from the end of the error output.
const TAIL_BYTES: usize = 8 << 10;

/// A handle of a running service. Dropping the last clone kills the command and all processes it started.
#[derive(Debug, Clone)]
pub struct SandboxedService {
    stop: Arc<StopOnDrop>,
    ended: watch::Receiver<Option<Result<CommandOutcome, String>>>,
    error_output: Arc<Mutex<VecDeque<u8>>>,
}

#[derive(Debug)]
struct StopOnDrop(Arc<Notify>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Child {
    /// Turns a command with piped input into a service. Calls `after_end` when the command and all processes it started
    /// have ended, with `None` if the sandbox failed.
    pub fn into_service(
        mut self,
        after_end: impl FnOnce(Option<&CommandOutcome>) + Send + 'static,
    ) -> io::Result<(SandboxedService, ChildStdin, ChildStdout)> {
        let pipes = (self.stdin.take(), self.stdout.take(), self.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the command has no pipes"));
        };
        let error_output = Arc::default();
        tokio::spawn(collect_tail(stderr, Arc::clone(&error_output)));
        let stop = Arc::new(Notify::new());
        let (sender, ended) = watch::channel(None);
        tokio::spawn(supervise(self, Arc::clone(&stop), after_end, sender));
        let service = SandboxedService {
            stop: Arc::new(StopOnDrop(stop)),
            ended,
            error_output,
        };
        Ok((service, stdin, stdout))
    }
}

impl SandboxedService {
    /// Kills the command and all processes it started.
    pub fn kill(&self) {
        self.stop.0.notify_one();
    }

    /// Waits for the end and describes it; `None` if the service still runs after `time`.
    pub async fn end_within(&self, time: Duration) -> Option<String> {
        let mut ended = self.ended.clone();
        let waiting = ended.wait_for(Option::is_some);
        let ended = tokio::time::timeout(time, waiting).await.ok()?.ok()?;
        Some(match ended.as_ref()? {
            Ok(ended) => ended.to_string(),
            Err(error) => format!("the sandbox failed: {error}"),
        })
    }

    /// Returns the end of the error output, without control characters other than line breaks and tabs.
    pub fn error_output(&self) -> String {
        let tail = self
            .error_output
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (one, two) = tail.as_slices();
        let text = String::from_utf8_lossy(&[one, two].concat()).into_owned();
        text.chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect()
    }
}

async fn supervise(
    mut child: Child,
    stop: Arc<Notify>,
    after_end: impl FnOnce(Option<&CommandOutcome>),
    sender: watch::Sender<Option<Result<CommandOutcome, String>>>,
) {
    let outcome = tokio::select! {
        outcome = child.wait() => Some(outcome),
        () = stop.notified() => None,
    };
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => {
            child.kill();
            child.wait().await
        }
    };
    // Called before the end is published, so that its effects are complete when callers see the end.
    after_end(outcome.as_ref().ok());
    sender.send_replace(Some(outcome.map_err(|error| error.to_string())));
}

async fn collect_tail(mut output: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = output.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&buffer[..length]);
        let surplus = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..surplus);
    }
}
