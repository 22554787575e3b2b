//! What the library's rows hold, as values, and the seam to them. What is done with them is in `lango-knowledge`.

pub(crate) mod bm25;
pub(crate) mod nearest;
mod rows;
pub(crate) mod vectors;

pub use rows::LibraryRows;

use lango_core::{EmbeddingMaker, SessionId, Source, Text, Timestamp};
use std::sync::Arc;

/// A collection's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectionId(pub(crate) i64);

/// A collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionRow {
    /// Its key.
    pub id: CollectionId,
    /// Its name, unique for its user and session.
    pub name: Text,
    /// The session that alone sees it, if it is not seen by all.
    pub session: Option<SessionId>,
    /// How many chunks it holds.
    pub chunks: u64,
    /// How many words those have.
    pub words: u64,
    /// How many of them have a vector.
    pub vectors: u64,
}

/// A document to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDocument {
    /// Where.
    pub collection: CollectionId,
    /// Where it came from; its name is unique within the collection.
    pub source: Source,
    /// What it is called.
    pub title: Text,
    /// The hash of the bytes it was read from.
    pub hash: [u8; 32],
    /// How many those are.
    pub size: u64,
    /// When.
    pub added: Timestamp,
}

/// A part of a document that can be found by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChunk {
    /// The headings above it.
    pub heading: String,
    /// Its text.
    pub text: String,
    /// The line or page where it begins.
    pub position: u64,
    /// How many words it counts for.
    pub words: u64,
    /// Its vector, of unit length or not; nothing if there is none yet.
    pub vector: Option<Vec<f32>>,
}

/// As much of a document as is written at once.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The document.
    pub document: Arc<NewDocument>,
    /// Which part of it.
    pub part: Part,
    /// Its chunks.
    pub chunks: Vec<NewChunk>,
}

/// Which part of a document a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// How many chunks came before; with none, the document is made.
    pub before: u64,
    /// Whether the document is complete with it.
    pub is_last: bool,
}

/// Whether vectors could be stored or compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored<T> {
    /// Yes, with what came of it.
    Done(T),
    /// No, nothing was done: the vectors that are there were made by another.
    OtherMaker(EmbeddingMaker),
}

/// How the nearest vectors are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorSearch {
    /// By comparing all of them.
    Plain {
        /// Why, where the database could have an index.
        why: Option<String>,
    },
    /// Through an index of the database's, where comparing all would take longer.
    Indexed {
        /// What has it, such as `pgvector 0.8.5`.
        by: String,
    },
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// Its key.
    pub id: i64,
    /// The name of its collection.
    pub collection: Text,
    /// The session that alone sees it, if it is not seen by all.
    pub session: Option<SessionId>,
    /// Where it came from.
    pub source: Source,
    /// What it is called.
    pub title: Text,
    /// The hash of the bytes it was read from.
    pub hash: Vec<u8>,
    /// How many those are.
    pub size: u64,
    /// When it was added.
    pub added: Timestamp,
    /// Whether all of it was written.
    pub is_complete: bool,
    /// How many chunks it has.
    pub chunks: u64,
}

/// A chunk as a search gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its key.
    pub id: i64,
    /// Its document's key.
    pub document: i64,
    /// The name of its collection.
    pub collection: Text,
    /// Where it came from.
    pub source: Source,
    /// What its document is called.
    pub title: Text,
    /// The headings above it.
    pub heading: Text,
    /// Its text.
    pub text: Text,
    /// Its number within the document.
    pub ordinal: u64,
    /// The line or page where it begins.
    pub position: u64,
}

/// What is saved under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeRow {
    /// The key.
    pub key: Text,
    /// Counts from 1; given by the store.
    pub version: u64,
    /// What kind of thing it is.
    pub category: Text,
    /// The thing.
    pub content: Text,
    /// Words to find it by.
    pub tags: Vec<Text>,
    /// Who says so.
    pub source: Source,
    /// When.
    pub saved: Timestamp,
}

/// What went wrong once, and what helped.
#[derive(Debug, Clone, PartialEq)]
pub struct LearningRow {
    /// When to think of it.
    pub trigger: Text,
    /// What helps.
    pub fix: Text,
    /// What the error looks like.
    pub error_pattern: Text,
    /// From 0 to 1.
    pub confidence: f64,
    /// Who says so.
    pub source: Source,
    /// When it was saved last.
    pub saved: Timestamp,
}

/// A word of a question, in any form that the index has terms for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWord {
    /// The word.
    pub text: String,
    /// How often the question has it; it counts that many times.
    pub times: u32,
}

impl QueryWord {
    /// A word that a question has so often.
    pub fn new(text: impl Into<String>, times: u32) -> Self {
        Self {
            text: text.into(),
            times,
        }
    }
}

/// What a search by words gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranked {
    /// Chunks and their scores, the best first.
    pub hits: Vec<(i64, f64)>,
    /// How many of the words are in no chunk of any collection that was searched.
    pub unknown: usize,
    /// How many words were left out because they are in too many chunks.
    pub left_out: usize,
}

/// How thoroughly something is removed. Either way nothing finds it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Its bytes stay in the file until something else takes their place.
    Plain,
    /// Its bytes are wiped from the file. A server reuses them in its own time, as with [`Self::Plain`].
    Wiped,
}

/// Which documents of a user are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Those of a collection, by name, with a name from `from` on and, if given, before `before`.
    Range {
        /// The collection.
        collection: CollectionId,
        /// The first name.
        from: String,
        /// The name they come before; without one, all that follow.
        before: Option<String>,
        /// How many.
        most: usize,
    },
    /// Any with this name.
    Named(String),
    /// The one with this key.
    Id(i64),
}
