//! Entries that agents saved: versions of knowledge under a key, and learnings. Each entry has its own document, by
//! which searches find it. The collection is locked while an entry is written.

use super::documents::{lock, other_model, remove_chunks, trust_word, write_locked};
use super::rows::in_order;
use super::statements as sql;
use super::{DocumentPart, KnowledgeRow, LearningRow, VectorOutcome};
use crate::StoreFuture;
use crate::backend::{BackendError, Result, Row, Tx, values, work};
use crate::store::Store;
use lango_core::{EmbeddingModel, StoreError, UserId};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::slice::from_ref;

/// A number greater than the number of chunks that an entry can have.
const ALL_CHUNKS: usize = 10_000;

impl Store {
    /// Saves a new version with its document, unless the newest version has the same content. Returns the version, and whether it
    /// is new.
    pub fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        part: DocumentPart,
        model: Option<EmbeddingModel>,
    ) -> StoreFuture<'_, VectorOutcome<(u64, bool)>> {
        let args = (user.clone(), row, part, model);
        work!(self.backend.write(args), |tx, user, entry, part, model| {
            let tags = serde_json::to_string(&entry.tags)
                .map_err(|error| BackendError::other(error.to_string()))?;
            let other = match model {
                Some(_) => other_model(tx, from_ref(part), model.as_ref()).await?,
                None => None,
            };
            lock(tx, BTreeSet::from([part.document.collection.0])).await?;
            let newest = |row: Row<'_>| {
                let is = |column, text: &str| {
                    Ok::<_, BackendError>(row.get::<Cow<'_, str>>(column)? == text)
                };
                let is_same = is(1, &entry.category)? && is(2, &entry.content)? && is(3, &tags)?;
                Ok((row.get::<u64>(0)?, is_same, row.get(4)?))
            };
            let key = values![user, entry.key];
            let newest = tx.query_opt(sql::NEWEST_KNOWLEDGE, key, newest).await?;
            if let Some((newest, true, _)) = newest {
                return Ok(VectorOutcome::Done((newest, false)));
            }
            if let Some(other) = other {
                return Ok(VectorOutcome::OtherModel(other));
            }
            let mut version = 1;
            if let Some((newest, _, document)) = newest {
                let values = values![user, entry.key, newest];
                tx.execute(sql::OUTDATE_KNOWLEDGE, values).await?;
                remove_old(tx, user, document).await?;
                version = newest + 1;
            }
            let document = write_document(tx, part).await?;
            let (key, category, content) = (&entry.key, &entry.category, &entry.content);
            let (source, trust) = (&entry.source.name, trust_word(entry.source.trust));
            let saved = entry.saved;
            let values = values![
                user, key, version, category, content, tags, source, trust, saved, document,
            ];
            tx.execute(sql::INSERT_KNOWLEDGE, values).await?;
            Ok(VectorOutcome::Done((version, true)))
        })
    }

    /// Saves a learning with its document. Replaces a learning with the same trigger and fix. Returns whether the learning is new.
    pub fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        part: DocumentPart,
        model: Option<EmbeddingModel>,
    ) -> StoreFuture<'_, VectorOutcome<bool>> {
        let args = (user.clone(), row, part, model);
        work!(self.backend.write(args), |tx, user, entry, part, model| {
            if model.is_some()
                && let Some(other) = other_model(tx, from_ref(part), model.as_ref()).await?
            {
                return Ok(VectorOutcome::OtherModel(other));
            }
            lock(tx, BTreeSet::from([part.document.collection.0])).await?;
            let key = values![user, entry.trigger, entry.fix];
            let known = tx.value::<Option<i64>>(sql::LEARNING_DOCUMENT, key).await?;
            // This also deletes the row of the old learning.
            remove_old(tx, user, known.flatten()).await?;
            let document = write_document(tx, part).await?;
            let (trigger, fix, pattern) = (&entry.trigger, &entry.fix, &entry.error_pattern);
            let (source, trust) = (&entry.source.name, trust_word(entry.source.trust));
            let (confidence, saved) = (entry.confidence, entry.saved);
            let values = values![
                user, trigger, fix, pattern, confidence, source, trust, saved, document,
            ];
            tx.execute(sql::INSERT_LEARNING, values).await?;
            Ok(VectorOutcome::Done(known.is_none()))
        })
    }

    /// Reads the knowledge that each of these documents belongs to, or `None` for other documents.
    pub async fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Result<Vec<Option<KnowledgeRow>>, StoreError> {
        let entry = |row: Row<'_>| Ok((row.get(8)?, row.read()?));
        let values = values![user, documents];
        let entries = self
            .backend
            .query(sql::KNOWLEDGE_OF_DOCUMENTS, values, entry);
        Ok(in_order(&documents, entries.await?))
    }

    /// Lists the saved versions of a knowledge key, newest first.
    pub fn knowledge_versions(
        &self,
        user: &UserId,
        key: &str,
        limit: usize,
    ) -> StoreFuture<'_, Vec<KnowledgeRow>> {
        let values = values![user, key, limit];
        self.backend
            .query(sql::KNOWLEDGE_VERSIONS, values, |row| row.read())
    }

    /// Reads the learning that each of these documents belongs to, or `None` for other documents.
    pub async fn learnings(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Result<Vec<Option<LearningRow>>, StoreError> {
        let learning = |row: Row<'_>| Ok((row.get(7)?, row.read()?));
        let values = values![user, documents];
        let learnings = self
            .backend
            .query(sql::LEARNINGS_OF_DOCUMENTS, values, learning);
        Ok(in_order(&documents, learnings.await?))
    }
}

async fn remove_old(tx: &mut Tx<'_>, user: &UserId, document: Option<i64>) -> Result<()> {
    if let Some(document) = document {
        remove_chunks(tx, user, document, ALL_CHUNKS).await?;
    }
    Ok(())
}

async fn write_document(tx: &mut Tx<'_>, part: &DocumentPart) -> Result<i64> {
    let keys = write_locked(tx, from_ref(part)).await?;
    let key = keys.first().copied();
    key.ok_or_else(|| BackendError::other("a document was not written"))
}
