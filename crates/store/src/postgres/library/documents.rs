//! Documents and their chunks: removed in pieces, read by key.

use super::super::asking::{claim, execute, number, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::{limit, text, unsigned};
use super::super::text::{Words, words};
use super::collections::{hold, session_of};
use super::statements::{
    ADD_CHUNK_COUNTS, CHUNKS, DELETE_CHUNKS, DELETE_DOCUMENT, DELETE_KNOWLEDGE, DELETE_LEARNING,
    DOCUMENT_BY_ID, DOCUMENTS_IN_RANGE, DOCUMENTS_NAMED, OWNED_DOCUMENT, SOME_CHUNKS,
};
use super::vectors;
use crate::library::{DocumentRow, Found, Wanted};
use deadpool_postgres::Transaction;
use lango_core::{Source, Timestamp, Trust, UserId};
use std::collections::HashMap;
use tokio_postgres::Row;

/// What of a document was removed.
pub(super) struct Removed {
    /// How many chunks.
    pub chunks: u64,
    /// Whether nothing is left of it.
    pub is_gone: bool,
}

/// Removes up to `most` chunks of a user's document, and the document itself with the last of them.
pub(super) async fn remove_some(
    transaction: &Transaction<'_>,
    user: &UserId,
    document: i64,
    most: usize,
) -> Result<Option<Removed>, Failure> {
    let owned: Values<'_> = &[&document, &Words(user.as_str())];
    let collection = number(transaction, OWNED_DOCUMENT, owned).await?;
    let Some(collection) = collection else {
        return Ok(None);
    };
    hold(transaction, std::iter::once(collection)).await?;
    let found = rows(transaction, SOME_CHUNKS, &[&document, &limit(most)]).await?;
    let (mut keys, mut length) = (Vec::with_capacity(found.len()), 0);
    for row in &found {
        keys.push(row.try_get::<_, i64>(0)?);
        length += row.try_get::<_, i64>(1)?;
    }
    vectors::forget(transaction, &keys).await?;
    execute(transaction, DELETE_CHUNKS, &[&keys]).await?;
    let fewer: Values<'_> = &[&collection, &-limit(keys.len()), &-length];
    execute(transaction, ADD_CHUNK_COUNTS, fewer).await?;
    let is_gone = keys.len() < most;
    if is_gone {
        // What was saved is forgotten with the document by which it is found.
        let owned: Values<'_> = &[&Words(user.as_str()), &document];
        execute(transaction, DELETE_KNOWLEDGE, owned).await?;
        execute(transaction, DELETE_LEARNING, owned).await?;
        execute(transaction, DELETE_DOCUMENT, &[&document]).await?;
    }
    Ok(Some(Removed {
        chunks: keys.len() as u64,
        is_gone,
    }))
}

/// Documents of a user.
pub(super) async fn list(
    transaction: &Transaction<'_>,
    user: &UserId,
    wanted: &Wanted,
) -> Result<Vec<DocumentRow>, Failure> {
    let user = Words(user.as_str());
    let found = match wanted {
        Wanted::Range {
            collection,
            from,
            before,
            most,
        } => {
            let (from, before) = (Words(from), before.as_deref().map(Words));
            let values: Values<'_> = &[&user, &collection.0, &from, &before, &limit(*most)];
            rows(transaction, DOCUMENTS_IN_RANGE, values).await?
        }
        Wanted::Named(name) => rows(transaction, DOCUMENTS_NAMED, &[&user, &Words(name)]).await?,
        Wanted::Id(id) => rows(transaction, DOCUMENT_BY_ID, &[&user, id]).await?,
    };
    let document = |row| {
        Ok(DocumentRow {
            id: Row::try_get(row, 0)?,
            collection: text(row, 1)?,
            session: session_of(text(row, 2)?),
            source: source(row, 3)?,
            title: text(row, 5)?,
            hash: row.try_get(6)?,
            size: unsigned(row, 7)?,
            added: Timestamp(unsigned(row, 8)?),
            is_complete: claim(row, 9)?,
            chunks: unsigned(row, 10)?,
        })
    };
    found.iter().map(document).collect()
}

/// Chunks by their keys.
pub(super) async fn chunks(
    transaction: &Transaction<'_>,
    ids: &[i64],
) -> Result<Vec<Found>, Failure> {
    let mut found = HashMap::new();
    for row in &rows(transaction, CHUNKS, &[&ids]).await? {
        let chunk = Found {
            id: row.try_get(0)?,
            document: row.try_get(1)?,
            collection: text(row, 2)?,
            source: source(row, 3)?,
            title: text(row, 5)?,
            heading: text(row, 6)?,
            text: text(row, 7)?,
            ordinal: unsigned(row, 8)?,
            position: unsigned(row, 9)?,
        };
        found.insert(chunk.id, chunk);
    }
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

/// The source in two columns: its name, and whether it is trusted.
pub(super) fn source(row: &Row, column: usize) -> Result<Source, Failure> {
    let trust = match words(row, column + 1)?.as_ref() {
        "trusted" => Trust::Trusted,
        // Whatever else it says, it is not believed.
        _ => Trust::Untrusted,
    };
    Ok(Source {
        name: text(row, column)?,
        trust,
    })
}

/// Trust as it is stored.
pub(super) fn trust_word(trust: Trust) -> &'static str {
    match trust {
        Trust::Trusted => "trusted",
        Trust::Untrusted => "untrusted",
    }
}
