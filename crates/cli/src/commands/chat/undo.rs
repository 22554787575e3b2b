//! `/undo` and `/diff`: restores and shows what file tools changed.

use super::Chat;
use crate::screen::{self, count};
use lango::app::Failure;
use lango::app::undo::{DiffChoice, UndoChoice};
use lango_core::text::sanitize;
use lango_tools::UndoMode;

/// The number of lines of each file's diff.
const DIFF_LINES: usize = 200;

impl Chat<'_> {
    /// Undoes the file changes of a turn: of the last one that changed files, or of the one with this id. The plan is
    /// printed first; it is refused as a whole if a file has changed since.
    pub(super) async fn undo(&mut self, turn: &str) -> Result<(), Failure> {
        let session = self.conversation.session().clone();
        let choice = if turn.is_empty() {
            UndoChoice::LastOf(&session)
        } else {
            UndoChoice::Turn(turn)
        };
        let plan = self.app.undo_plan(&self.sessions, choice).await?;
        screen::print(&format!("undoing \"{}\"", sanitize(&plan.message)))?;
        for line in plan.lines() {
            screen::print(&line)?;
        }
        let report = plan.run(UndoMode::Whole).await?;
        // The log of the session has a new event.
        self.conversation.refresh().await?;
        let restored = count(report.restored.len() as u64, "path");
        Ok(screen::print(&format!("undone: {restored} restored"))?)
    }

    /// Prints how the files that this session changed differ from their originals.
    pub(super) async fn show_diff(&mut self) -> Result<(), Failure> {
        let session = self.conversation.session().clone();
        let choice = DiffChoice::Session(&session);
        let files = self
            .app
            .file_differences(&self.sessions, choice, DIFF_LINES)
            .await?;
        if files.is_empty() {
            return Ok(screen::print(
                "no file differs from before this session (what commands changed is not recorded)",
            )?);
        }
        for file in files {
            let counts = file
                .lines
                .map(|(added, removed)| format!(" +{added} −{removed}"));
            let heading = format!(
                "{} {}{}",
                file.change.name(),
                sanitize(&file.path),
                counts.unwrap_or_default()
            );
            let mut lines = vec![self.palette.bold(&heading)];
            lines.extend(lango_markdown::diff(&file.diff, self.palette.markdown()));
            screen::print_rendered(&lines.join("\n"))?;
        }
        Ok(())
    }
}
