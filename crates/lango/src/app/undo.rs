//! Undoes what the file tools of a turn changed: [`App::undo_plan`] says what that would do, [`UndoPlan::run`] does it
//! and records it in the session. Everything else that the turn did is listed, not undone.

mod other_calls;
mod plan;
mod select;

use crate::app::App;
use crate::app::failure::Failure;
use lango_core::{SessionId, SkippedPath, Timestamp, TurnId};
use lango_engine::{UndoError, paths_left};
use lango_tools::{FileDifference, TurnRecord, differences};
pub use other_calls::OtherCall;
pub use plan::{UndoPlan, UndoReport};
use select::limited_record;
use serde::Serialize;

/// Which turn to undo.
#[derive(Debug, Clone, Copy)]
pub enum UndoChoice<'a> {
    /// The last turn of the user that changed files in this folder and was not undone.
    LastHere,
    /// The last turn of this session that changed files and was not undone.
    LastOf(&'a SessionId),
    /// The turn whose id starts with this text.
    Turn(&'a str),
}

/// Which turns to compare files with.
#[derive(Debug, Clone, Copy)]
pub enum DiffChoice<'a> {
    /// All turns of the session.
    Session(&'a SessionId),
    /// One turn.
    Turn(UndoChoice<'a>),
}

/// A turn that changed files, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileTurn {
    pub session: SessionId,
    pub turn: TurnId,
    /// The start of the user's message, on one line.
    pub message: String,
    /// When a change was last recorded.
    pub updated: Timestamp,
    /// The changed files and folders, relative to the folder.
    pub paths: Vec<String>,
    pub is_undone: bool,
    /// What the undo left as it was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<SkippedPath>,
}

impl App {
    /// Compares files with their originals: from before the first of the chosen turns, without what was undone. Shortens
    /// the diff of each file to `lines` lines.
    ///
    /// # Errors
    /// One turn is chosen, and it was undone completely, so its originals are deleted.
    pub async fn file_differences(
        &self,
        sessions: &crate::app::sessions::Sessions,
        choice: DiffChoice<'_>,
        lines: usize,
    ) -> Result<Vec<FileDifference>, Failure> {
        let mut turns: Vec<TurnRecord> = match choice {
            DiffChoice::Turn(choice) => vec![self.record_to_undo(sessions, choice).await?],
            DiffChoice::Session(session) => self.changes_left(sessions, session).await?,
        };
        turns.reverse();
        let workspace = self.workspace.clone();
        let compared =
            tokio::task::spawn_blocking(move || differences(&workspace, &turns, lines)).await;
        Ok(compared.map_err(std::io::Error::other)?)
    }

    /// Returns the turns of a session that changed files in this folder, without what was undone. The last one comes first.
    async fn changes_left(
        &self,
        sessions: &crate::app::sessions::Sessions,
        session: &SessionId,
    ) -> Result<Vec<TurnRecord>, Failure> {
        let mut records = Vec::new();
        for turn in self.undo.turns()? {
            if turn.session() != session || turn.folder() != self.folder() {
                continue;
            }
            let left = paths_left(&*sessions.store, session, turn.turn()).await?;
            let record = self.undo.turn(session, turn.turn())?;
            let limit = |record| limited_record(record, &self.workspace, left.as_deref());
            records.extend(record.map(limit));
        }
        Ok(records)
    }
}

impl From<UndoError> for Failure {
    fn from(error: UndoError) -> Self {
        let message = error.to_string();
        match error {
            UndoError::Store(error) => error.into(),
            UndoError::Unfinished { session } => Self::usage(message).next(format!(
                "run `lango sessions resume {session}` to continue it, or `lango sessions close {session}` to abandon it"
            )),
            UndoError::AlreadyUndone { .. } | UndoError::UnknownTurn { .. } => {
                Self::usage(message).next(LIST)
            }
            _ => Self::failed(message),
        }
    }
}

impl From<lango_tools::UndoError> for Failure {
    fn from(error: lango_tools::UndoError) -> Self {
        Self::failed(error.to_string()).next("check the permissions of lango's data folder")
    }
}

/// The step after an undo of the wrong turn.
const LIST: &str = "run `lango undo --list` to see the turns that changed files here";
