//! `lango store move`: moves a database with progress output.

use crate::exit::Exit;
use crate::screen::{self, ProgressBar, count};
use lango::app::Failure;
use lango::app::transfer::{self, MovedDatabase};
use lango_store::transfer::{TransferProgress, TransferStage};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Runs the command.
pub(super) async fn transfer(config: Vec<String>, from: &str, to: &str) -> Result<Exit, Failure> {
    let mut reporter = ProgressReporter::new();
    let moved = transfer::transfer(config, from, to, &mut |step| reporter.report(step)).await;
    reporter.bar.clear();
    let moved = moved?;
    report(&moved)?;
    Ok(match moved.report.damaged {
        0 => Exit::Ok,
        _ => Exit::Failed,
    })
}

fn report(
    MovedDatabase {
        report: moved,
        place,
    }: &MovedDatabase,
) -> Result<(), Failure> {
    screen::print(&format!(
        "moved {}, {} and all related data, {}; every row was compared and every log verified",
        count(moved.sessions, "session"),
        count(moved.events, "event"),
        count(moved.rows, "row")
    ))?;
    if moved.damaged > 0 {
        let damaged = count(moved.damaged, "session");
        screen::say(&format!(
            "{damaged} damaged, as they were before the move; run `lango sessions verify --all` to list them"
        ));
    }
    screen::print(&format!(
        "next: set session.store = \"{place}\"; the old database is unchanged"
    ))?;
    Ok(())
}

/// Interval between progress lines if there is no terminal.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Progress output: a bar on a terminal; otherwise a line for each table that is not empty, and one at regular
/// intervals.
struct ProgressReporter {
    bar: ProgressBar,
    is_terminal: bool,
    last_report: Option<(TransferStage, Instant)>,
}

impl ProgressReporter {
    fn new() -> Self {
        Self {
            bar: ProgressBar::new(),
            is_terminal: std::io::stderr().is_terminal(),
            last_report: None,
        }
    }

    fn report(&mut self, progress: TransferProgress) {
        let TransferProgress { stage, done, total } = progress;
        let stage = match stage {
            TransferStage::Copying(table) => format!("copying {table}"),
            TransferStage::Comparing(table) => format!("comparing {table}"),
            TransferStage::CheckingLogs => "checking logs".to_owned(),
        };
        if self.is_terminal {
            let share = screen::progress_share(done, total);
            return self.bar.show(&format!("{share}  {stage}"));
        }
        let is_recent = match self.last_report {
            Some((stage, time)) => stage == progress.stage && time.elapsed() < REPORT_INTERVAL,
            None => false,
        };
        if !is_recent && progress.total > 0 {
            self.last_report = Some((progress.stage, Instant::now()));
            screen::say(&format!("{stage}: {done} of {total}"));
        }
    }
}
