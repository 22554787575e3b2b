//! `lango store restore`: restores the database from a backup.

use crate::screen::{self, count};
use lango::app::{App, Failure, restore};
use lango_server::InFlight;
use std::path::PathBuf;

/// Runs the command.
pub(super) async fn restore(app: &App, from: Option<PathBuf>) -> Result<(), Failure> {
    let InFlight { turns, tasks } = restore::restore(app, from).await?;
    screen::print(&format!(
        "restored; in flight when the backup was made: {} and {}",
        count(turns, "turn"),
        count(tasks, "task")
    ))?;
    if turns + tasks > 0 {
        screen::say(
            "they may have continued after the backup, so lango asks before it resumes them: see `lango approvals` while `lango serve` runs",
        );
    }
    Ok(())
}
