//! `lango doctor`: checks the installation.

use crate::args::DoctorArguments;
use crate::exit::Exit;
use crate::screen::{self, Layout};
use lango::app::Failure;
use lango::app::doctor::{CheckStatus, Finding, ModelCheck, rows, run_checks};

/// Runs the command.
pub(super) async fn doctor(
    config: Vec<String>,
    arguments: DoctorArguments,
) -> Result<Exit, Failure> {
    let model_check = if arguments.offline {
        ModelCheck::Skip
    } else {
        ModelCheck::Call
    };
    let (findings, kind) = run_checks(config, model_check).await;
    if arguments.json {
        screen::print(&screen::json(&rows(&findings), Layout::Indented)?)?;
    } else {
        for finding in &findings {
            // Continuation lines are aligned with the first one.
            let detail = finding.detail.replace('\n', "\n                 ");
            let symbol = symbol(finding.status);
            screen::print(&format!("{symbol} {:<14} {detail}", finding.name))?;
        }
    }
    let has_failed = |finding: &Finding| finding.status == CheckStatus::Failed;
    Ok(if findings.iter().any(has_failed) {
        kind.into()
    } else {
        Exit::Ok
    })
}

fn symbol(status: CheckStatus) -> char {
    match status {
        CheckStatus::Passed => '✓',
        CheckStatus::Absent => '–',
        CheckStatus::Warning => '!',
        CheckStatus::Failed => '✗',
    }
}
