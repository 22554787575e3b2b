//! Collections: what a user's documents are kept in.

use super::super::failure::Failure;
use super::super::rows::unsigned;
use super::statements::{ALL_COLLECTIONS, COLLECTION, INSERT_COLLECTION, VISIBLE};
use crate::library::{CollectionId, CollectionRow};
use lango_core::{SessionId, Text, UserId};
use rusqlite::{Connection, Params, params};

/// The collection of that name, made if it is not there.
pub(super) fn ensure(
    connection: &Connection,
    user: &UserId,
    name: &str,
    session: Option<&SessionId>,
) -> Result<CollectionId, Failure> {
    let key = params![user.as_str(), name, session.map_or("", SessionId::as_str)];
    connection.prepare_cached(INSERT_COLLECTION)?.execute(key)?;
    let id = connection
        .prepare_cached(COLLECTION)?
        .query_row(key, |row| row.get(0))?;
    Ok(CollectionId(id))
}

/// The collections that are seen in a session.
pub(super) fn visible(
    connection: &Connection,
    user: &UserId,
    session: Option<&SessionId>,
) -> Result<Vec<CollectionRow>, Failure> {
    let session = session.map_or("", SessionId::as_str);
    rows(connection, VISIBLE, params![user.as_str(), session])
}

/// All collections of a user, by name.
pub(super) fn all(connection: &Connection, user: &UserId) -> Result<Vec<CollectionRow>, Failure> {
    rows(connection, ALL_COLLECTIONS, params![user.as_str()])
}

/// The session of a collection that has one; the empty name stands for none.
pub(super) fn session_of(stored: Text) -> Option<SessionId> {
    (!stored.is_empty()).then(|| SessionId::new(stored))
}

fn rows(
    connection: &Connection,
    query: &str,
    values: impl Params,
) -> Result<Vec<CollectionRow>, Failure> {
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map(values, |row| {
        Ok(CollectionRow {
            id: CollectionId(row.get(0)?),
            name: row.get(1)?,
            session: session_of(row.get(2)?),
            chunks: unsigned(row, 3)?,
            words: unsigned(row, 4)?,
            vectors: unsigned(row, 5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
