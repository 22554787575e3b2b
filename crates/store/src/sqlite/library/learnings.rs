//! What went wrong once, and what helped; each with a document by which it is found.

use super::super::failure::Failure;
use super::super::rows::unsigned;
use super::documents::{remove_some, signed, source, trust_word, write_piece};
use super::knowledge::other_maker;
use super::statements::{LEARNING_DOCUMENT, LEARNING_OF_DOCUMENT, SAVE_LEARNING};
use crate::library::{LearningRow, Piece, Stored};
use lango_core::{EmbeddingMaker, Timestamp, UserId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// More chunks than a learning can have.
const ALL_CHUNKS_OF_ONE: usize = 10_000;

/// Saves a learning, or brings one with the same trigger and fix up to date.
pub(super) fn save(
    connection: &Connection,
    user: &UserId,
    row: &LearningRow,
    piece: &Piece,
    maker: Option<&EmbeddingMaker>,
) -> Result<Stored<bool>, Failure> {
    if let Some(other) = other_maker(connection, piece, maker)? {
        return Ok(Stored::OtherMaker(other));
    }
    let known: Option<Option<i64>> = connection
        .prepare_cached(LEARNING_DOCUMENT)?
        .query_row(params![user.as_str(), row.trigger, row.fix], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(Some(document)) = known {
        remove_some(connection, user, document, ALL_CHUNKS_OF_ONE)?;
    }
    let document = write_piece(connection, piece)?;
    connection.prepare_cached(SAVE_LEARNING)?.execute(params![
        user.as_str(),
        row.trigger,
        row.fix,
        row.error_pattern,
        row.confidence,
        row.source.name,
        trust_word(row.source.trust),
        signed(row.saved.0),
        document,
    ])?;
    Ok(Stored::Done(known.is_none()))
}

/// Learnings by their documents.
pub(super) fn of_documents(
    connection: &Connection,
    user: &UserId,
    documents: &[i64],
) -> Result<Vec<Option<LearningRow>>, Failure> {
    let mut statement = connection.prepare_cached(LEARNING_OF_DOCUMENT)?;
    let one = |document: &i64| {
        let row = statement.query_row(params![user.as_str(), document], |row| {
            Ok(LearningRow {
                trigger: row.get(0)?,
                fix: row.get(1)?,
                error_pattern: row.get(2)?,
                confidence: row.get(3)?,
                source: source(row, 4)?,
                saved: Timestamp(unsigned(row, 6)?),
            })
        });
        row.optional()
    };
    Ok(documents.iter().map(one).collect::<rusqlite::Result<_>>()?)
}
