//! Access to the rows of the library.
//!
//! A write changes a few hundred rows at most, because turns wait behind it; callers split larger ones. Reads are bounded by
//! what they look for, except that a scan for vectors reads one bit per number of all vectors in its collections.

use super::nearest::NearestQuery;
use super::statements as sql;
use super::{
    CollectionId, CollectionRow, DocumentFilter, DocumentPart, DocumentRow, KnowledgeRow,
    LearningRow, QueryWord, Ranking, Removal, SearchHit, VectorOutcome, VectorSearch, documents,
    entries, lexical, nearest, vectors,
};
use crate::Answer;
use crate::engine::{Engine, Row, values};
use crate::postgres::pgvector;
use crate::store::Store;
use lango_core::{EmbeddingMaker, SessionId, UserId};
use std::sync::Arc;

/// The rows of the library in a database.
pub trait LibraryRows: Send + Sync {
    /// Returns a user's collection of that name; creates it if there is none.
    fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Answer<'_, CollectionId>;

    /// Lists the collections that a user sees in a session, with the model of their vectors. Without a session, those that
    /// every session sees.
    fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)>;

    /// Lists all collections of a user, those of every session included, by name.
    fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>>;

    /// Lists documents of a user by name, those of all sessions included.
    fn documents(&self, user: &UserId, filter: DocumentFilter) -> Answer<'_, Vec<DocumentRow>>;

    /// Writes parts of documents in one transaction. The name of a first part must be free: see [`remove`](Self::remove).
    /// Chunks with vectors need the model.
    fn write(
        &self,
        parts: Vec<DocumentPart>,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, VectorOutcome<()>>;

    /// Removes a user's document with its words and vectors, in as many transactions as that takes. Returns the number of its
    /// chunks, or `None` if there is no such document.
    fn remove(&self, user: &UserId, document: i64, removal: Removal) -> Answer<'_, Option<u64>>;

    /// Returns the model of the stored vectors, if there are any.
    fn maker(&self) -> Answer<'_, Option<EmbeddingMaker>>;

    /// Makes this the model of all vectors, and deletes those of another.
    fn begin_vectors(&self, maker: EmbeddingMaker) -> Answer<'_, ()>;

    /// Lists chunks without a vector after a key, by key: key, heading and text.
    fn without_vectors(&self, after: i64, most: usize) -> Answer<'_, Vec<(i64, String, String)>>;

    /// Stores the vectors of chunks, except those that were removed meanwhile.
    fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Answer<'_, VectorOutcome<()>>;

    /// Counts the chunks of all users, and those that have each of the words; see [`lexical`](Self::lexical).
    fn frequencies(&self, words: Vec<String>) -> Answer<'_, (u64, Vec<u64>)>;

    /// Ranks the chunks that have any of the words by BM25.
    fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        most: usize,
    ) -> Answer<'_, Ranking>;

    /// Finds the chunks with the nearest vectors: their keys and cosines, the nearest first.
    fn nearest(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Answer<'_, VectorOutcome<Vec<(i64, f64)>>>;

    /// Describes how [`nearest`](Self::nearest) works in this database.
    fn vector_search(&self) -> Answer<'_, VectorSearch>;

    /// Creates the index of vectors if it is possible, useful and missing, however long that takes, without blocking others.
    fn index_vectors(&self) -> Answer<'_, VectorSearch>;

    /// Reads chunks in the order of these keys, without those that do not exist.
    fn chunks(&self, ids: Vec<i64>) -> Answer<'_, Vec<SearchHit>>;

    /// Saves a new version and the document that searches find it by, unless the newest version says the same. Returns the
    /// version, and whether it is new.
    fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        part: DocumentPart,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, VectorOutcome<(u64, bool)>>;

    /// Reads saved knowledge by its documents; `None` for other documents.
    fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<KnowledgeRow>>>;

    /// Lists the versions under a key, the newest first.
    fn versions(&self, user: &UserId, key: &str, most: usize) -> Answer<'_, Vec<KnowledgeRow>>;

    /// Saves a learning and the document that searches find it by, in place of one with the same trigger and fix. Returns
    /// whether it is new.
    fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        part: DocumentPart,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, VectorOutcome<bool>>;

    /// Reads learnings by their documents; `None` for other documents.
    fn learnings(&self, user: &UserId, documents: Vec<i64>)
    -> Answer<'_, Vec<Option<LearningRow>>>;
}

impl LibraryRows for Store {
    fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Answer<'_, CollectionId> {
        let given = (user.clone(), name.to_owned(), session.cloned());
        self.engine.write(given, |tx, (user, name, session)| {
            Box::pin(documents::ensure_collection(tx, user, name, session))
        })
    }

    fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)> {
        let session = session.map_or("", SessionId::as_str).to_owned();
        self.engine
            .snapshot((user.clone(), session), |tx, (user, session)| {
                Box::pin(async move {
                    let visible = documents::collections(tx, user, Some(session)).await?;
                    Ok((visible, vectors::maker(tx).await?))
                })
            })
    }

    fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>> {
        self.engine.read(user.clone(), |tx, user| {
            Box::pin(documents::collections(tx, user, None))
        })
    }

    fn documents(&self, user: &UserId, filter: DocumentFilter) -> Answer<'_, Vec<DocumentRow>> {
        self.engine
            .read((user.clone(), filter), |tx, (user, filter)| {
                Box::pin(documents::list(tx, user, filter))
            })
    }

    fn write(
        &self,
        parts: Vec<DocumentPart>,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, VectorOutcome<()>> {
        self.engine.write((parts, maker), |tx, (parts, maker)| {
            Box::pin(async move {
                if let Some(other) = documents::other_maker(tx, parts, maker.as_ref()).await? {
                    return Ok(VectorOutcome::OtherMaker(other));
                }
                let collections = parts.iter().map(|part| part.document.collection.0);
                documents::lock(tx, collections.collect()).await?;
                documents::write_locked(tx, parts).await?;
                Ok(VectorOutcome::Done(()))
            })
        })
    }

    fn remove(&self, user: &UserId, document: i64, removal: Removal) -> Answer<'_, Option<u64>> {
        let user = user.clone();
        Box::pin(async move {
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
        })
    }

    fn maker(&self) -> Answer<'_, Option<EmbeddingMaker>> {
        self.engine.read((), |tx, ()| Box::pin(vectors::maker(tx)))
    }

    fn begin_vectors(&self, maker: EmbeddingMaker) -> Answer<'_, ()> {
        self.engine
            .write(maker, |tx, maker| Box::pin(vectors::begin(tx, maker)))
    }

    fn without_vectors(&self, after: i64, most: usize) -> Answer<'_, Vec<(i64, String, String)>> {
        self.engine.read((after, most), |tx, (after, most)| {
            Box::pin(async move {
                let chunk = |row: Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                let values = values![after, most];
                tx.query(sql::MISSING_VECTORS, values, chunk).await
            })
        })
    }

    fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Answer<'_, VectorOutcome<()>> {
        self.engine.write((maker, made), |tx, (maker, made)| {
            Box::pin(vectors::set(tx, maker, made))
        })
    }

    fn frequencies(&self, words: Vec<String>) -> Answer<'_, (u64, Vec<u64>)> {
        self.engine
            .snapshot(words, |tx, words| Box::pin(lexical::frequencies(tx, words)))
    }

    fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        most: usize,
    ) -> Answer<'_, Ranking> {
        let collections: Vec<i64> = collections.iter().map(|id| id.0).collect();
        let given = (collections, words, most);
        self.engine
            .snapshot(given, |tx, (collections, words, most)| {
                Box::pin(lexical::search(tx, collections, words, *most))
            })
    }

    fn nearest(
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

    fn vector_search(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(_) => Box::pin(async { Ok(VectorSearch::Plain { why: None }) }),
            Engine::Postgres(postgres) => {
                let min_indexed = postgres.min_indexed_vectors();
                self.engine.snapshot(min_indexed, |tx, min_indexed| {
                    Box::pin(pgvector::describe(tx, *min_indexed))
                })
            }
        }
    }

    fn index_vectors(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(_) => self.vector_search(),
            Engine::Postgres(postgres) => Box::pin(postgres.index_vectors()),
        }
    }

    fn chunks(&self, ids: Vec<i64>) -> Answer<'_, Vec<SearchHit>> {
        self.engine
            .read(ids, |tx, ids| Box::pin(documents::chunks(tx, ids)))
    }

    fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        part: DocumentPart,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, VectorOutcome<(u64, bool)>> {
        let given = (user.clone(), row, part, maker);
        self.engine.write(given, |tx, (user, row, part, maker)| {
            Box::pin(entries::save_knowledge(tx, user, row, part, maker.as_ref()))
        })
    }

    fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<KnowledgeRow>>> {
        self.engine
            .read((user.clone(), documents), |tx, (user, documents)| {
                Box::pin(entries::knowledge(tx, user, documents))
            })
    }

    fn versions(&self, user: &UserId, key: &str, most: usize) -> Answer<'_, Vec<KnowledgeRow>> {
        let given = (user.clone(), key.to_owned(), most);
        self.engine.read(given, |tx, (user, key, most)| {
            Box::pin(async move {
                let values = values![user, key, most];
                tx.query(sql::KNOWLEDGE_VERSIONS, values, entries::knowledge_in)
                    .await
            })
        })
    }

    fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        part: DocumentPart,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, VectorOutcome<bool>> {
        let given = (user.clone(), row, part, maker);
        self.engine.write(given, |tx, (user, row, part, maker)| {
            Box::pin(entries::save_learning(tx, user, row, part, maker.as_ref()))
        })
    }

    fn learnings(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<LearningRow>>> {
        self.engine
            .read((user.clone(), documents), |tx, (user, documents)| {
                Box::pin(entries::learnings(tx, user, documents))
            })
    }
}
