//! The browser's process, with the directory that is removed after it.

use super::{PrivateDirectory, not_started};
use crate::BrowserError;
use crate::notice::shorten;
use lango_sandbox::{Child, Service};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout};

/// Time for a browser whose connection broke to end.
const END_TIME: Duration = Duration::from_secs(2);

/// Follows a browser to its end, and removes its directory then.
pub(super) fn follow(
    child: Child,
    private: Arc<PrivateDirectory>,
) -> Result<(Service, ChildStdout, ChildStdin), BrowserError> {
    // On this thread: lango may be about to exit, and would not wait for another one. It removes some hundred small files.
    let service = child.into_service(move |_| drop(private));
    let (service, stdin, stdout) = service.map_err(not_started)?;
    Ok((service, stdout, stdin))
}

/// Describes why a browser did not start: how its process ended and its last error output, or else the error of the
/// connection.
pub(super) async fn explain(service: &Service, error: BrowserError) -> String {
    let Some(end) = service.end_within(END_TIME).await else {
        return error.to_string();
    };
    let output = service.error_output();
    let last_line = output.lines().rev().find(|line| !line.trim().is_empty());
    match last_line {
        Some(line) => format!("{end}; its last output: {}", shorten(line)),
        None => end,
    }
}
