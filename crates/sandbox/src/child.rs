//! A command that runs.

use crate::Ended;
use std::io;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// A command that runs. Dropping it ends the command and everything that it started.
#[derive(Debug)]
pub struct Child {
    /// What the command reads, if it was started with [`Stdin::Piped`](crate::Stdin::Piped). Drop it to end the input.
    pub stdin: Option<ChildStdin>,
    /// What it prints.
    pub stdout: Option<ChildStdout>,
    /// What it complains about.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    /// Waits until the command and everything it started are gone. May be dropped and called again.
    ///
    /// An error says that the sandbox failed, not the command: if its inner value is a
    /// [`LaunchError`](crate::LaunchError), nothing of the command ran.
    pub async fn wait(&mut self) -> io::Result<Ended> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends the command and everything that it started. It is all gone when [`wait`](Self::wait) returns.
    pub fn kill(&mut self) {}
}
