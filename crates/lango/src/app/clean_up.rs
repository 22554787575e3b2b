//! Reports to the user about clean-ups after commands. The model gets the same report in a tool's result, but might
//! not pass it on.

use crate::app::notice::notice;
use lango_sandbox::{CleanUpReport, Launcher};
use std::path::PathBuf;
use std::time::Duration;

/// Prints what was cleaned up after commands since the last call.
pub fn warn() {
    lango_sandbox::take_unseen_reports()
        .iter()
        .for_each(warn_of_report);
}

/// Finishes clean-ups that a crash interrupted, and prints what they found.
pub async fn recover(launcher: &Launcher) {
    const SHORT: Duration = Duration::from_secs(1);
    let mut recovery = std::pin::pin!(launcher.recover());
    let reports = match tokio::time::timeout(SHORT, &mut recovery).await {
        Ok(reports) => reports,
        Err(_) => {
            notice("cleaning up after commands that were interrupted…");
            recovery.await
        }
    };
    reports.iter().for_each(warn_of_report);
}

fn warn_of_report(report: &CleanUpReport) {
    for remark in report.remarks() {
        notice(&format!("warning: after a command: {remark}"));
    }
    let is_git = |path: &PathBuf| path.ends_with(".git") || path.ends_with("HEAD");
    if report.removed.iter().any(is_git) {
        notice("  next: set tools.exec.allowGitInit = true to let commands create repositories");
    }
    if !report.removed.is_empty() {
        notice("  next: run `lango trash` to see what was moved");
    }
}
