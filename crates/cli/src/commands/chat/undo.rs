//! `/undo` and `/diff`: restores and shows what file tools changed.

use super::Chat;
use crate::commands::undo;
use crate::screen::{self, PREVIEW_ROWS, one_line};
use lango::app::Failure;
use lango::app::undo::{DiffChoice, UndoChoice, UndoPlan};
use lango_core::text::sanitize;
use lango_tools::UndoMode;

/// The number of lines of each file's diff.
const DIFF_LINES: usize = 200;

/// The most characters of a path.
const PATH_CHARACTERS: usize = 200;

/// What follows `/undo`: the id of a turn, and a word that confirms what was shown.
struct UndoRequest<'a> {
    turn: Option<&'a str>,
    confirmed: Option<UndoMode>,
}

impl<'a> UndoRequest<'a> {
    fn parse(argument: &'a str) -> Self {
        let mut request = Self {
            turn: None,
            confirmed: None,
        };
        for word in argument.split_whitespace() {
            match word {
                "yes" => request.confirmed = Some(UndoMode::Whole),
                "partial" | "--partial" => request.confirmed = Some(UndoMode::Partial),
                turn => request.turn = Some(turn),
            }
        }
        request
    }

    /// Whether this confirms a plan that was shown.
    fn confirms(&self, plan: &UndoPlan) -> bool {
        self.confirmed.is_some() && self.turn.is_none_or(|turn| plan.turn.as_str() == turn)
    }
}

impl Chat<'_> {
    /// Shows what undoing a turn would restore: the last one that changed files, or the one with this id. If that was shown,
    /// `/undo yes` does it.
    pub(super) async fn undo(&mut self, argument: &str) -> Result<(), Failure> {
        if matches!(argument, "list" | "--list") {
            return undo::list(self.app, &self.sessions, false, "/undo TURN").await;
        }
        let request = UndoRequest::parse(argument);
        let offered = self.offered_undo.take();
        if let (Some(plan), Some(mode)) = (
            offered.filter(|plan| request.confirms(plan)),
            request.confirmed,
        ) {
            return self.run_undo(plan, mode).await;
        }
        if request.confirmed.is_some() {
            screen::print("this was not shown since the last turn, so nothing was changed:")?;
        }
        let session = self.conversation.session().clone();
        let choice = match request.turn {
            Some(turn) => UndoChoice::Turn(turn),
            None => UndoChoice::LastOf(&session),
        };
        let plan = self.app.undo_plan(&self.sessions, choice).await?;
        screen::print(&format!(
            "undo would take back \"{}\":",
            sanitize(&plan.message)
        ))?;
        for line in plan.lines() {
            screen::print(&line)?;
        }
        let differences = DiffChoice::Turn(UndoChoice::Turn(plan.turn.as_str()));
        let heading = "the files now, compared with before that turn:";
        self.print_differences(differences, heading, PREVIEW_ROWS)
            .await?;
        let obstacles = plan.obstacles().count();
        let next = if obstacles == 0 {
            "/undo yes takes these changes back"
        } else if obstacles < plan.steps.len() {
            "/undo partial restores the other files; those that cannot be restored stay as they are"
        } else {
            "nothing can be taken back as the files are now"
        };
        self.offered_undo = Some(plan);
        Ok(screen::print(next)?)
    }

    /// Carries out a plan that was shown.
    async fn run_undo(&mut self, plan: UndoPlan, mode: UndoMode) -> Result<(), Failure> {
        let message = sanitize(&plan.message).into_owned();
        let report = plan.run(mode).await;
        let report = report.map_err(|failure| {
            failure
                .next("/undo shows what can be taken back now; /undo partial then leaves the rest")
        })?;
        // The log of the session has a new event.
        self.conversation.refresh().await?;
        screen::print(&format!("undone: \"{message}\""))?;
        for path in &report.restored {
            let path = one_line(path, PATH_CHARACTERS);
            screen::print(&format!("  {path} is as before that turn"))?;
        }
        for skipped in &report.skipped {
            let path = one_line(&skipped.path, PATH_CHARACTERS);
            let reason = sanitize(&skipped.reason);
            screen::print(&format!("  left {path}: {reason}"))?;
        }
        Ok(())
    }

    /// Prints how the files that this session changed differ from their originals.
    pub(super) async fn show_diff(&mut self) -> Result<(), Failure> {
        let session = self.conversation.session().clone();
        let choice = DiffChoice::Session(&session);
        let heading = "the files now, compared with before this session:";
        if self.print_differences(choice, heading, DIFF_LINES).await? == 0 {
            screen::print(
                "no file differs from before this session (what commands changed is not recorded)",
            )?;
        }
        Ok(())
    }

    /// Prints the diffs of files below a heading, each with at most this many lines. Returns the number of files.
    async fn print_differences(
        &self,
        choice: DiffChoice<'_>,
        heading: &str,
        max_lines: usize,
    ) -> Result<usize, Failure> {
        let files = self
            .app
            .file_differences(&self.sessions, choice, max_lines)
            .await?;
        if !files.is_empty() {
            screen::print(heading)?;
        }
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
