//! Finds the turns that changed files.

use super::{FileTurn, LIST, UndoChoice};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::sessions::Sessions;
use lango_core::text::one_line;
use lango_core::{Event, EventBody, SessionStore, StoreError, TurnId, UserId};
use lango_engine::is_undone;
use lango_tools::TurnRecord;

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
        for record in self.records_here(&self.users())? {
            if turns.len() == limit {
                break;
            }
            // The session may have been deleted elsewhere, or belong to another database.
            let (session, turn) = (record.session(), record.turn());
            let events = sessions.store.turn_events(session, turn).await?;
            let Some(message) = message_of(&events) else {
                continue;
            };
            let is_undone =
                record.is_undone() || is_undone(&*sessions.store, session, turn).await?;
            turns.push(FileTurn {
                session: session.clone(),
                turn: turn.clone(),
                message,
                updated: record.updated(),
                paths: self.shown_paths(&record),
                is_undone,
            });
        }
        Ok(turns)
    }

    /// Returns the record of the turn to undo.
    pub(super) async fn record_to_undo(
        &self,
        sessions: &Sessions,
        choice: UndoChoice<'_>,
    ) -> Result<TurnRecord, Failure> {
        let record = self.chosen_record(sessions, choice).await?;
        if record.folder() == self.folder() {
            return Ok(record);
        }
        let turn = record.turn();
        let message = format!("turn `{turn}` worked in `{}`", record.folder());
        Err(Failure::usage(message).next(format!("run `lango undo {turn}` there")))
    }

    async fn chosen_record(
        &self,
        sessions: &Sessions,
        choice: UndoChoice<'_>,
    ) -> Result<TurnRecord, Failure> {
        let store = &*sessions.store;
        let (records, nothing) = match choice {
            UndoChoice::Turn(prefix) => return self.record_with_prefix(prefix),
            UndoChoice::LastHere => (
                self.records_here(&[self.user()])?,
                format!(
                    "no turn changed files in `{}` with lango's file tools, or all were undone; changes of commands are not recorded",
                    self.folder()
                ),
            ),
            UndoChoice::LastOf(session) => {
                let records = self.undo.turns()?.into_iter();
                let records = records.filter(|record| record.session() == session);
                let nothing = "no turn of this session changed files with lango's file tools, or all were undone; changes of commands are not recorded";
                (records.collect(), nothing.to_owned())
            }
        };
        for record in records {
            if !record.is_undone() && is_undoable(store, &record).await? {
                return Ok(record);
            }
        }
        Err(Failure::usage(nothing).next(LIST))
    }

    fn record_with_prefix(&self, prefix: &str) -> Result<TurnRecord, Failure> {
        let users = self.users();
        let mut records = self.undo.turns()?;
        records.retain(|record| {
            users.contains(record.user()) && record.turn().as_str().starts_with(prefix)
        });
        if let Some(exact) = records.iter().position(|record| *record.turn() == prefix) {
            return Ok(records.swap_remove(exact));
        }
        match records.as_slice() {
            [] if prefix.is_empty() => {
                Err(Failure::usage("the id of the turn is empty").next(LIST))
            }
            [] => {
                let message = format!("no file changes of a turn `{prefix}` are recorded");
                Err(Failure::usage(message).next(LIST))
            }
            [_] => Ok(records.swap_remove(0)),
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
    fn records_here(&self, users: &[UserId]) -> Result<Vec<TurnRecord>, Failure> {
        let folder = self.folder();
        let mut records = self.undo.turns()?;
        records.retain(|record| users.contains(record.user()) && record.folder() == folder);
        Ok(records)
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
async fn is_undoable(store: &dyn SessionStore, record: &TurnRecord) -> Result<bool, StoreError> {
    let (session, turn): (_, &TurnId) = (record.session(), record.turn());
    let events = store.turn_events(session, turn).await?;
    Ok(!events.is_empty() && !is_undone(store, session, turn).await?)
}

/// Returns the start of the message that began a turn.
pub(super) fn message_of(events: &[Event]) -> Option<String> {
    match &events.first()?.body {
        EventBody::UserMessage { text, .. } => Some(one_line(text, MESSAGE_CHARS)),
        _ => None,
    }
}
