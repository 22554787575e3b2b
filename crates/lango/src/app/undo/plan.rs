//! The plan of an undo, and its execution under the session's lease.

use super::other_calls::{OtherCall, other_calls};
use super::select::{limited_record, message_of};
use super::{LIST, UndoChoice};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::sessions::Sessions;
use lango_core::text::{count, one_line};
use lango_core::{Clock, EventBatch, SessionId, SessionStore, SkippedPath, Text, TurnId};
use lango_engine::{SystemClock, UndoError, UndoableTurn, UndoneFiles};
use lango_tools::{
    Trash, TurnRecord, UndoAction, UndoMode, UndoOutcome, UndoResult, UndoStep, UndoStore,
    Workspace,
};
use serde::Serialize;
use std::sync::Arc;

/// The most characters of a path in a plan.
const PATH_CHARS: usize = 200;

/// What undoing a turn would do.
#[derive(Serialize)]
pub struct UndoPlan {
    pub session: SessionId,
    pub turn: TurnId,
    /// The start of the user's message, on one line.
    pub message: String,
    /// What would be done, in this order.
    pub steps: Vec<UndoStep>,
    /// What the turn did besides, which is not undone.
    pub not_undone: Vec<OtherCall>,
    #[serde(skip)]
    record: TurnRecord,
    #[serde(skip)]
    store: Arc<dyn SessionStore>,
    #[serde(skip)]
    undo: UndoStore,
    #[serde(skip)]
    workspace: Workspace,
    #[serde(skip)]
    trash: Trash,
}

/// What an undo did.
#[derive(Debug, Serialize)]
pub struct UndoReport {
    pub session: SessionId,
    pub turn: TurnId,
    /// The files and folders that are now as they were before the turn.
    pub restored: Vec<Text>,
    /// Those that were left as they are.
    pub skipped: Vec<SkippedPath>,
    /// Whether everything was restored, except for new folders that contain something else.
    pub is_complete: bool,
    /// What the turn did besides, which was not undone.
    pub not_undone: Vec<OtherCall>,
    /// The stored event, for a screen that shows the session.
    #[serde(skip)]
    pub event: EventBatch,
}

impl App {
    /// Returns what undoing a turn would do. Changes nothing.
    pub async fn undo_plan(
        &self,
        sessions: &Sessions,
        choice: UndoChoice<'_>,
    ) -> Result<UndoPlan, Failure> {
        let record = self.record_to_undo(sessions, choice).await?;
        let (session, turn) = (record.session().clone(), record.turn().clone());
        let store = Arc::clone(&sessions.store);
        let events = store.turn_events(&session, &turn).await?;
        let Some(message) = message_of(&events) else {
            return Err(UndoError::UnknownTurn { session, turn }.into());
        };
        let mut plan = UndoPlan {
            steps: Vec::new(),
            not_undone: other_calls(&events, &record),
            session,
            turn,
            message,
            record,
            store,
            undo: self.undo.clone(),
            workspace: self.workspace.clone(),
            trash: self.trash.clone(),
        };
        plan.check();
        Ok(plan)
    }
}

impl UndoPlan {
    /// Returns the files that cannot be restored, each with the reason.
    pub fn obstacles(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match &step.action {
            UndoAction::Refuse { reason } => Some((step.path.as_str(), reason.as_str())),
            _ => None,
        })
    }

    /// Describes the plan: a line for each file, and one for each call that is not undone.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.steps.iter().map(step_line).collect();
        let others = self.not_undone.iter();
        lines.extend(others.map(|call| format!("  not undone: {call}")));
        lines
    }

    /// Undoes the turn and records that in the session. With [`UndoMode::Whole`], changes nothing if a file cannot be
    /// restored.
    ///
    /// # Errors
    /// A turn of the session is running or waits, the turn made further changes or was undone meanwhile, or nothing
    /// could be restored.
    pub async fn run(mut self, mode: UndoMode) -> Result<UndoReport, Failure> {
        let leased = UndoableTurn::lease(&*self.store, &self.session, &self.turn).await?;
        self.expect_same(&leased)?;
        self.check();
        let obstacles = self.obstacles().count();
        if obstacles > 0 && (mode == UndoMode::Whole || obstacles == self.steps.len()) {
            return Err(self.refusal());
        }
        let (record, workspace, trash) = (self.record, self.workspace, self.trash);
        let undo = move || {
            let is_allowed = || leased.is_leased();
            let results = record.undo(&workspace, &trash, mode, &is_allowed);
            (leased, record, results)
        };
        let undone = tokio::task::spawn_blocking(undo).await;
        let (leased, record, results) = undone.map_err(std::io::Error::other)?;
        let (restored, skipped) = summarize(&results);
        if restored.is_empty() {
            let reason = skipped.first().map_or("", |skipped| &*skipped.reason);
            let message = format!("nothing was restored: {reason}");
            return Err(Failure::failed(message).next(LIST));
        }
        let now = SystemClock.now();
        let undone = UndoneFiles {
            restored: restored.clone(),
            skipped: skipped.clone(),
            trust: record.trust(),
        };
        let event = leased.record(&*self.store, undone, now).await?;
        record.delete_restored(&results)?;
        let is_skipped =
            |result: &UndoResult| matches!(result.outcome, UndoOutcome::Skipped { .. });
        Ok(UndoReport {
            is_complete: !results.iter().any(is_skipped),
            session: self.session,
            turn: self.turn,
            restored,
            skipped,
            not_undone: self.not_undone,
            event,
        })
    }

    /// Fails if the turn did something since the plan was made. No one has seen that, and it could never be undone.
    fn expect_same(&self, leased: &UndoableTurn) -> Result<(), Failure> {
        let record = self.undo.turn(&self.session, &self.turn)?;
        let left = leased.left.as_deref();
        let record = record.map(|record| limited_record(record, &self.workspace, left));
        let not_undone = other_calls(&leased.events, &self.record);
        if record.as_ref() == Some(&self.record) && not_undone == self.not_undone {
            return Ok(());
        }
        let turn = &self.turn;
        let message =
            format!("nothing was changed, because turn `{turn}` did more since this was shown");
        Err(Failure::failed(message).next(format!("run `lango undo {turn}` again")))
    }

    fn check(&mut self) {
        self.steps = self.record.check(&self.workspace, &self.trash);
    }

    /// Returns the failure for a plan that changes nothing.
    fn refusal(&self) -> Failure {
        let (obstacles, all) = (self.obstacles().count(), self.steps.len());
        let turn = &self.turn;
        let mut message = match obstacles {
            all_of_them if all_of_them == all => "nothing was changed:".to_owned(),
            some => format!(
                "nothing was changed, because {some} of {} cannot be restored:",
                count(all as u64, "change")
            ),
        };
        for (path, reason) in self.obstacles() {
            message.push_str(&format!("\n  {}: {reason}", one_line(path, PATH_CHARS)));
        }
        let rest = if obstacles < all {
            format!("`lango undo {turn} --partial` restores the rest; ")
        } else {
            String::new()
        };
        Failure::failed(message).next(format!(
            "{rest}`lango undo {turn} --diff` shows how the files differ from their originals"
        ))
    }
}

fn step_line(step: &UndoStep) -> String {
    // A name with a line break must not look like a line of lango.
    let path = one_line(&step.path, PATH_CHARS);
    let mut line = match &step.action {
        UndoAction::Restore => format!("  restores {path}"),
        UndoAction::RemoveFile => format!("  removes {path}, which the turn created"),
        UndoAction::RemoveFolder => {
            format!("  removes {path}/, which the turn created, if it is empty")
        }
        UndoAction::RestoreFromTrash => format!("  restores {path} from the trash"),
        UndoAction::Nothing => format!("  leaves {path}, which is as before the turn"),
        UndoAction::Refuse { reason } => format!("  cannot restore {path}: {reason}"),
    };
    if step.has_other_changes {
        let fate = if step.discards_other_changes {
            "is lost"
        } else {
            "goes to the trash"
        };
        line.push_str(&format!(
            " (a command or someone else changed it too during the turn; that {fate})"
        ));
    }
    line
}

/// Returns the paths that are as before the turn, and those that are not. A path with several steps is as before if all of
/// them were undone.
fn summarize(results: &[UndoResult]) -> (Vec<Text>, Vec<SkippedPath>) {
    let (mut restored, mut skipped): (Vec<Text>, Vec<SkippedPath>) = (Vec::new(), Vec::new());
    for result in results {
        if let UndoOutcome::Skipped { reason } | UndoOutcome::Kept { reason } = &result.outcome
            && !skipped.iter().any(|other| *other.path == result.path)
        {
            skipped.push(SkippedPath {
                path: result.path.as_str().into(),
                reason: reason.as_str().into(),
            });
        }
    }
    for result in results {
        let is_known = restored.iter().any(|path| **path == result.path)
            || skipped.iter().any(|other| *other.path == result.path);
        if !is_known {
            restored.push(result.path.as_str().into());
        }
    }
    (restored, skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_becomes_of_the_changes_of_others() {
        let line = |has_other_changes, discards_other_changes| {
            step_line(&UndoStep {
                path: "a.txt".to_owned(),
                action: UndoAction::Restore,
                has_other_changes,
                discards_other_changes,
            })
        };
        assert_eq!(line(false, false), "  restores a.txt");
        let others =
            "  restores a.txt (a command or someone else changed it too during the turn; that";
        assert_eq!(line(true, false), format!("{others} goes to the trash)"));
        assert_eq!(line(true, true), format!("{others} is lost)"));
    }
}
