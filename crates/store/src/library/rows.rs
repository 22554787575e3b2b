//! Access to the rows of the library.
//!
//! A write changes a few hundred rows at most, because turns wait behind it; callers split larger ones. Reads are bounded by
//! what they look for, except that a scan for vectors reads one bit per number of all vectors in its collections.

use super::nearest::NearestQuery;
use super::statements as sql;
use super::{
    CollectionId, CollectionRow, DocumentFilter, DocumentPart, DocumentRow, Removal, SearchHit,
    VectorOutcome, VectorSearch, documents, nearest, vectors,
};
use crate::Answer;
use crate::engine::{Engine, Row, bulk_row, values, work};
use crate::postgres::pgvector;
use crate::store::Store;
use lango_core::{EmbeddingMaker, SessionId, StoreError, UserId};
use std::collections::HashMap;
use std::sync::Arc;

/// The rows of the library in a database.
impl Store {
    /// Lists the collections that a user sees in a session, with the model of their vectors. Without a session, those that
    /// every session sees.
    pub fn visible_collections(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)> {
        let session = session.map_or("", SessionId::as_str).to_owned();
        let given = (user.clone(), session);
        work!(self.engine.snapshot(given), |tx, user, session| {
            let values = values![user, session];
            let visible = tx.query(sql::COLLECTIONS, values, |row| row.read());
            let visible = visible.await?;
            Ok((visible, vectors::maker(tx).await?))
        })
    }

    /// Lists all collections of a user, those of every session included, by name.
    pub fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>> {
        let values = values![user, None::<&str>];
        self.engine
            .query(sql::COLLECTIONS, values, |row| row.read())
    }

    /// Lists documents of a user by name, those of all sessions included.
    pub fn documents(&self, user: &UserId, filter: DocumentFilter) -> Answer<'_, Vec<DocumentRow>> {
        let (statement, values) = match &filter {
            DocumentFilter::Range {
                collection,
                from,
                before,
                most,
            } => {
                let values = bulk_row![user, collection.0, from, before, most];
                (sql::DOCUMENTS_IN_RANGE, values)
            }
            DocumentFilter::Named(name) => (sql::DOCUMENTS_NAMED, bulk_row![user, name]),
            DocumentFilter::Id(id) => (sql::DOCUMENT_BY_ID, bulk_row![user, id]),
        };
        self.engine.query(statement, &values, |row| row.read())
    }

    /// Writes parts of documents in one transaction. The name of a first part must be free: see
    /// [`remove_document`](Self::remove_document). Chunks with vectors need the model.
    pub fn write_documents(
        &self,
        parts: Vec<DocumentPart>,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, VectorOutcome<()>> {
        let given = (parts, maker);
        work!(self.engine.write(given), |tx, parts, maker| {
            if let Some(other) = documents::other_maker(tx, parts, maker.as_ref()).await? {
                return Ok(VectorOutcome::OtherMaker(other));
            }
            let collections = parts.iter().map(|part| part.document.collection.0);
            documents::lock(tx, collections.collect()).await?;
            documents::write_locked(tx, parts).await?;
            Ok(VectorOutcome::Done(()))
        })
    }

    /// Removes a user's document with its words and vectors, in as many transactions as that takes. Returns the number of its
    /// chunks, or `None` if there is no such document.
    pub async fn remove_document(
        &self,
        user: &UserId,
        document: i64,
        removal: Removal,
    ) -> Result<Option<u64>, StoreError> {
        let mut chunks = 0;
        loop {
            let given = (user.clone(), document, removal);
            let portion = self.engine.write(given, |tx, (user, document, removal)| {
                Box::pin(documents::remove_portion(tx, user, *document, *removal))
            });
            let Some(removed) = portion.await? else {
                return Ok(None);
            };
            chunks += removed.chunks;
            if removed.is_complete {
                return Ok(Some(chunks));
            }
        }
    }

    /// Returns the model of the stored vectors, if there are any.
    pub fn vector_maker(&self) -> Answer<'_, Option<EmbeddingMaker>> {
        self.engine.read((), |tx, ()| Box::pin(vectors::maker(tx)))
    }

    /// Lists chunks without a vector after a key, by key: key, heading and text.
    pub fn without_vectors(
        &self,
        after: i64,
        most: usize,
    ) -> Answer<'_, Vec<(i64, String, String)>> {
        let values = values![after, most];
        let chunk = |row: Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        self.engine.query(sql::MISSING_VECTORS, values, chunk)
    }

    /// Finds the chunks with the nearest vectors: their keys and cosines, the nearest first.
    pub fn search_vectors(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Answer<'_, VectorOutcome<Vec<(i64, f64)>>> {
        let query = NearestQuery {
            cache: Arc::clone(&self.bits),
            collections: collections.iter().map(|id| id.0).collect(),
            maker,
            vector,
            limit: most,
        };
        self.engine
            .snapshot(query, |tx, query| Box::pin(nearest::search(tx, query)))
    }

    /// Describes how [`search_vectors`](Self::search_vectors) works in this database.
    pub fn vector_search(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(_) => Box::pin(async { Ok(VectorSearch::Plain { why: None }) }),
            Engine::Postgres(postgres) => {
                let min_indexed = postgres.database.options.min_indexed_vectors;
                self.engine.snapshot(min_indexed, |tx, min_indexed| {
                    Box::pin(pgvector::describe(tx, *min_indexed))
                })
            }
        }
    }

    /// Creates the index of vectors if it is possible, useful and missing, however long that takes, without blocking others.
    pub fn index_vectors(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(_) => self.vector_search(),
            Engine::Postgres(postgres) => Box::pin(postgres.index_vectors()),
        }
    }

    /// Reads chunks in the order of these keys, without those that do not exist.
    pub async fn chunks(&self, ids: Vec<i64>) -> Result<Vec<SearchHit>, StoreError> {
        let hit = |row: Row<'_>| row.read::<SearchHit>().map(|hit| (hit.id, hit));
        let hits = self.engine.query(sql::CHUNKS, values![ids], hit).await?;
        Ok(in_order(&ids, hits).into_iter().flatten().collect())
    }
}

/// Puts rows into the order of keys.
pub(super) fn in_order<T: Clone>(
    keys: &[i64],
    rows: impl IntoIterator<Item = (i64, T)>,
) -> Vec<Option<T>> {
    let rows: HashMap<i64, T> = rows.into_iter().collect();
    keys.iter().map(|key| rows.get(key).cloned()).collect()
}
