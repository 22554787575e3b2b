//! Collections: what a user's documents are kept in.

use super::super::asking::{execute, number, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::{text, unsigned};
use super::super::text::Words;
use super::statements::{
    ALL_COLLECTIONS, COLLECTION, HOLD_COLLECTIONS, INSERT_COLLECTION, VISIBLE,
};
use crate::library::{CollectionId, CollectionRow};
use deadpool_postgres::Transaction;
use lango_core::{SessionId, Text, UserId};

/// The collection of that name, made if it is not there.
pub(super) async fn ensure(
    transaction: &Transaction<'_>,
    user: &UserId,
    name: &str,
    session: Option<&SessionId>,
) -> Result<CollectionId, Failure> {
    let session = Words(session.map_or("", SessionId::as_str));
    let key: Values<'_> = &[&Words(user.as_str()), &Words(name), &session];
    if let Some(id) = number(transaction, COLLECTION, key).await? {
        return Ok(CollectionId(id));
    }
    execute(transaction, INSERT_COLLECTION, key).await?;
    let made = number(transaction, COLLECTION, key).await?;
    let made = made.ok_or_else(|| Failure::other("a new collection is gone"))?;
    Ok(CollectionId(made))
}

/// Holds collections until the end of the transaction, so that nobody else writes into them.
pub(super) async fn hold(
    transaction: &Transaction<'_>,
    collections: impl Iterator<Item = i64>,
) -> Result<(), Failure> {
    let collections: Vec<i64> = collections.collect();
    rows(transaction, HOLD_COLLECTIONS, &[&collections]).await?;
    Ok(())
}

/// The collections that are seen in a session.
pub(super) async fn visible(
    transaction: &Transaction<'_>,
    user: &UserId,
    session: Option<&SessionId>,
) -> Result<Vec<CollectionRow>, Failure> {
    let session = Words(session.map_or("", SessionId::as_str));
    read(transaction, VISIBLE, &[&Words(user.as_str()), &session]).await
}

/// All collections of a user, by name.
pub(super) async fn all(
    transaction: &Transaction<'_>,
    user: &UserId,
) -> Result<Vec<CollectionRow>, Failure> {
    read(transaction, ALL_COLLECTIONS, &[&Words(user.as_str())]).await
}

/// The session of a collection that has one; the empty name stands for none.
pub(super) fn session_of(stored: Text) -> Option<SessionId> {
    (!stored.is_empty()).then(|| SessionId::new(stored))
}

async fn read(
    transaction: &Transaction<'_>,
    query: &str,
    values: Values<'_>,
) -> Result<Vec<CollectionRow>, Failure> {
    let rows = rows(transaction, query, values).await?;
    let collection = |row| {
        Ok(CollectionRow {
            id: CollectionId(tokio_postgres::Row::try_get(row, 0)?),
            name: text(row, 1)?,
            session: session_of(text(row, 2)?),
            chunks: unsigned(row, 3)?,
            words: unsigned(row, 4)?,
            vectors: unsigned(row, 5)?,
        })
    };
    rows.iter().map(collection).collect()
}
