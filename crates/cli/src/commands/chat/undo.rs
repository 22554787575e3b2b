//! `/undo` and `/diff`: restores and shows what file tools changed.

use super::Chat;
use crate::screen::{self, PREVIEW_ROWS, count, one_line};
use lango::app::Failure;
use lango::app::undo::{DiffChoice, UndoChoice};
use lango_core::text::sanitize;
use lango_tools::UndoMode;

/// The number of lines of each file's diff.
const DIFF_LINES: usize = 200;

/// The most characters of a path.
const PATH_CHARACTERS: usize = 200;

/// What follows `/undo` to confirm it.
const CONFIRM: &str = "yes";
const CONFIRM_PARTIAL: &str = "partial";

impl Chat<'_> {
    /// Shows what undoing a turn would restore: the last one that changed files, or the one with this id. `/undo yes` then
    /// does it.
    pub(super) async fn undo(&mut self, argument: &str) -> Result<(), Failure> {
        let session = self.conversation.session().clone();
        let choice = match argument {
            CONFIRM => return self.run_undo(UndoMode::Whole).await,
            CONFIRM_PARTIAL | "--partial" => return self.run_undo(UndoMode::Partial).await,
            "" => UndoChoice::LastOf(&session),
            turn => UndoChoice::Turn(turn),
        };
        let plan = self.app.undo_plan(&self.sessions, choice).await?;
        screen::print(&format!("undoing \"{}\"", sanitize(&plan.message)))?;
        for line in plan.lines() {
            screen::print(&line)?;
        }
        let choice = DiffChoice::Turn(UndoChoice::Turn(plan.turn.as_str()));
        self.print_differences(choice, PREVIEW_ROWS).await?;
        let is_blocked = plan.obstacles().next().is_some();
        self.offered_undo = Some(plan);
        Ok(screen::print(if is_blocked {
            "/undo partial restores the other files; those that cannot be restored stay as they are"
        } else {
            "/undo yes takes these changes back"
        })?)
    }

    /// Carries out the plan that was shown last.
    async fn run_undo(&mut self, mode: UndoMode) -> Result<(), Failure> {
        let Some(plan) = self.offered_undo.take() else {
            let message = "nothing was shown yet that could be undone";
            return Err(Failure::usage(message).next("/undo shows it"));
        };
        let report = plan.run(mode).await;
        let report = report.map_err(|failure| {
            failure
                .next("/undo shows what can be taken back now; /undo partial then leaves the rest")
        })?;
        // The log of the session has a new event.
        self.conversation.refresh().await?;
        for skipped in &report.skipped {
            let path = one_line(&skipped.path, PATH_CHARACTERS);
            let reason = sanitize(&skipped.reason);
            screen::print(&format!("left {path}: {reason}"))?;
        }
        let restored = count(report.restored.len() as u64, "path");
        Ok(screen::print(&format!("undone: {restored} restored"))?)
    }

    /// Prints how the files that this session changed differ from their originals.
    pub(super) async fn show_diff(&mut self) -> Result<(), Failure> {
        let session = self.conversation.session().clone();
        let choice = DiffChoice::Session(&session);
        if self.print_differences(choice, DIFF_LINES).await? == 0 {
            screen::print(
                "no file differs from before this session (what commands changed is not recorded)",
            )?;
        }
        Ok(())
    }

    /// Prints the diffs of files, each with at most this many lines. Returns the number of files.
    async fn print_differences(
        &self,
        choice: DiffChoice<'_>,
        max_lines: usize,
    ) -> Result<usize, Failure> {
        let files = self
            .app
            .file_differences(&self.sessions, choice, max_lines)
            .await?;
        for file in &files {
            let counts = file
                .lines
                .map(|(added, removed)| format!(" +{added} −{removed}"));
            let heading = format!(
                "{} {}{}",
                file.change.name(),
                one_line(&file.path, PATH_CHARACTERS),
                counts.unwrap_or_default()
            );
            let mut lines = vec![self.palette.bold(&heading)];
            lines.extend(lango_markdown::diff(&file.diff, self.palette.markdown()));
            screen::print_rendered(&lines.join("\n"))?;
        }
        Ok(files.len())
    }
}
