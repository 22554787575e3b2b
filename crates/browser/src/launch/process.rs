//! The browser's process. Its private directory is removed when it ends.

use super::{PrivateDirectory, not_started};
use crate::BrowserError;
use crate::notice::shorten;
use lango_sandbox::{Child, SandboxedService};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout};

/// Timeout for a browser to exit after its connection was lost.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Watches a browser process, and removes its directory when it ends.
pub(super) fn watch(
    child: Child,
    private: Arc<PrivateDirectory>,
) -> Result<(SandboxedService, ChildStdout, ChildStdin), BrowserError> {
    // The directory (a few hundred small files) is removed on the thread that watches the process: lango may be about
    // to exit and would not wait for another thread.
    let service = child.into_service(move |_| drop(private));
    let (service, stdin, stdout) = service.map_err(not_started)?;
    Ok((service, stdout, stdin))
}

/// Describes why a browser did not start: its exit status and last error output if its process ended, otherwise the
/// connection error.
pub(super) async fn explain(service: &SandboxedService, error: BrowserError) -> String {
    let Some(end) = service.end_within(EXIT_TIMEOUT).await else {
        return error.to_string();
    };
    let output = service.error_output();
    let last_line = output.lines().rev().find(|line| !line.trim().is_empty());
    match last_line {
        Some(line) => format!("{end}; its last output: {}", shorten(line)),
        None => end,
    }
}
