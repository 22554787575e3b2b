//! Documents and their chunks: written in pieces, removed in pieces, read by key.

use super::super::failure::Failure;
use super::super::rows::unsigned;
use super::collections::session_of;
use super::statements::{
    ADD_CHUNK_COUNTS, BEGIN_WIPING, CHUNK, CHUNKS_OF_DOCUMENT, COMPLETE_DOCUMENT, DELETE_CHUNK,
    DELETE_DOCUMENT, DELETE_KNOWLEDGE, DELETE_LEARNING, DOCUMENT_BY_ID, DOCUMENT_KEY,
    DOCUMENTS_IN_RANGE, DOCUMENTS_NAMED, END_WIPING, INSERT_CHUNK, INSERT_DOCUMENT, OWNED_DOCUMENT,
    TAKE_CHUNK_KEYS,
};
use super::vectors;
use crate::library::vectors::COLLECTION_SHIFT;
use crate::library::{DocumentRow, Found, Piece, Stored, Wanted};
use lango_core::{EmbeddingMaker, Source, Text, Timestamp, Trust, UserId};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

/// Writes pieces of documents.
pub(super) fn write(
    connection: &Connection,
    pieces: &[Piece],
    maker: Option<&EmbeddingMaker>,
) -> Result<Stored<()>, Failure> {
    let has_vectors = |piece: &Piece| piece.chunks.iter().any(|chunk| chunk.vector.is_some());
    if pieces.iter().any(has_vectors) {
        let maker = maker.ok_or_else(|| Failure::other("vectors came without their maker"))?;
        if let Some(other) = vectors::claim(connection, maker)? {
            return Ok(Stored::OtherMaker(other));
        }
    }
    for piece in pieces {
        write_piece(connection, piece)?;
    }
    Ok(Stored::Done(()))
}

/// Writes a piece whose vectors, if any, are of the right maker. Gives the key of its document.
pub(super) fn write_piece(connection: &Connection, piece: &Piece) -> Result<i64, Failure> {
    let document = &piece.document;
    let collection = document.collection.0;
    if piece.part.before == 0 {
        connection
            .prepare_cached(INSERT_DOCUMENT)?
            .execute(params![
                collection,
                document.source.name,
                trust_word(document.source.trust),
                document.title,
                document.hash,
                signed(document.size),
                signed(document.added.0),
            ])?;
    }
    let id: i64 = connection
        .prepare_cached(DOCUMENT_KEY)?
        .query_row(params![collection, document.source.name], |row| row.get(0))?;

    let count = piece.chunks.len();
    let words: u64 = piece.chunks.iter().map(|chunk| chunk.words).sum();
    let first: i64 = connection
        .prepare_cached(TAKE_CHUNK_KEYS)?
        .query_row(params![collection, count as i64, signed(words)], |row| {
            row.get(0)
        })?;
    let mut insert = connection.prepare_cached(INSERT_CHUNK)?;
    let mut made = Vec::new();
    for (at, chunk) in piece.chunks.iter().enumerate() {
        let key = (collection << COLLECTION_SHIFT) + first + at as i64;
        insert.execute(params![
            key,
            id,
            signed(piece.part.before + at as u64),
            signed(chunk.position),
            signed(chunk.words),
            chunk.heading,
            chunk.text,
        ])?;
        if let Some(vector) = &chunk.vector {
            made.push((key, vector.as_slice()));
        }
    }
    vectors::store(connection, &made)?;
    if piece.part.is_last {
        connection
            .prepare_cached(COMPLETE_DOCUMENT)?
            .execute([id])?;
    }
    Ok(id)
}

/// What of a document was removed.
pub(super) struct Removed {
    /// How many chunks.
    pub chunks: u64,
    /// Whether nothing is left of it.
    pub is_gone: bool,
}

/// Removes up to `most` chunks of a user's document, and the document itself with the last of them.
pub(super) fn remove_some(
    connection: &Connection,
    user: &UserId,
    document: i64,
    most: usize,
) -> Result<Option<Removed>, Failure> {
    let collection: Option<i64> = connection
        .prepare_cached(OWNED_DOCUMENT)?
        .query_row(params![document, user.as_str()], |row| row.get(0))
        .optional()?;
    let Some(collection) = collection else {
        return Ok(None);
    };
    let keys: Vec<(i64, i64)> = connection
        .prepare_cached(CHUNKS_OF_DOCUMENT)?
        .query_map(params![document, most as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    vectors::forget(connection, keys.iter().map(|(key, _)| *key))?;
    let mut delete = connection.prepare_cached(DELETE_CHUNK)?;
    for (key, _) in &keys {
        delete.execute([key])?;
    }
    let words: i64 = keys.iter().map(|(_, words)| words).sum();
    connection
        .prepare_cached(ADD_CHUNK_COUNTS)?
        .execute(params![collection, -(keys.len() as i64), -words])?;
    let is_gone = keys.len() < most;
    if is_gone {
        // What was saved is forgotten with the document by which it is found.
        for statement in [DELETE_KNOWLEDGE, DELETE_LEARNING] {
            let owned = params![user.as_str(), document];
            connection.prepare_cached(statement)?.execute(owned)?;
        }
        connection
            .prepare_cached(DELETE_DOCUMENT)?
            .execute([document])?;
    }
    Ok(Some(Removed {
        chunks: keys.len() as u64,
        is_gone,
    }))
}

/// Removes as [`remove_some`] does, and wipes the bytes from the file.
pub(super) fn wipe_some(
    connection: &Connection,
    user: &UserId,
    document: i64,
    most: usize,
) -> Result<Option<Removed>, Failure> {
    connection.execute_batch(BEGIN_WIPING)?;
    let removed = remove_some(connection, user, document, most);
    connection.execute_batch(END_WIPING)?;
    removed
}

/// Documents of a user.
pub(super) fn list(
    connection: &Connection,
    user: &UserId,
    wanted: &Wanted,
) -> Result<Vec<DocumentRow>, Failure> {
    let user = user.as_str();
    match wanted {
        Wanted::Range {
            collection,
            from,
            before,
            most,
        } => {
            // No text is as great as a blob, so without an end all names are before it.
            let values = params![user, collection.0, from, before, limit(*most)];
            rows(connection, DOCUMENTS_IN_RANGE, values)
        }
        Wanted::Named(name) => rows(connection, DOCUMENTS_NAMED, params![user, name]),
        Wanted::Id(id) => rows(connection, DOCUMENT_BY_ID, params![user, id]),
    }
}

/// Chunks by their keys.
pub(super) fn chunks(connection: &Connection, ids: &[i64]) -> Result<Vec<Found>, Failure> {
    let mut statement = connection.prepare_cached(CHUNK)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let row = statement.query_row([id], |row| {
            Ok(Found {
                id: row.get(0)?,
                document: row.get(1)?,
                collection: row.get(2)?,
                source: source(row, 3)?,
                title: row.get(5)?,
                heading: row.get(6)?,
                text: row.get(7)?,
                ordinal: unsigned(row, 8)?,
                position: unsigned(row, 9)?,
            })
        });
        found.extend(row.optional()?);
    }
    Ok(found)
}

/// The source in two columns: its name, and whether it is trusted.
pub(super) fn source(row: &Row<'_>, column: usize) -> rusqlite::Result<Source> {
    let trust = match row.get_ref(column + 1)?.as_str()? {
        "trusted" => Trust::Trusted,
        // Whatever else it says, it is not believed.
        _ => Trust::Untrusted,
    };
    Ok(Source {
        name: row.get(column)?,
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

/// A number as SQLite takes it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit as SQLite takes it.
pub(super) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

fn rows(
    connection: &Connection,
    query: &str,
    values: impl Params,
) -> Result<Vec<DocumentRow>, Failure> {
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map(values, |row| {
        Ok(DocumentRow {
            id: row.get(0)?,
            collection: row.get(1)?,
            session: session_of(row.get::<_, Text>(2)?),
            source: source(row, 3)?,
            title: row.get(5)?,
            hash: row.get(6)?,
            size: unsigned(row, 7)?,
            added: Timestamp(unsigned(row, 8)?),
            is_complete: row.get(9)?,
            chunks: unsigned(row, 10)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
