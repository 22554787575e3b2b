//! Finds the turns that changed files.

use super::{FileTurn, LIST, UndoChoice};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::sessions::Sessions;
use lango_core::text::one_line;
use lango_core::{Event, EventBody, SessionStore, SkippedPath, StoreError, UserId};
use lango_engine::{UndoError, paths_left};
use lango_tools::{RecordedTurn, TurnRecord, Workspace};

/// Maximum length of a message in a list, in characters.
const MESSAGE_CHARS: usize = 60;

impl App {
    /// Lists the turns that changed files in this folder, the most recently changed first, at most `limit`.
    pub async fn file_turns(
        &self,
        sessions: &Sessions,
        limit: usize,
    ) -> Result<Vec<FileTurn>, Failure> {
        let mut turns = Vec::new();
        for recorded in self.turns_here(&self.users())? {
            if turns.len() == limit {
                break;
            }
            // The session may have been deleted elsewhere, or belong to another database.
            let (session, turn) = (recorded.session(), recorded.turn());
            let events = sessions.store.turn_events(session, turn).await?;
            let Some(message) = message_of(&events) else {
                continue;
            };
            let Some(record) = self.undo.turn(session, turn)? else {
                continue;
            };
            let left = paths_left(&*sessions.store, session, turn).await?;
            turns.push(FileTurn {
                session: session.clone(),
                turn: turn.clone(),
                message,
                updated: recorded.updated(),
                paths: self.shown_paths(&record),
                is_undone: left.is_some(),
                left: left.unwrap_or_default(),
            });
        }
        Ok(turns)
    }

    /// Returns the record of the turn to undo, limited to what an earlier undo left.
    pub(super) async fn record_to_undo(
        &self,
        sessions: &Sessions,
        choice: UndoChoice<'_>,
    ) -> Result<TurnRecord, Failure> {
        let chosen = self.chosen_turn(sessions, choice).await?;
        let (session, turn) = (chosen.session(), chosen.turn());
        if chosen.folder() != self.folder() {
            let message = format!("turn `{turn}` worked in `{}`", chosen.folder());
            return Err(Failure::usage(message).next(format!("run `lango undo {turn}` there")));
        }
        let turn = turn.clone();
        let left = paths_left(&*sessions.store, session, &turn).await?;
        if left.as_ref().is_some_and(Vec::is_empty) {
            return Err(UndoError::AlreadyUndone { turn }.into());
        }
        let Some(record) = self.undo.turn(session, &turn)? else {
            return Err(no_changes(turn.as_str()));
        };
        Ok(limited_record(record, &self.workspace, left.as_deref()))
    }

    async fn chosen_turn(
        &self,
        sessions: &Sessions,
        choice: UndoChoice<'_>,
    ) -> Result<RecordedTurn, Failure> {
        let store = &*sessions.store;
        let (turns, nothing) = match choice {
            UndoChoice::Turn(prefix) => return self.turn_with_prefix(prefix),
            UndoChoice::LastHere => (
                self.turns_here(&[self.user()])?,
                format!(
                    "no turn changed files in `{}` with lango's file tools, or all were undone; changes of commands are not recorded",
                    self.folder()
                ),
            ),
            UndoChoice::LastOf(session) => {
                let turns = self.undo.turns()?.into_iter();
                let turns = turns.filter(|turn| turn.session() == session);
                let nothing = "no turn of this session changed files with lango's file tools, or all were undone; changes of commands are not recorded";
                (turns.collect(), nothing.to_owned())
            }
        };
        for turn in turns {
            if is_undoable(store, &turn).await? {
                return Ok(turn);
            }
        }
        Err(Failure::usage(nothing).next(LIST))
    }

    fn turn_with_prefix(&self, prefix: &str) -> Result<RecordedTurn, Failure> {
        let users = self.users();
        let mut turns = self.undo.turns()?;
        turns
            .retain(|turn| users.contains(turn.user()) && turn.turn().as_str().starts_with(prefix));
        if let Some(exact) = turns.iter().position(|turn| *turn.turn() == prefix) {
            return Ok(turns.swap_remove(exact));
        }
        match turns.as_slice() {
            [] if prefix.is_empty() => {
                Err(Failure::usage("the id of the turn is empty").next(LIST))
            }
            [] => Err(no_changes(prefix)),
            [_] => Ok(turns.swap_remove(0)),
            [one, two, ..] => {
                let message = format!(
                    "more than one turn id starts with `{prefix}`: {}, {}",
                    one.turn(),
                    two.turn()
                );
                Err(Failure::usage(message).next("give more characters of the id"))
            }
        }
    }

    /// Returns the turns of these users that changed files in this folder, the most recently changed first.
    fn turns_here(&self, users: &[UserId]) -> Result<Vec<RecordedTurn>, Failure> {
        let folder = self.folder();
        let mut turns = self.undo.turns()?;
        turns.retain(|turn| users.contains(turn.user()) && turn.folder() == folder);
        Ok(turns)
    }

    /// Returns the paths of a turn relative to the workspace.
    pub(super) fn shown_paths(&self, record: &TurnRecord) -> Vec<String> {
        let workspace = self.workspace.path();
        let shown = |path: &std::path::Path| {
            let path = path.strip_prefix(workspace).unwrap_or(path);
            path.to_string_lossy().into_owned()
        };
        record.paths().into_iter().map(shown).collect()
    }
}

/// Whether the log has the turn, and does not say that it was undone.
async fn is_undoable(store: &dyn SessionStore, turn: &RecordedTurn) -> Result<bool, StoreError> {
    let (session, turn) = (turn.session(), turn.turn());
    if store.undone_seq(session, turn).await?.is_some() {
        return Ok(false);
    }
    Ok(!store.turn_events(session, turn).await?.is_empty())
}

/// Limits a record to what an earlier undo left, if there was one.
pub(super) fn limited_record(
    record: TurnRecord,
    workspace: &Workspace,
    left: Option<&[SkippedPath]>,
) -> TurnRecord {
    match left {
        Some(left) => record.limited_to(workspace, left),
        None => record,
    }
}

fn no_changes(turn: &str) -> Failure {
    let message = format!("no file changes of a turn `{turn}` are recorded");
    Failure::usage(message).next(LIST)
}

/// Returns the start of the message that began a turn.
pub(super) fn message_of(events: &[Event]) -> Option<String> {
    match &events.first()?.body {
        EventBody::UserMessage { text, .. } => Some(one_line(text, MESSAGE_CHARS)),
        _ => None,
    }
}
