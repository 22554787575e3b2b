//! What agents saved: versions of knowledge under a key, and learnings. Searches find each by a document of its own, whose
//! collection is locked while an entry is written.

use super::documents::{
    in_order, lock, other_maker, remove_chunks, source_in, trust_word, write_locked,
};
use super::statements as sql;
use super::{DocumentPart, KnowledgeRow, LearningRow, VectorOutcome};
use crate::engine::{Failure, Row, Tx, values};
use lango_core::{EmbeddingMaker, UserId};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::slice::from_ref;

/// More chunks than an entry can have.
const ALL_CHUNKS: usize = 10_000;

/// Saves a new version unless the newest says the same.
pub(super) async fn save_knowledge(
    tx: &mut Tx<'_>,
    user: &UserId,
    entry: &KnowledgeRow,
    part: &DocumentPart,
    maker: Option<&EmbeddingMaker>,
) -> Result<VectorOutcome<(u64, bool)>, Failure> {
    let tags =
        serde_json::to_string(&entry.tags).map_err(|error| Failure::other(error.to_string()))?;
    let other = match maker {
        Some(_) => other_maker(tx, from_ref(part), maker).await?,
        None => None,
    };
    lock(tx, BTreeSet::from([part.document.collection.0])).await?;
    let newest = |row: Row<'_>| {
        let is = |column, text: &str| Ok::<_, Failure>(row.get::<Cow<'_, str>>(column)? == text);
        let is_same = is(1, &entry.category)? && is(2, &entry.content)? && is(3, &tags)?;
        Ok((row.get::<u64>(0)?, is_same, row.get(4)?))
    };
    let key = values![user, entry.key];
    let newest = tx.query_opt(sql::NEWEST_KNOWLEDGE, key, newest).await?;
    if let Some((newest, true, _)) = newest {
        return Ok(VectorOutcome::Done((newest, false)));
    }
    if let Some(other) = other {
        return Ok(VectorOutcome::OtherMaker(other));
    }
    let mut version = 1;
    if let Some((newest, _, document)) = newest {
        let values = values![user, entry.key, newest];
        tx.execute(sql::OUTDATE_KNOWLEDGE, values).await?;
        remove_old(tx, user, document).await?;
        version = newest + 1;
    }
    let document = write_document(tx, part).await?;
    let trust = trust_word(entry.source.trust);
    let values = values![
        user,
        entry.key,
        version,
        entry.category,
        entry.content,
        tags,
        entry.source.name,
        trust,
        entry.saved,
        document,
    ];
    tx.execute(sql::INSERT_KNOWLEDGE, values).await?;
    Ok(VectorOutcome::Done((version, true)))
}

/// Saves a learning, in place of one with the same trigger and fix.
pub(super) async fn save_learning(
    tx: &mut Tx<'_>,
    user: &UserId,
    learning: &LearningRow,
    part: &DocumentPart,
    maker: Option<&EmbeddingMaker>,
) -> Result<VectorOutcome<bool>, Failure> {
    if maker.is_some()
        && let Some(other) = other_maker(tx, from_ref(part), maker).await?
    {
        return Ok(VectorOutcome::OtherMaker(other));
    }
    lock(tx, BTreeSet::from([part.document.collection.0])).await?;
    let key = values![user, learning.trigger, learning.fix];
    let known = tx
        .query_opt(sql::LEARNING_DOCUMENT, key, |row| row.get::<Option<i64>>(0))
        .await?;
    // This deletes the old row too.
    remove_old(tx, user, known.flatten()).await?;
    let document = write_document(tx, part).await?;
    let trust = trust_word(learning.source.trust);
    let values = values![
        user,
        learning.trigger,
        learning.fix,
        learning.error_pattern,
        learning.confidence,
        learning.source.name,
        trust,
        learning.saved,
        document,
    ];
    tx.execute(sql::INSERT_LEARNING, values).await?;
    Ok(VectorOutcome::Done(known.is_none()))
}

async fn remove_old(tx: &mut Tx<'_>, user: &UserId, document: Option<i64>) -> Result<(), Failure> {
    if let Some(document) = document {
        remove_chunks(tx, user, document, ALL_CHUNKS).await?;
    }
    Ok(())
}

async fn write_document(tx: &mut Tx<'_>, part: &DocumentPart) -> Result<i64, Failure> {
    let keys = write_locked(tx, from_ref(part)).await?;
    let key = keys.first().copied();
    key.ok_or_else(|| Failure::other("a document was not written"))
}

pub(super) async fn knowledge(
    tx: &mut Tx<'_>,
    user: &UserId,
    documents: &[i64],
) -> Result<Vec<Option<KnowledgeRow>>, Failure> {
    let values = values![user, documents];
    let entry = |row: Row<'_>| Ok((row.get(8)?, knowledge_in(row)?));
    let entries = tx.query(sql::KNOWLEDGE_OF_DOCUMENTS, values, entry).await?;
    Ok(in_order(documents, entries))
}

pub(super) async fn learnings(
    tx: &mut Tx<'_>,
    user: &UserId,
    documents: &[i64],
) -> Result<Vec<Option<LearningRow>>, Failure> {
    let learning = |row: Row<'_>| {
        let learning = LearningRow {
            trigger: row.get(0)?,
            fix: row.get(1)?,
            error_pattern: row.get(2)?,
            confidence: row.get(3)?,
            source: source_in(row, 4)?,
            saved: row.get(6)?,
        };
        Ok((row.get(7)?, learning))
    };
    let values = values![user, documents];
    let learnings = tx
        .query(sql::LEARNINGS_OF_DOCUMENTS, values, learning)
        .await?;
    Ok(in_order(documents, learnings))
}

pub(super) fn knowledge_in(row: Row<'_>) -> Result<KnowledgeRow, Failure> {
    Ok(KnowledgeRow {
        key: row.get(0)?,
        version: row.get(1)?,
        category: row.get(2)?,
        content: row.get(3)?,
        tags: serde_json::from_str(&row.get::<Cow<'_, str>>(4)?).unwrap_or_default(),
        source: source_in(row, 5)?,
        saved: row.get(7)?,
    })
}
