//! A command that runs.

use crate::{Ended, LaunchError, Listeners};
use std::io;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;

/// A command that runs. Dropping it ends the command and everything that it started.
#[derive(Debug)]
pub struct Child {
    /// What the command reads, if it was started with [`Stdin::Piped`](crate::Stdin::Piped). Drop it to end the input.
    pub stdin: Option<ChildStdin>,
    /// What it prints.
    pub stdout: Option<ChildStdout>,
    /// What it complains about.
    pub stderr: Option<ChildStderr>,
    handover: Option<Handover>,
    lifeline: Option<Lifeline>,
    ended: oneshot::Receiver<Outcome>,
    outcome: Option<Outcome>,
}

/// How it ended, or why the sandbox did not hold.
pub(crate) type Outcome = Result<Ended, String>;
/// What the helper inside and the keeper outside see break.
pub(crate) type Lifeline = (Line, oneshot::Sender<()>);
/// Where the listeners of a command with a network of its own come from.
#[cfg(target_os = "linux")]
pub(crate) type Handover = tokio::net::UnixStream;
#[cfg(not(target_os = "linux"))]
pub(crate) type Handover = std::convert::Infallible;
/// The end of a pipe to the helper, where there is one.
#[cfg(target_os = "linux")]
type Line = std::os::fd::OwnedFd;
#[cfg(not(target_os = "linux"))]
type Line = ();

impl Child {
    pub(crate) fn new(
        (stdin, stdout, stderr): (Option<ChildStdin>, ChildStdout, ChildStderr),
        handover: Option<Handover>,
        lifeline: Lifeline,
        ended: oneshot::Receiver<Outcome>,
    ) -> Self {
        Self {
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            handover,
            lifeline: Some(lifeline),
            ended,
            outcome: None,
        }
    }

    /// Waits until the command and everything it started are gone. May be dropped and called again.
    ///
    /// An error says that the sandbox failed, not the command: its inner value is a [`LaunchError`], and nothing of the
    /// command ran. Limits hold whether or not anyone waits.
    pub async fn wait(&mut self) -> io::Result<Ended> {
        if self.outcome.is_none() {
            let outcome = (&mut self.ended).await;
            self.outcome =
                Some(outcome.unwrap_or_else(|_| Err("the runtime was shut down".to_string())));
        }
        match &self.outcome {
            Some(Ok(ended)) => Ok(ended.clone()),
            Some(Err(what)) => Err(LaunchError::Layer { what: what.clone() }.into()),
            None => Err(io::ErrorKind::Other.into()),
        }
    }

    /// The listeners of a command that was started with [`Network::Proxied`](crate::Network::Proxied), once; before them, nothing
    /// of the command runs. May be dropped and called again.
    ///
    /// If the sandbox failed, the error is that of [`wait`](Self::wait).
    pub async fn listeners(&mut self) -> io::Result<Listeners> {
        let Some(handover) = &self.handover else {
            return Err(io::Error::other(
                "the command has no listeners, or they were taken already",
            ));
        };
        #[cfg(target_os = "linux")]
        let received = crate::listeners::receive(handover).await;
        #[cfg(not(target_os = "linux"))]
        let received: io::Result<Option<Listeners>> = match *handover {};
        if let Some(listeners) = received? {
            self.handover = None;
            return Ok(listeners);
        }
        self.wait().await?;
        Err(io::Error::other(
            "the command ended before its listeners came",
        ))
    }

    /// Ends the command and everything that it started. It is all gone when [`wait`](Self::wait) returns.
    pub fn kill(&mut self) {
        self.lifeline = None;
    }
}
