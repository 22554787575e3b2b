//! Public methods that read and write the library.
//!
//! A write changes at most a few hundred rows, because turns wait behind it; callers split larger writes. Reads are
//! bounded by their limits, except that a scan for vectors reads one bit for each number of every vector in the
//! searched collections.

use super::nearest::NearestQuery;
use super::statements as sql;
use super::{
    CollectionId, CollectionRow, DeleteMode, DocumentFilter, DocumentPart, DocumentRow, SearchHit,
    VectorOutcome, VectorSearch, documents, nearest, vectors,
};
use crate::StoreFuture;
use crate::backend::{Backend, Row, bulk_row, values, work};
use crate::postgres::pgvector;
use crate::store::Store;
use lango_core::{EmbeddingModel, SessionId, StoreError, UserId};
use std::collections::HashMap;
use std::sync::Arc;

/// Access to the library.
impl Store {
    /// Lists the collections that a user can see in a session, and the model of the stored vectors. Without a session, lists the
    /// collections that every session can see.
    pub fn visible_collections(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> StoreFuture<'_, (Vec<CollectionRow>, Option<EmbeddingModel>)> {
        let session = session.map_or("", SessionId::as_str).to_owned();
        let args = (user.clone(), session);
        work!(self.backend.snapshot(args), |tx, user, session| {
            let values = values![user, session];
            let visible = tx.query(sql::COLLECTIONS, values, |row| row.read());
            let visible = visible.await?;
            Ok((visible, vectors::model(tx).await?))
        })
    }

    /// Lists all collections of a user by name, including those of single sessions.
    pub fn all_collections(&self, user: &UserId) -> StoreFuture<'_, Vec<CollectionRow>> {
        let values = values![user, None::<&str>];
        self.backend
            .query(sql::COLLECTIONS, values, |row| row.read())
    }

    /// Lists documents of a user by name, including those of single sessions.
    pub fn documents(
        &self,
        user: &UserId,
        filter: DocumentFilter,
    ) -> StoreFuture<'_, Vec<DocumentRow>> {
        let (statement, values) = match &filter {
            DocumentFilter::Range {
                collection,
                from,
                before,
                limit,
            } => {
                let values = bulk_row![user, collection.0, from, before, limit];
                (sql::DOCUMENTS_IN_RANGE, values)
            }
            DocumentFilter::Named(name) => (sql::DOCUMENTS_NAMED, bulk_row![user, name]),
            DocumentFilter::Id(id) => (sql::DOCUMENT_BY_ID, bulk_row![user, id]),
        };
        self.backend.query(statement, &values, |row| row.read())
    }

    /// Writes parts of documents in one transaction. Fails if the name of a first part is taken; see
    /// [`remove_document`](Self::remove_document). The model is required for chunks with vectors.
    pub fn write_documents(
        &self,
        parts: Vec<DocumentPart>,
        model: Option<EmbeddingModel>,
    ) -> StoreFuture<'_, VectorOutcome<()>> {
        let args = (parts, model);
        work!(self.backend.write(args), |tx, parts, model| {
            if let Some(other) = documents::other_model(tx, parts, model.as_ref()).await? {
                return Ok(VectorOutcome::OtherModel(other));
            }
            let collections = parts.iter().map(|part| part.document.collection.0);
            documents::lock(tx, collections.collect()).await?;
            documents::write_locked(tx, parts).await?;
            Ok(VectorOutcome::Done(()))
        })
    }

    /// Removes a user's document with its words and vectors, in as many transactions as necessary. Returns the number of chunks, or
    /// `None` if the document does not exist.
    pub async fn remove_document(
        &self,
        user: &UserId,
        document: i64,
        removal: DeleteMode,
    ) -> Result<Option<u64>, StoreError> {
        let mut chunks = 0;
        loop {
            let args = (user.clone(), document, removal);
            let portion = self.backend.write(args, |tx, (user, document, removal)| {
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

    /// Returns the embedding model of the stored vectors, if one is set.
    pub fn vector_model(&self) -> StoreFuture<'_, Option<EmbeddingModel>> {
        self.backend.read((), |tx, ()| Box::pin(vectors::model(tx)))
    }

    /// Lists chunks without a vector, ordered by key, starting after a key. Returns key, heading and text of each.
    pub fn chunks_without_vectors(
        &self,
        after: i64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(i64, String, String)>> {
        let values = values![after, limit];
        let chunk = |row: Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        self.backend.query(sql::MISSING_VECTORS, values, chunk)
    }

    /// Finds the chunks with the nearest vectors. Returns their keys and cosines, nearest first.
    pub fn search_vectors(
        &self,
        collections: Vec<CollectionId>,
        model: EmbeddingModel,
        vector: Vec<f32>,
        limit: usize,
    ) -> StoreFuture<'_, VectorOutcome<Vec<(i64, f64)>>> {
        let query = NearestQuery {
            cache: Arc::clone(&self.bits),
            collections: collections.iter().map(|id| id.0).collect(),
            model,
            vector,
            limit,
        };
        self.backend
            .snapshot(query, |tx, query| Box::pin(nearest::search(tx, query)))
    }

    /// Describes how [`search_vectors`](Self::search_vectors) finds vectors in this database.
    pub fn vector_search(&self) -> StoreFuture<'_, VectorSearch> {
        match &self.backend {
            Backend::Sqlite(_) => Box::pin(async { Ok(VectorSearch::Scan { reason: None }) }),
            Backend::Postgres(postgres) => {
                let min_indexed = postgres.database.options.min_indexed_vectors;
                self.backend.snapshot(min_indexed, |tx, min_indexed| {
                    Box::pin(pgvector::describe(tx, *min_indexed))
                })
            }
        }
    }

    /// Creates the vector index if it is missing, possible and useful. This may take long, but does not block other work.
    pub fn index_vectors(&self) -> StoreFuture<'_, VectorSearch> {
        match &self.backend {
            Backend::Sqlite(_) => self.vector_search(),
            Backend::Postgres(postgres) => Box::pin(postgres.index_vectors()),
        }
    }

    /// Reads chunks in the order of these keys. Skips those that do not exist.
    pub async fn chunks(&self, ids: Vec<i64>) -> Result<Vec<SearchHit>, StoreError> {
        let hit = |row: Row<'_>| row.read::<SearchHit>().map(|hit| (hit.id, hit));
        let hits = self.backend.query(sql::CHUNKS, values![ids], hit).await?;
        Ok(in_order(&ids, hits).into_iter().flatten().collect())
    }
}

/// Returns rows in the order of keys, with `None` for missing rows.
pub(super) fn in_order<T: Clone>(
    keys: &[i64],
    rows: impl IntoIterator<Item = (i64, T)>,
) -> Vec<Option<T>> {
    let rows: HashMap<i64, T> = rows.into_iter().collect();
    keys.iter().map(|key| rows.get(key).cloned()).collect()
}
