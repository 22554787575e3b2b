//! What is written: new sessions, and batches of events with what follows from them on the session and its turns.
//!
//! Everything here runs inside a savepoint of the writer, which undoes whatever a failing job had written.

use super::approvals;
use super::failure::Failure;
use super::remote_threads;
use super::statements::{
    FINISH_TURN, INSERT_EVENT, INSERT_REFERENCE, INSERT_SESSION, INSERT_TURN, IS_SEEN, LOG_END,
    SET_DELEGATION, UPDATE_SESSION, USE_PUT,
};
use crate::archive::{HIDDEN_USER, LogRow};
use crate::batch::target_of;
use crate::chain::{Chain, StoredEvent};
use crate::title::title_of;
use lango_core::{Event, EventBody, NewSession, SessionId, StoreError, Text};
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
    events.iter().try_for_each(|event| log.push(event))
}

/// Adds rows to the log of a hidden session, as they were stored elsewhere.
pub(super) fn take_over(connection: &Connection, rows: &[LogRow]) -> Result<(), Failure> {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let hidden = connection
        .prepare_cached(HIDDEN_USER.sqlite)?
        .exists([first.session.as_str()])?;
    if !hidden {
        return Err(StoreError::NotFound {
            id: first.session.clone(),
        }
        .into());
    }
    let mut log = Log::at_end(connection, &first.session)?;
    rows.iter().try_for_each(|row| log.push_row(row))
}

/// The end of a session's log while a batch is added to it.
struct Log<'a> {
    connection: &'a Connection,
    session: &'a SessionId,
    next_seq: u64,
    /// The hash of the last row.
    hash: Vec<u8>,
}

impl<'a> Log<'a> {
    fn find(connection: &'a Connection, session: &'a SessionId) -> Result<Self, Failure> {
        must_exist(connection, session)?;
        Self::at_end(connection, session)
    }

    fn at_end(connection: &'a Connection, session: &'a SessionId) -> Result<Self, Failure> {
        let end = connection
            .prepare_cached(LOG_END)?
            .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (last_seq, hash): (i64, Vec<u8>) = end.unwrap_or_default();
        Ok(Self {
            connection,
            session,
            next_seq: last_seq.unsigned_abs() + 1,
            hash,
        })
    }

    fn push(&mut self, event: &Event) -> Result<(), Failure> {
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
        self.insert(&row, &hash)?;
        self.note_effects(event, &row)
    }

    /// Adds a row as it was stored elsewhere.
    fn push_row(&mut self, row: &LogRow) -> Result<(), Failure> {
        let mut chain = Chain::at(self.session, self.next_seq - 1, self.hash.clone());
        let body = chain.take(row)?;
        // Numbers that the database cannot hold.
        stored(row.seq)?;
        stored(row.time.0)?;
        let event = row.event(body);
        self.insert(&row.stored(), &row.hash)?;
        self.note_effects(&event, &row.stored())
    }

    fn insert(&mut self, row: &StoredEvent<'_>, hash: &[u8]) -> Result<(), Failure> {
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
        self.next_seq += 1;
        self.hash.clear();
        self.hash.extend_from_slice(hash);
        Ok(())
    }

    /// Keeps the turn's row and the references to attachments in step with the log.
    fn note_effects(&self, event: &Event, row: &StoredEvent<'_>) -> Result<(), Failure> {
        refer(self.connection, event)?;
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                let ordinal: i64 = self
                    .connection
                    .prepare_cached(INSERT_TURN)?
                    .query_row(params![row.session, row.turn, row.seq], |row| row.get(0))?;
                if ordinal == 0 {
                    self.update_session(row, Some(title_of(text)))?;
                }
            }
            EventBody::AgentDelegated { finish: true, .. } => {
                self.connection
                    .prepare_cached(SET_DELEGATION)?
                    .execute(params![row.session, row.turn, row.seq])?;
            }
            EventBody::TurnFinished { answer, .. } => {
                let answer = answer.map(stored).transpose()?;
                self.connection
                    .prepare_cached(FINISH_TURN)?
                    .execute(params![row.session, row.turn, answer])?;
                self.update_session(row, None)?;
            }
            EventBody::RemoteAccepted { .. } | EventBody::RemoteReturned { .. } => {
                remote_threads::note(self.connection, event)?;
            }
            _ => approvals::note(self.connection, event, row.time)?,
        }
        Ok(())
    }

    fn update_session(&self, row: &StoredEvent<'_>, title: Option<&str>) -> Result<(), Failure> {
        self.connection
            .prepare_cached(UPDATE_SESSION)?
            .execute(params![row.session, row.time, title])?;
        Ok(())
    }
}

/// Refers to the attachments of an event that was just stored.
fn refer(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let session = event.session.as_str();
    for attachment in event.body.attachments() {
        let user: Option<Text> = connection
            .prepare_cached(INSERT_REFERENCE)?
            .query_row(params![session, attachment.digest], |row| row.get(0))
            .optional()?;
        if let Some(user) = user {
            connection
                .prepare_cached(USE_PUT)?
                .execute(params![user, attachment.digest])?;
        }
    }
    Ok(())
}

/// A session that is not there, or that nobody is to see, takes no events.
fn must_exist(connection: &Connection, session: &SessionId) -> Result<(), Failure> {
    let is_seen = connection
        .prepare_cached(IS_SEEN)?
        .exists([session.as_str()])?;
    match is_seen {
        true => Ok(()),
        false => Err(StoreError::NotFound {
            id: session.clone(),
        }
        .into()),
    }
}

/// A number as SQLite stores it, which has one bit less.
fn stored(number: u64) -> Result<i64, Failure> {
    i64::try_from(number)
        .map_err(|_| Failure::other(format!("{number} is more than the database can hold")))
}
