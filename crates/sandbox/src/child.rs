//! A running command.

use crate::{CommandOutcome, LaunchError, Listeners};
use std::io;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;

/// A running command. Dropping it kills the command and all processes it started.
#[derive(Debug)]
pub struct Child {
    /// The command's input, if it was started with [`Stdin::Piped`](crate::Stdin::Piped). Drop it to close the input.
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    handover: Option<Handover>,
    lifeline: Option<Lifeline>,
    ended: oneshot::Receiver<WaitResult>,
    result: Option<WaitResult>,
}

/// How the command ended, or why the sandbox failed.
pub(crate) type WaitResult = Result<CommandOutcome, String>;
/// Dropping it tells the helper inside the sandbox and the supervising task outside to end the command.
pub(crate) type Lifeline = (PipeEnd, oneshot::Sender<()>);
/// The socket over which the listeners of a command with [`Network::Proxied`](crate::Network::Proxied) arrive.
#[cfg(target_os = "linux")]
pub(crate) type Handover = tokio::net::UnixStream;
#[cfg(not(target_os = "linux"))]
pub(crate) type Handover = std::convert::Infallible;
/// The end of a pipe to the helper, which exists only on Linux.
#[cfg(target_os = "linux")]
type PipeEnd = std::os::fd::OwnedFd;
#[cfg(not(target_os = "linux"))]
type PipeEnd = ();

impl Child {
    pub(crate) fn new(
        (stdin, stdout, stderr): (Option<ChildStdin>, ChildStdout, ChildStderr),
        handover: Option<Handover>,
        lifeline: Lifeline,
        ended: oneshot::Receiver<WaitResult>,
    ) -> Self {
        Self {
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            handover,
            lifeline: Some(lifeline),
            ended,
            result: None,
        }
    }

    /// Waits until the command and all processes it started have ended. The future may be dropped and created again.
    ///
    /// An error means that the sandbox failed and the command did not run. The error's inner value is a
    /// [`LaunchError`]. The limits are enforced whether or not the caller waits.
    pub async fn wait(&mut self) -> io::Result<CommandOutcome> {
        if self.result.is_none() {
            let result = (&mut self.ended).await;
            self.result =
                Some(result.unwrap_or_else(|_| Err("the runtime was shut down".to_string())));
        }
        match &self.result {
            Some(Ok(ended)) => Ok(ended.clone()),
            Some(Err(what)) => Err(LaunchError::Layer { what: what.clone() }.into()),
            None => Err(io::ErrorKind::Other.into()),
        }
    }

    /// Receives the listeners of a command that was started with [`Network::Proxied`](crate::Network::Proxied). They
    /// can be taken once, and arrive before the command starts. The future may be dropped and created again.
    ///
    /// If the sandbox failed, returns the error of [`wait`](Self::wait).
    pub async fn listeners(&mut self) -> io::Result<Listeners> {
        let Some(handover) = &self.handover else {
            return Err(io::Error::other(
                "the command has no listeners, or they were already taken",
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
            "the command ended before its listeners arrived",
        ))
    }

    /// Kills the command and all processes it started. They have ended when [`wait`](Self::wait) returns.
    pub fn kill(&mut self) {
        self.lifeline = None;
    }
}
