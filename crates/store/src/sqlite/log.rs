//! What is written: new sessions, and batches of events with what follows from them on the session and its turns.
//!
//! Everything here runs inside a savepoint of the writer, which undoes whatever a failing job had written.

use super::chain::StoredEvent;
use super::failure::Failure;
use super::statements::{
    FINISH_TURN, INSERT_EVENT, INSERT_SESSION, INSERT_TURN, LOG_END, SESSION, SET_DELEGATION,
    UPDATE_SESSION,
};
use crate::batch::target_of;
use crate::title::title_of;
use lango_core::{Event, EventBody, NewSession, SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Makes an empty session.
pub(super) fn create(connection: &Connection, session: &NewSession) -> Result<(), Failure> {
    let created = stored(session.created.0)?;
    let inserted = connection.prepare_cached(INSERT_SESSION)?.execute(params![
        session.id.as_str(),
        session.user.as_str(),
        created
    ])?;
    if inserted == 0 {
        return Err(StoreError::Exists {
            id: session.id.clone(),
        }
        .into());
    }
    Ok(())
}

/// Appends events to the log of their session.
pub(super) fn append(connection: &Connection, events: &[Event]) -> Result<(), Failure> {
    let Some((session, first_seq)) = target_of(events)? else {
        return Ok(());
    };
    let mut log = Log::find(connection, session)?;
    if first_seq != log.next_seq {
        return Err(StoreError::Conflict {
            id: session.clone(),
        }
        .into());
    }
    events.iter().try_for_each(|event| log.push(event))?;
    // In the middle of a turn nothing changes that a list of sessions shows: that write would be a third of the cost.
    let shows = |event: &&Event| {
        matches!(
            event.body,
            EventBody::UserMessage { .. } | EventBody::TurnFinished { .. }
        )
    };
    match events.iter().rfind(shows) {
        Some(event) => log.update_session(event),
        None => Ok(()),
    }
}

/// The end of a session's log while a batch is added to it.
struct Log<'a> {
    connection: &'a Connection,
    session: &'a SessionId,
    next_seq: u64,
    /// The hash of the last row.
    hash: Vec<u8>,
    turns: i64,
    title: Option<&'a str>,
}

impl<'a> Log<'a> {
    fn find(connection: &'a Connection, session: &'a SessionId) -> Result<Self, Failure> {
        let turns: Option<i64> = connection
            .prepare_cached(SESSION)?
            .query_row([session.as_str()], |row| row.get(1))
            .optional()?;
        let turns = turns.ok_or_else(|| StoreError::NotFound {
            id: session.clone(),
        })?;
        let (last_seq, hash): (i64, Vec<u8>) = connection
            .prepare_cached(LOG_END)?
            .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
            .unwrap_or_default();
        Ok(Self {
            connection,
            session,
            next_seq: last_seq.unsigned_abs() + 1,
            hash,
            turns,
            title: None,
        })
    }

    fn push(&mut self, event: &'a Event) -> Result<(), Failure> {
        let body = serde_json::to_string(&event.body).map_err(|error| {
            Failure::other(format!("event {} cannot be written: {error}", event.seq))
        })?;
        let row = StoredEvent {
            session: self.session.as_str(),
            seq: stored(event.seq)?,
            turn: event.turn.as_str(),
            frame: event.frame.as_str(),
            author: event.author.as_str(),
            time: stored(event.time.0)?,
            body: &body,
        };
        let hash = row.hash(&self.hash);
        self.connection
            .prepare_cached(INSERT_EVENT)?
            .execute(params![
                row.session,
                row.seq,
                row.turn,
                row.frame,
                row.time,
                row.body,
                row.author,
                hash
            ])?;
        self.hash.clear();
        self.hash.extend_from_slice(&hash);
        self.note_turn(event, &row)
    }

    /// Keeps the turn's row in step with the log.
    fn note_turn(&mut self, event: &'a Event, row: &StoredEvent<'_>) -> Result<(), Failure> {
        let last_turn = self.turns - 1;
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                self.connection
                    .prepare_cached(INSERT_TURN)?
                    .execute(params![row.session, self.turns, row.turn, row.seq])?;
                if self.turns == 0 {
                    self.title = Some(title_of(text));
                }
                self.turns += 1;
            }
            EventBody::AgentDelegated { finish: true, .. } => {
                self.connection
                    .prepare_cached(SET_DELEGATION)?
                    .execute(params![row.session, last_turn, row.turn, row.seq])?;
            }
            EventBody::TurnFinished { answer, .. } => {
                let answer = answer.map(stored).transpose()?;
                self.connection
                    .prepare_cached(FINISH_TURN)?
                    .execute(params![row.session, last_turn, row.turn, answer])?;
            }
            _ => {}
        }
        Ok(())
    }

    fn update_session(&self, event: &Event) -> Result<(), Failure> {
        let updated = stored(event.time.0)?;
        self.connection
            .prepare_cached(UPDATE_SESSION)?
            .execute(params![
                self.session.as_str(),
                updated,
                self.turns,
                self.title
            ])?;
        Ok(())
    }
}

/// A number as SQLite stores it, which has one bit less.
fn stored(number: u64) -> Result<i64, Failure> {
    i64::try_from(number)
        .map_err(|_| Failure::other(format!("{number} is more than the database can hold")))
}
