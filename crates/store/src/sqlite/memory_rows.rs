//! What is read of memory: from rows to values.

use super::failure::Failure;
use super::memory_statements::{
    LAST_TURN, NEWEST, NEWEST_LOOSE, OLDEST_LOOSE, OWNS, SAVED, UNOBSERVED, WATERMARK,
};
use super::readers::Reader;
use super::rows::unsigned;
use crate::engine::Row as AnyRow;
use crate::log::exchange;
use crate::recollection::{
    Generation, MemoryId, MemoryOwner, Recollection, SavedMemory, ShownMemory, TurnsToRead,
    UnobservedTurn, Watermark, Which, exchange_within,
};
use lango_core::{Source, StoreError, Timestamp, Trust, TurnId, UserId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// How far a session's memory is; at the beginning if it has none.
pub(super) fn watermark(
    connection: &Connection,
    owner: &MemoryOwner,
) -> Result<Watermark, Failure> {
    let found = connection
        .prepare_cached(WATERMARK)?
        .query_row(
            params![owner.session.as_str(), owner.user.as_str()],
            |row| {
                Ok(Watermark {
                    observed: unsigned(row, 0)?,
                    revision: unsigned(row, 1)?,
                    trust: trust(row, 2)?,
                    failures: row.get(3)?,
                })
            },
        )
        .optional()?;
    if found.is_none() {
        must_own(connection, owner)?;
    }
    Ok(found.unwrap_or(Watermark {
        observed: 0,
        revision: 0,
        trust: Trust::Trusted,
        failures: 0,
    }))
}

/// A session of somebody else is none.
pub(super) fn must_own(connection: &Connection, owner: &MemoryOwner) -> Result<(), Failure> {
    let own = connection
        .prepare_cached(OWNS)?
        .exists(params![owner.session.as_str(), owner.user.as_str()])?;
    if own {
        return Ok(());
    }
    let id = owner.session.clone();
    Err(StoreError::NotFound { id }.into())
}

/// Turns in their order, up to the first that may still go on.
pub(super) fn turns(
    reader: Reader<'_>,
    owner: &MemoryOwner,
    turns: TurnsToRead,
) -> Result<Vec<UnobservedTurn>, Failure> {
    let mut statement = reader.connection.prepare_cached(UNOBSERVED)?;
    let mut rows = statement.query(params![
        owner.session.as_str(),
        owner.user.as_str(),
        number(turns.from),
        number(turns.limit as u64),
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (finished, forgotten, last): (bool, bool, bool) =
            (row.get(2)?, row.get(11)?, row.get(12)?);
        // Only the last turn of a session can still end; one before it that never did has no answer.
        if !finished && last {
            break;
        }
        let exchange = if finished && !forgotten {
            let exchange = exchange(AnyRow::Sqlite(row), 0, &owner.session, reader.root_agent)?;
            Some(exchange_within(exchange, turns.text_bytes))
        } else {
            None
        };
        found.push(UnobservedTurn {
            ordinal: unsigned(row, 9)?,
            began: Timestamp(unsigned(row, 10)?),
            exchange,
        });
    }
    Ok(found)
}

/// The ordinal of a turn that is going on.
pub(super) fn current_turn(
    connection: &Connection,
    owner: &MemoryOwner,
    turn: &TurnId,
) -> Result<Option<u64>, Failure> {
    must_own(connection, owner)?;
    let last = connection
        .prepare_cached(LAST_TURN)?
        .query_row([owner.session.as_str()], |row| {
            Ok((unsigned(row, 0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    Ok(last
        .filter(|(_, last)| turn == last.as_str())
        .map(|(ordinal, _)| ordinal))
}

/// Recollections of one generation.
pub(super) fn list(
    connection: &Connection,
    owner: &MemoryOwner,
    generation: Generation,
    which: Which,
    limit: usize,
) -> Result<Vec<Recollection>, Failure> {
    let query = match which {
        Which::Newest => NEWEST,
        Which::OldestLoose => OLDEST_LOOSE,
    };
    listed(connection, query, owner, generation, limit)
}

/// What a prompt shows.
pub(super) fn shown(
    connection: &Connection,
    owner: &MemoryOwner,
    most: usize,
) -> Result<ShownMemory, Failure> {
    must_own(connection, owner)?;
    let newest = |generation| listed(connection, NEWEST_LOOSE, owner, generation, most);
    Ok(ShownMemory {
        recollections: [
            newest(Generation::Second)?,
            newest(Generation::First)?,
            newest(Generation::Observation)?,
        ],
        saved: saved(connection, &owner.user, most)?,
    })
}

fn listed(
    connection: &Connection,
    query: &str,
    owner: &MemoryOwner,
    generation: Generation,
    limit: usize,
) -> Result<Vec<Recollection>, Failure> {
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map(
        params![
            owner.user.as_str(),
            owner.session.as_str(),
            generation.number(),
            number(limit as u64)
        ],
        |row| recollection(row, generation),
    )?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A user's saved memories, the newest first.
pub(super) fn saved(
    connection: &Connection,
    user: &UserId,
    limit: usize,
) -> Result<Vec<SavedMemory>, Failure> {
    let mut statement = connection.prepare_cached(SAVED)?;
    let rows = statement.query_map(params![user.as_str(), number(limit as u64)], |row| {
        let tags: String = row.get(2)?;
        Ok(SavedMemory {
            id: MemoryId::Saved(unsigned(row, 0)?),
            text: row.get(1)?,
            tags: serde_json::from_str(&tags).unwrap_or_default(),
            source: source(row, 3)?,
            created: Timestamp(unsigned(row, 5)?),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A number as SQLite takes it.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn recollection(row: &Row<'_>, generation: Generation) -> rusqlite::Result<Recollection> {
    Ok(Recollection {
        id: generation.name(unsigned(row, 0)?),
        generation,
        turns: (unsigned(row, 2)?, unsigned(row, 3)?),
        text: row.get(4)?,
        source: source(row, 5)?,
        created: Timestamp(unsigned(row, 7)?),
        is_part: row.get::<_, Option<i64>>(8)?.is_some(),
    })
}

/// The name in one column, the trust in the next.
fn source(row: &Row<'_>, column: usize) -> rusqlite::Result<Source> {
    Ok(Source {
        name: row.get(column)?,
        trust: trust(row, column + 1)?,
    })
}

fn trust(row: &Row<'_>, column: usize) -> rusqlite::Result<Trust> {
    Ok(if row.get(column)? {
        Trust::Trusted
    } else {
        Trust::Untrusted
    })
}
