//! From rows of the graph to values, and from names to the numbers they are kept under.

use super::statements::{ENTITY, ENTITY_BY_ID, FACT, PREDICATE, USER};
use crate::graph::{Confidence, Entity, Fact, Name};
use crate::sqlite::failure::Failure;
use crate::sqlite::rows::unsigned;
use lango_core::{Source, Text, Timestamp, Trust, UserId};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

/// The fact with this number.
pub(super) fn fact(connection: &Connection, id: i64) -> Result<Fact, Failure> {
    let mut statement = connection.prepare_cached(FACT)?;
    Ok(statement.query_row([id], |row| {
        Ok(Fact {
            subject: entity_in(row, 0)?,
            predicate: Name::stored(row.get(2)?),
            object: entity_in(row, 3)?,
            source: Source {
                name: row.get(5)?,
                trust: trust(row.get(6)?),
            },
            // What is not from 0 to 1 was never written; it deserves no belief.
            confidence: Confidence::new(row.get(7)?).unwrap_or(Confidence::NONE),
            created: Timestamp(unsigned(row, 8)?),
            valid_from: Timestamp(unsigned(row, 9)?),
            valid_to: match row.get_ref(10)? {
                rusqlite::types::ValueRef::Null => None,
                _ => Some(Timestamp(unsigned(row, 10)?)),
            },
        })
    })?)
}

/// The entity with this number.
pub(super) fn entity(connection: &Connection, id: i64) -> Result<Entity, Failure> {
    let mut statement = connection.prepare_cached(ENTITY_BY_ID)?;
    Ok(statement.query_row([id], |row| entity_in(row, 0))?)
}

/// The facts with these numbers.
pub(super) fn facts(connection: &Connection, ids: &[i64]) -> Result<Vec<Fact>, Failure> {
    ids.iter().map(|id| fact(connection, *id)).collect()
}

/// A user's number; nothing if they have no facts.
pub(super) fn user_id(connection: &Connection, user: &UserId) -> rusqlite::Result<Option<i64>> {
    number(connection, USER, params![user.as_str()])
}

/// The number of an entity.
pub(super) fn entity_id(
    connection: &Connection,
    user: i64,
    name: &Name,
) -> rusqlite::Result<Option<i64>> {
    number(connection, ENTITY, params![user, name.key()])
}

/// The number of a predicate.
pub(super) fn predicate_id(
    connection: &Connection,
    user: i64,
    name: &Name,
) -> rusqlite::Result<Option<i64>> {
    number(connection, PREDICATE, params![user, name.predicate_key()])
}

/// The number in the first column of the only row, if there is one.
pub(super) fn number(
    connection: &Connection,
    query: &str,
    values: impl Params,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(query)?
        .query_row(values, |row| row.get(0))
        .optional()
}

/// The numbers in the first column.
pub(super) fn numbers(
    connection: &Connection,
    query: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map(values, |row| row.get(0))?;
    rows.collect()
}

/// Trust as it is stored.
pub(super) fn trust(is_trusted: bool) -> Trust {
    if is_trusted {
        Trust::Trusted
    } else {
        Trust::Untrusted
    }
}

fn entity_in(row: &Row<'_>, column: usize) -> rusqlite::Result<Entity> {
    Ok(Entity {
        name: Name::stored(row.get(column)?),
        kind: row.get::<_, Option<Text>>(column + 1)?.map(Name::stored),
    })
}
