//! The library: documents in chunks, their words and vectors, and what agents saved. `lango-knowledge` decides what to do
//! with them.

#![allow(
    missing_docs,
    reason = "most fields say what they are; the others have a comment"
)]

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

use crate::engine::records;
use lango_core::{EmbeddingMaker, SessionId, Source, Text, Timestamp};
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
    /// The only session that sees it; `None` if all do.
    pub session: Option<SessionId>,
    /// The number of its chunks, of their words, and of the chunks that have a vector.
    pub chunks: u64,
    pub words: u64,
    pub vectors: u64,
}

/// A document to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDocument {
    pub collection: CollectionId,
    /// Its name is unique within the collection.
    pub source: Source,
    pub title: Text,
    /// The SHA-256 of the original bytes.
    pub hash: [u8; 32],
    /// The number of the original bytes.
    pub size: u64,
    pub added: Timestamp,
}

/// A part of a document that searches find by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChunk {
    /// The headings above it.
    pub heading: String,
    pub text: String,
    /// The line or page where it starts.
    pub position: u64,
    /// Its length for BM25.
    pub words: u64,
    /// Of any length; `None` if it is not embedded yet.
    pub vector: Option<Vec<f32>>,
}

/// As much of a document as one transaction writes.
#[derive(Debug, Clone)]
pub struct DocumentPart {
    pub document: Arc<NewDocument>,
    /// The number of chunks in earlier parts; 0 creates the document.
    pub before: u64,
    /// Whether the document is complete with this part.
    pub is_last: bool,
    pub chunks: Vec<NewChunk>,
}

/// The result of an operation on vectors, which must all be from one embedding model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorOutcome<T> {
    Done(T),
    /// Nothing was done: the stored vectors are from this other model.
    OtherMaker(EmbeddingMaker),
}

/// How the nearest vectors are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorSearch {
    /// By a scan of all of them.
    Plain {
        /// Why, where the database could have an index.
        why: Option<String>,
    },
    /// By an index of the database in large collections.
    Indexed {
        /// Such as `pgvector 0.8.5`.
        by: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    pub id: i64,
    pub collection: Text,
    /// The only session that sees it; `None` if all do.
    pub session: Option<SessionId>,
    pub source: Source,
    pub title: Text,
    pub hash: Vec<u8>,
    pub size: u64,
    pub added: Timestamp,
    /// Whether all parts of it were written.
    pub is_complete: bool,
    pub chunks: u64,
}

/// A chunk that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub id: i64,
    pub document: i64,
    pub collection: Text,
    pub source: Source,
    pub title: Text,
    /// The headings above it.
    pub heading: Text,
    pub text: Text,
    /// Its number within the document.
    pub ordinal: u64,
    /// The line or page where it starts.
    pub position: u64,
}

/// A version of what is saved under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeRow {
    pub key: Text,
    /// Counts from 1; assigned by the store.
    pub version: u64,
    pub category: Text,
    pub content: Text,
    pub tags: Vec<Text>,
    pub source: Source,
    pub saved: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LearningRow {
    /// The situation in which it applies.
    pub trigger: Text,
    pub fix: Text,
    pub error_pattern: Text,
    /// From 0 to 1.
    pub confidence: f64,
    pub source: Source,
    pub saved: Timestamp,
}

/// A word of a query, in any form that the index has terms for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWord {
    pub text: String,
    /// How often the query has it; it counts that many times.
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
    /// Chunks and their scores, the best first.
    pub hits: Vec<(i64, f64)>,
    /// The number of words that no chunk of the searched collections has.
    pub unknown: usize,
    /// The number of words that were ignored because they are in too many chunks.
    pub left_out: usize,
}

/// How thoroughly a document is removed. No search finds it in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Its bytes stay in the file until others overwrite them.
    Plain,
    /// SQLite overwrites its bytes. PostgreSQL treats this as [`Self::Plain`].
    Wiped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentFilter {
    /// Those of a collection whose names are in a range, by name.
    Range {
        collection: CollectionId,
        from: String,
        /// Exclusive; `None` for no end.
        before: Option<String>,
        most: usize,
    },
    /// All with this name.
    Named(String),
    Id(i64),
}
