//! What agents saved: knowledge under a key, version by version, and what helped when something went wrong. Each has a
//! document by which it is found, and is written while the collection of that is held.

use super::super::asking::{execute, row, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::{bound, limit, text, unsigned};
use super::super::text::{Words, words};
use super::collections::hold;
use super::documents::{remove_some, source, trust_word};
use super::statements::{
    INSERT_KNOWLEDGE, INSERT_LEARNING, KNOWLEDGE_OF_DOCUMENTS, KNOWLEDGE_VERSIONS,
    LEARNING_DOCUMENT, LEARNINGS_OF_DOCUMENTS, NEWEST_KNOWLEDGE, OUTDATE_KNOWLEDGE,
};
use super::vectors;
use super::writing::write_held;
use crate::library::{KnowledgeRow, LearningRow, Piece, Stored};
use deadpool_postgres::Transaction;
use lango_core::{EmbeddingMaker, Text, Timestamp, UserId};
use std::collections::HashMap;
use tokio_postgres::Row;

/// More chunks than a saved text can have.
const ALL_CHUNKS_OF_ONE: usize = 10_000;

/// Saves a new version unless the newest says the same.
pub(super) async fn save_knowledge(
    transaction: &Transaction<'_>,
    user: &UserId,
    row: &KnowledgeRow,
    piece: &Piece,
    maker: Option<&EmbeddingMaker>,
) -> Result<Stored<(u64, bool)>, Failure> {
    let tags =
        serde_json::to_string(&row.tags).map_err(|error| Failure::other(error.to_string()))?;
    let other = other_maker(transaction, piece, maker).await?;
    hold(transaction, std::iter::once(piece.document.collection.0)).await?;
    let newest = newest(transaction, user, &row.key).await?;
    if let Some(newest) = &newest
        && newest.content == *row.content
        && newest.category == *row.category
        && newest.tags == tags
    {
        return Ok(Stored::Done((newest.version, false)));
    }
    if let Some(other) = other {
        return Ok(Stored::OtherMaker(other));
    }
    let version = newest.as_ref().map_or(1, |newest| newest.version + 1);
    let (user_words, key) = (Words(user.as_str()), Words(&row.key));
    if let Some(newest) = newest {
        let old: Values<'_> = &[&user_words, &key, &bound(newest.version)];
        execute(transaction, OUTDATE_KNOWLEDGE, old).await?;
        if let Some(document) = newest.document {
            remove_some(transaction, user, document, ALL_CHUNKS_OF_ONE).await?;
        }
    }
    let document = write_one(transaction, piece).await?;
    let values: Values<'_> = &[
        &user_words,
        &key,
        &bound(version),
        &Words(&row.category),
        &Words(&row.content),
        &Words(&tags),
        &Words(&row.source.name),
        &trust_word(row.source.trust),
        &bound(row.saved.0),
        &document,
    ];
    execute(transaction, INSERT_KNOWLEDGE, values).await?;
    Ok(Stored::Done((version, true)))
}

/// Saves a learning, or brings one with the same trigger and fix up to date.
pub(super) async fn save_learning(
    transaction: &Transaction<'_>,
    user: &UserId,
    learning: &LearningRow,
    piece: &Piece,
    maker: Option<&EmbeddingMaker>,
) -> Result<Stored<bool>, Failure> {
    if let Some(other) = other_maker(transaction, piece, maker).await? {
        return Ok(Stored::OtherMaker(other));
    }
    hold(transaction, std::iter::once(piece.document.collection.0)).await?;
    let user_words = Words(user.as_str());
    let key: Values<'_> = &[
        &user_words,
        &Words(&learning.trigger),
        &Words(&learning.fix),
    ];
    let known = row(transaction, LEARNING_DOCUMENT, key).await?;
    if let Some(known) = &known
        && let Some(document) = known.try_get::<_, Option<i64>>(0)?
    {
        // The learning goes with it, and comes back as it is now.
        remove_some(transaction, user, document, ALL_CHUNKS_OF_ONE).await?;
    }
    let document = write_one(transaction, piece).await?;
    let values: Values<'_> = &[
        &user_words,
        &Words(&learning.trigger),
        &Words(&learning.fix),
        &Words(&learning.error_pattern),
        &learning.confidence,
        &Words(&learning.source.name),
        &trust_word(learning.source.trust),
        &bound(learning.saved.0),
        &document,
    ];
    execute(transaction, INSERT_LEARNING, values).await?;
    Ok(Stored::Done(known.is_none()))
}

/// Writes the document by which something is found; gives its key.
async fn write_one(transaction: &Transaction<'_>, piece: &Piece) -> Result<i64, Failure> {
    let keys = write_held(transaction, std::slice::from_ref(piece)).await?;
    let key = keys.first().copied();
    key.ok_or_else(|| Failure::other("a document was not written"))
}

/// Who made the vectors that are there, if the piece brings some of another.
async fn other_maker(
    transaction: &Transaction<'_>,
    piece: &Piece,
    maker: Option<&EmbeddingMaker>,
) -> Result<Option<EmbeddingMaker>, Failure> {
    match maker {
        Some(maker) if piece.chunks.iter().any(|chunk| chunk.vector.is_some()) => {
            vectors::claim(transaction, maker).await
        }
        _ => Ok(None),
    }
}

struct Newest {
    version: u64,
    category: String,
    content: String,
    tags: String,
    document: Option<i64>,
}

async fn newest(
    transaction: &Transaction<'_>,
    user: &UserId,
    key: &str,
) -> Result<Option<Newest>, Failure> {
    let key: Values<'_> = &[&Words(user.as_str()), &Words(key)];
    let Some(row) = row(transaction, NEWEST_KNOWLEDGE, key).await? else {
        return Ok(None);
    };
    Ok(Some(Newest {
        version: unsigned(&row, 0)?,
        category: words(&row, 1)?.into_owned(),
        content: words(&row, 2)?.into_owned(),
        tags: words(&row, 3)?.into_owned(),
        document: row.try_get(4)?,
    }))
}

/// What was saved, by its documents.
pub(super) async fn knowledge(
    transaction: &Transaction<'_>,
    user: &UserId,
    documents: &[i64],
) -> Result<Vec<Option<KnowledgeRow>>, Failure> {
    let values: Values<'_> = &[&Words(user.as_str()), &documents];
    let mut found = HashMap::new();
    for row in &rows(transaction, KNOWLEDGE_OF_DOCUMENTS, values).await? {
        found.insert(row.try_get::<_, i64>(8)?, knowledge_row(row)?);
    }
    Ok(documents.iter().map(|id| found.get(id).cloned()).collect())
}

/// All versions under a key.
pub(super) async fn versions(
    transaction: &Transaction<'_>,
    user: &UserId,
    key: &str,
    most: usize,
) -> Result<Vec<KnowledgeRow>, Failure> {
    let values: Values<'_> = &[&Words(user.as_str()), &Words(key), &limit(most)];
    let rows = rows(transaction, KNOWLEDGE_VERSIONS, values).await?;
    rows.iter().map(knowledge_row).collect()
}

/// Learnings by their documents.
pub(super) async fn learnings(
    transaction: &Transaction<'_>,
    user: &UserId,
    documents: &[i64],
) -> Result<Vec<Option<LearningRow>>, Failure> {
    let values: Values<'_> = &[&Words(user.as_str()), &documents];
    let mut found = HashMap::new();
    for row in &rows(transaction, LEARNINGS_OF_DOCUMENTS, values).await? {
        let learning = LearningRow {
            trigger: text(row, 0)?,
            fix: text(row, 1)?,
            error_pattern: text(row, 2)?,
            confidence: row.try_get(3)?,
            source: source(row, 4)?,
            saved: Timestamp(unsigned(row, 6)?),
        };
        found.insert(row.try_get::<_, i64>(7)?, learning);
    }
    Ok(documents.iter().map(|id| found.get(id).cloned()).collect())
}

fn knowledge_row(row: &Row) -> Result<KnowledgeRow, Failure> {
    let tags: Vec<Text> = serde_json::from_str(&words(row, 4)?).unwrap_or_default();
    Ok(KnowledgeRow {
        key: text(row, 0)?,
        version: unsigned(row, 1)?,
        category: text(row, 2)?,
        content: text(row, 3)?,
        tags,
        source: source(row, 5)?,
        saved: Timestamp(unsigned(row, 7)?),
    })
}
