//! What was saved under a key, version by version. The newest one has a document, by which it is found.

use super::super::failure::Failure;
use super::super::rows::unsigned;
use super::documents::{limit, remove_some, signed, source, trust_word, write_piece};
use super::statements::{
    INSERT_KNOWLEDGE, KNOWLEDGE_OF_DOCUMENT, KNOWLEDGE_VERSIONS, NEWEST_KNOWLEDGE,
    OUTDATE_KNOWLEDGE,
};
use super::vectors;
use crate::library::{KnowledgeRow, Piece, Stored};
use lango_core::{EmbeddingMaker, Text, Timestamp, UserId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// More chunks than a saved text can have.
const ALL_CHUNKS_OF_ONE: usize = 10_000;

struct Newest {
    version: u64,
    category: String,
    content: String,
    tags: String,
    document: Option<i64>,
}

/// Saves a new version unless the newest says the same.
pub(super) fn save(
    connection: &Connection,
    user: &UserId,
    row: &KnowledgeRow,
    piece: &Piece,
    maker: Option<&EmbeddingMaker>,
) -> Result<Stored<(u64, bool)>, Failure> {
    let newest = newest(connection, user, &row.key)?;
    let tags =
        serde_json::to_string(&row.tags).map_err(|error| Failure::other(error.to_string()))?;
    if let Some(newest) = &newest
        && newest.content == *row.content
        && newest.category == *row.category
        && newest.tags == tags
    {
        return Ok(Stored::Done((newest.version, false)));
    }
    if let Some(other) = other_maker(connection, piece, maker)? {
        return Ok(Stored::OtherMaker(other));
    }
    let version = newest.as_ref().map_or(1, |newest| newest.version + 1);
    if let Some(newest) = newest {
        let old = params![user.as_str(), row.key, signed(newest.version)];
        connection.prepare_cached(OUTDATE_KNOWLEDGE)?.execute(old)?;
        if let Some(document) = newest.document {
            remove_some(connection, user, document, ALL_CHUNKS_OF_ONE)?;
        }
    }
    let document = write_piece(connection, piece)?;
    connection
        .prepare_cached(INSERT_KNOWLEDGE)?
        .execute(params![
            user.as_str(),
            row.key,
            signed(version),
            row.category,
            row.content,
            tags,
            row.source.name,
            trust_word(row.source.trust),
            signed(row.saved.0),
            document,
        ])?;
    Ok(Stored::Done((version, true)))
}

/// Who made the vectors that are there, if the piece brings some of another.
pub(super) fn other_maker(
    connection: &Connection,
    piece: &Piece,
    maker: Option<&EmbeddingMaker>,
) -> Result<Option<EmbeddingMaker>, Failure> {
    match maker {
        Some(maker) if piece.chunks.iter().any(|chunk| chunk.vector.is_some()) => {
            vectors::claim(connection, maker)
        }
        _ => Ok(None),
    }
}

/// What was saved, by its documents.
pub(super) fn of_documents(
    connection: &Connection,
    user: &UserId,
    documents: &[i64],
) -> Result<Vec<Option<KnowledgeRow>>, Failure> {
    let mut statement = connection.prepare_cached(KNOWLEDGE_OF_DOCUMENT)?;
    let one = |document: &i64| {
        let row = statement.query_row(params![user.as_str(), document], read);
        row.optional()
    };
    Ok(documents.iter().map(one).collect::<rusqlite::Result<_>>()?)
}

/// All versions under a key.
pub(super) fn versions(
    connection: &Connection,
    user: &UserId,
    key: &str,
    most: usize,
) -> Result<Vec<KnowledgeRow>, Failure> {
    let mut statement = connection.prepare_cached(KNOWLEDGE_VERSIONS)?;
    let rows = statement.query_map(params![user.as_str(), key, limit(most)], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn newest(connection: &Connection, user: &UserId, key: &str) -> Result<Option<Newest>, Failure> {
    let newest = connection.prepare_cached(NEWEST_KNOWLEDGE)?.query_row(
        params![user.as_str(), key],
        |row| {
            Ok(Newest {
                version: unsigned(row, 0)?,
                category: row.get(1)?,
                content: row.get(2)?,
                tags: row.get(3)?,
                document: row.get(4)?,
            })
        },
    );
    Ok(newest.optional()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<KnowledgeRow> {
    let tags: Vec<Text> = serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or_default();
    Ok(KnowledgeRow {
        key: row.get(0)?,
        version: unsigned(row, 1)?,
        category: row.get(2)?,
        content: row.get(3)?,
        tags,
        source: source(row, 5)?,
        saved: Timestamp(unsigned(row, 7)?),
    })
}
