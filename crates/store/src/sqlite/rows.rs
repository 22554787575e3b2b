//! From rows to values: events and the list of sessions.

use super::failure::Failure;
use super::readers::Reader;
use super::statements::{EVENTS, SESSION, SESSIONS, SESSIONS_WITH_PREFIX, TURN_EVENTS, UNFINISHED};
use crate::stored::{self, EventColumns};
use lango_core::{
    AgentName, Event, Page, SessionId, SessionSummary, StoreError, Text, Timestamp, TurnId,
    UnfinishedTurn, UserId,
};
use rusqlite::{OptionalExtension as _, Params, Row, params};
use std::borrow::Cow;

/// Events of a session in their order.
pub(super) fn events(
    reader: Reader<'_>,
    session: &SessionId,
    page: Page,
) -> Result<Vec<Event>, Failure> {
    let mut statement = reader.connection.prepare_cached(EVENTS)?;
    let mut rows = statement.query(params![
        session.as_str(),
        bound(page.from),
        limit(page.limit)
    ])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event(row, session, reader.root_agent)?);
    }
    if events.is_empty() {
        let known = reader
            .connection
            .prepare_cached(SESSION)?
            .query_row([session.as_str()], |_| Ok(()))
            .optional()?;
        known.ok_or_else(|| StoreError::NotFound {
            id: session.clone(),
        })?;
    }
    Ok(events)
}

/// The events of one turn.
pub(super) fn turn_events(
    reader: Reader<'_>,
    session: &SessionId,
    turn: &TurnId,
) -> Result<Vec<Event>, Failure> {
    let mut statement = reader.connection.prepare_cached(TURN_EVENTS)?;
    let mut rows = statement.query(params![session.as_str(), turn.as_str()])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event(row, session, reader.root_agent)?);
    }
    Ok(events)
}

/// Turns without an outcome.
pub(super) fn unfinished(
    reader: Reader<'_>,
    after: &str,
    most: usize,
) -> Result<Vec<UnfinishedTurn>, Failure> {
    let mut statement = reader.connection.prepare_cached(UNFINISHED)?;
    let turns = statement.query_map(params![after, limit(most)], |row| {
        Ok(UnfinishedTurn {
            session: SessionId::new(row.get::<_, Text>(0)?),
            user: UserId::new(row.get::<_, Text>(1)?),
            turn: TurnId::new(row.get::<_, Text>(2)?),
            is_waiting: row.get(3)?,
        })
    })?;
    Ok(turns.collect::<rusqlite::Result<_>>()?)
}

/// A user's sessions, the one used last first.
pub(super) fn summaries(
    reader: Reader<'_>,
    user: &UserId,
    most: usize,
) -> Result<Vec<SessionSummary>, Failure> {
    summaries_of(reader, SESSIONS, params![user.as_str(), limit(most)])
}

/// A user's sessions whose id begins with `prefix`.
pub(super) fn summaries_with_prefix(
    reader: Reader<'_>,
    user: &UserId,
    prefix: &str,
    most: usize,
) -> Result<Vec<SessionSummary>, Failure> {
    summaries_of(
        reader,
        SESSIONS_WITH_PREFIX,
        params![user.as_str(), prefix, limit(most)],
    )
}

/// A column that is never negative.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn event(row: &Row<'_>, session: &SessionId, root_agent: &AgentName) -> Result<Event, Failure> {
    let seq = unsigned(row, 0)?;
    let columns = || {
        Ok(EventColumns {
            seq,
            turn: text(row, 1)?,
            frame: text(row, 2)?,
            author: text(row, 3)?,
            time: unsigned(row, 4)?,
            body: text(row, 5)?,
        })
    };
    let columns = columns().map_err(|error| Failure::of_row(error, session, seq))?;
    Ok(stored::event(&columns, session, root_agent)?)
}

fn summaries_of(
    reader: Reader<'_>,
    query: &str,
    values: impl Params,
) -> Result<Vec<SessionSummary>, Failure> {
    let mut statement = reader.connection.prepare_cached(query)?;
    let summaries = statement.query_map(values, |row| {
        Ok(SessionSummary {
            // One whose bytes are not text must not hide the others.
            id: SessionId::new(lossy(row, 0)?),
            user: UserId::new(lossy(row, 1)?),
            title: lossy(row, 2)?.into_owned(),
            created: Timestamp(unsigned(row, 3)?),
            updated: Timestamp(unsigned(row, 4)?),
            turns: unsigned(row, 5)?,
        })
    })?;
    Ok(summaries.collect::<rusqlite::Result<_>>()?)
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    Ok(row.get_ref(column)?.as_str()?)
}

/// A text with a sign in place of all that is no text.
pub(super) fn lossy<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?))
}

/// A bound as SQLite takes it; beyond its largest number there are no rows.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit as SQLite takes it.
pub(super) fn limit(most: usize) -> i64 {
    bound(most as u64)
}
