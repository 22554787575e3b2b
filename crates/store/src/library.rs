//! The library: chunks of documents with their words and vectors, and the knowledge that agents saved. `lango-knowledge` decides
//! what to do with them.

mod bm25;
mod documents;
mod entries;
mod fold;
mod lexical;
pub(crate) mod nearest;
mod rows;
mod statements;
pub(crate) mod vectors;

pub(crate) use documents::{index_words, remove_document};
#[cfg(test)]
pub(crate) use {lexical::BY_WORDS, statements::ALL as STATEMENTS};

use crate::backend::records;
use lango_core::{EmbeddingModel, Provenance, SessionId, Text, Timestamp};
use std::sync::Arc;

records! {
    CollectionRow { id, name, session, chunks, words, vectors }
    DocumentRow { id, collection, session, source, title, hash, size, added, is_complete, chunks }
    SearchHit { id, document, collection, source, title, heading, text, ordinal, position }
    KnowledgeRow { key, version, category, content, tags, source, saved }
    LearningRow { trigger, fix, error_pattern, confidence, source, saved }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectionId(pub(crate) i64);

/// A collection. Its name is unique for its user and session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionRow {
    pub id: CollectionId,
    pub name: Text,
    /// The only session that can see the collection, or `None` if all sessions can.
    pub session: Option<SessionId>,
    pub chunks: u64,
    /// Number of words in all chunks.
    pub words: u64,
    /// Number of chunks that have a vector.
    pub vectors: u64,
}

/// A document to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDocument {
    pub collection: CollectionId,
    /// The name of the source is unique within the collection.
    pub source: Provenance,
    pub title: Text,
    /// The SHA-256 of the original bytes.
    pub hash: [u8; 32],
    /// Number of original bytes.
    pub size: u64,
    pub added: Timestamp,
}

/// A part of a document, the unit that searches return.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChunk {
    /// The headings above the chunk.
    pub heading: String,
    pub text: String,
    /// The line or page where the chunk starts.
    pub position: u64,
    /// The chunk's length for BM25.
    pub words: u64,
    /// The embedding, or `None` if the chunk is not embedded yet.
    pub vector: Option<Vec<f32>>,
}

/// The part of a document that one transaction writes.
#[derive(Debug, Clone)]
pub struct DocumentPart {
    pub document: Arc<NewDocument>,
    /// Number of chunks in earlier parts. 0 creates the document.
    pub before: u64,
    /// Whether this part completes the document.
    pub is_last: bool,
    pub chunks: Vec<NewChunk>,
}

/// The result of an operation on vectors, which must all be from one embedding model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorOutcome<T> {
    Done(T),
    /// Nothing was done, because the stored vectors are from this other model.
    OtherModel(EmbeddingModel),
}

/// How the nearest vectors are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorSearch {
    /// With a scan of all vectors.
    Scan {
        /// The reason why there is no index, if the database could have one.
        reason: Option<String>,
    },
    /// With an index of the database, for large collections.
    Indexed {
        /// The name of the index, such as `pgvector 0.8.5`.
        by: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    pub id: i64,
    pub collection: Text,
    /// The only session that can see the document, or `None` if all sessions can.
    pub session: Option<SessionId>,
    pub source: Provenance,
    pub title: Text,
    pub hash: Vec<u8>,
    pub size: u64,
    pub added: Timestamp,
    /// Whether all parts of the document were written.
    pub is_complete: bool,
    pub chunks: u64,
}

/// A chunk that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub id: i64,
    pub document: i64,
    pub collection: Text,
    pub source: Provenance,
    pub title: Text,
    /// The headings above the chunk.
    pub heading: Text,
    pub text: Text,
    /// The number of the chunk within the document.
    pub ordinal: u64,
    /// The line or page where the chunk starts.
    pub position: u64,
}

/// A version of the knowledge saved under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeRow {
    pub key: Text,
    /// Counts from 1. The store assigns it.
    pub version: u64,
    pub category: Text,
    pub content: Text,
    pub tags: Vec<Text>,
    pub source: Provenance,
    pub saved: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LearningRow {
    /// The situation in which the learning applies.
    pub trigger: Text,
    pub fix: Text,
    pub error_pattern: Text,
    /// From 0 to 1.
    pub confidence: f64,
    pub source: Provenance,
    pub saved: Timestamp,
}

/// A word of a query, in any form that a search can map to a term of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWord {
    pub text: String,
    /// How often the query contains the word, which is also its weight.
    pub times: u32,
}

impl QueryWord {
    pub fn new(text: impl Into<String>, times: u32) -> Self {
        let text = text.into();
        Self { text, times }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranking {
    /// Chunks and their scores, best first.
    pub hits: Vec<(i64, f64)>,
    /// Number of query words that no chunk of the searched collections contains.
    pub unknown: usize,
    /// Number of query words that were ignored because too many chunks contain them.
    pub left_out: usize,
}

/// How thoroughly a document is removed. In both cases, searches no longer find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteMode {
    /// The bytes stay in the file until other data overwrites them.
    Normal,
    /// SQLite overwrites the bytes. PostgreSQL treats this as [`Self::Normal`].
    Overwrite,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentFilter {
    /// Documents of a collection whose names are in a range, ordered by name.
    Range {
        collection: CollectionId,
        from: String,
        /// The exclusive end of the range, or `None` for no end.
        before: Option<String>,
        limit: usize,
    },
    /// All documents with this name.
    Named(String),
    Id(i64),
}
