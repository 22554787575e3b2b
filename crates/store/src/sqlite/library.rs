//! The library's rows: documents in chunks, their words, their vectors, and what agents saved.
//!
//! All writing is in changes of a few hundred rows, because turns wait behind them; what is larger is for the caller to
//! cut. Reading is bounded by what is looked for, not by what is there, with one exception: the coarse look at vectors
//! passes over all bits of the collections it searches.

mod collections;
mod documents;
mod knowledge;
mod learnings;
mod lexical;
mod nearest;
mod statements;
mod vectors;

use super::SqliteStore;
use super::failure::Failure;
use crate::library::{
    CollectionId, CollectionRow, DocumentRow, Found, KnowledgeRow, LearningRow, Piece, Stored,
};
use lango_core::{EmbeddingMaker, SessionId, StoreError, UserId};
pub use lexical::Ranked;
pub(super) use nearest::BitsInMemory;
use rusqlite::Connection;
use std::sync::Arc;

/// How many chunks one change deletes, and how many it wipes, which takes about 10 ms each among 100,000.
const DELETED_AT_ONCE: usize = 200;
const WIPED_AT_ONCE: usize = 4;

/// Wipes some of a user's document, of whatever session; nothing if it is not the user's.
pub(super) fn wipe_document(
    connection: &Connection,
    user: &UserId,
    document: i64,
) -> Result<(), Failure> {
    documents::wipe_some(connection, user, document, WIPED_AT_ONCE).map(drop)
}

impl SqliteStore {
    /// The rows of the library.
    pub fn library(&self) -> LibraryRows<'_> {
        LibraryRows { store: self }
    }
}

/// The rows of the library in a store.
#[derive(Clone, Copy)]
pub struct LibraryRows<'a> {
    store: &'a SqliteStore,
}

impl LibraryRows<'_> {
    /// A user's collection of that name, made if it is not there.
    pub async fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Result<CollectionId, StoreError> {
        let (user, name, session) = (user.clone(), name.to_owned(), session.cloned());
        let writer = &self.store.writer;
        writer
            .change(move |connection| {
                collections::ensure(connection, &user, &name, session.as_ref())
            })
            .await
    }

    /// The collections that a user sees in a session, and who made their vectors. Without a session, those that are seen
    /// everywhere.
    pub async fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Result<(Vec<CollectionRow>, Option<EmbeddingMaker>), StoreError> {
        let (user, session) = (user.clone(), session.cloned());
        let readers = &self.store.readers;
        readers
            .read(move |reader| {
                let seen = collections::visible(reader.connection, &user, session.as_ref())?;
                Ok((seen, vectors::maker(reader.connection)?))
            })
            .await
    }

    /// All collections of a user, those of every session included, by name.
    pub async fn all_collections(&self, user: &UserId) -> Result<Vec<CollectionRow>, StoreError> {
        let user = user.clone();
        let readers = &self.store.readers;
        readers
            .read(move |reader| collections::all(reader.connection, &user))
            .await
    }

    /// A user's documents in the order of their names, those of all sessions included.
    pub async fn documents(
        &self,
        user: &UserId,
        wanted: Wanted,
    ) -> Result<Vec<DocumentRow>, StoreError> {
        let user = user.clone();
        let readers = &self.store.readers;
        readers
            .read(move |reader| documents::list(reader.connection, &user, &wanted))
            .await
    }

    /// Writes pieces of documents, in one change. A first piece needs its name to be free: see
    /// [`remove`](Self::remove). Chunks with vectors need the maker.
    pub async fn write(
        &self,
        pieces: Vec<Piece>,
        maker: Option<EmbeddingMaker>,
    ) -> Result<Stored<()>, StoreError> {
        let pieces = Arc::new(pieces);
        let writer = &self.store.writer;
        writer
            .change(move |connection| documents::write(connection, &pieces, maker.as_ref()))
            .await
    }

    /// Removes a user's document with its words and vectors, in as many changes as that takes. Gives the number of its
    /// chunks, or nothing if there is no such document.
    pub async fn remove(
        &self,
        user: &UserId,
        document: i64,
        removal: Removal,
    ) -> Result<Option<u64>, StoreError> {
        let mut removed = 0;
        loop {
            let user = user.clone();
            let writer = &self.store.writer;
            let remove = move |connection: &Connection| match removal {
                Removal::Plain => {
                    documents::remove_some(connection, &user, document, DELETED_AT_ONCE)
                }
                Removal::Wiped => documents::wipe_some(connection, &user, document, WIPED_AT_ONCE),
            };
            let some = writer.change(remove).await?;
            let Some(some) = some else {
                return Ok(None);
            };
            removed += some.chunks;
            if some.is_gone {
                return Ok(Some(removed));
            }
        }
    }

    /// Who made the vectors, if there are any.
    pub async fn maker(&self) -> Result<Option<EmbeddingMaker>, StoreError> {
        let readers = &self.store.readers;
        readers
            .read(|reader| vectors::maker(reader.connection))
            .await
    }

    /// Makes room for the vectors of this maker: those of another are dropped.
    pub async fn begin_vectors(&self, maker: EmbeddingMaker) -> Result<(), StoreError> {
        let writer = &self.store.writer;
        writer
            .change(move |connection| vectors::begin(connection, &maker))
            .await
    }

    /// Chunks without a vector, in the order of their keys, after a key: key, heading and text.
    pub async fn without_vectors(
        &self,
        after: i64,
        most: usize,
    ) -> Result<Vec<(i64, String, String)>, StoreError> {
        let readers = &self.store.readers;
        readers
            .read(move |reader| vectors::missing(reader.connection, after, most))
            .await
    }

    /// Gives chunks their vectors. One that is gone meanwhile is passed over.
    pub async fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Result<Stored<()>, StoreError> {
        let writer = &self.store.writer;
        writer
            .change(move |connection| vectors::set(connection, &maker, &made))
            .await
    }

    /// How many chunks of all users there are, and how many of them hold each of the words; see
    /// [`lexical`](Self::lexical) for what a word is.
    pub async fn frequencies(&self, words: Vec<String>) -> Result<(u64, Vec<u64>), StoreError> {
        let readers = &self.store.readers;
        readers
            .read(move |reader| lexical::frequencies(reader.connection, &words))
            .await
    }

    /// The chunks that hold any of the words, the best first.
    pub async fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<String>,
        most: usize,
    ) -> Result<Ranked, StoreError> {
        let readers = &self.store.readers;
        readers
            .read(move |reader| lexical::search(reader.connection, &collections, &words, most))
            .await
    }

    /// The chunks whose vectors are nearest, with the cosine of the angle, the nearest first.
    pub async fn nearest(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Result<Stored<Vec<(i64, f64)>>, StoreError> {
        let (readers, memory) = (&self.store.readers, Arc::clone(&self.store.bits));
        readers
            .read(move |reader| {
                let asked = nearest::Asked {
                    collections: &collections,
                    maker: &maker,
                    vector: &vector,
                    most,
                };
                nearest::search(reader.connection, &memory, asked)
            })
            .await
    }

    /// Chunks by their keys, in that order, without those that are gone.
    pub async fn chunks(&self, ids: Vec<i64>) -> Result<Vec<Found>, StoreError> {
        let readers = &self.store.readers;
        readers
            .read(move |reader| documents::chunks(reader.connection, &ids))
            .await
    }

    /// Saves a new version, with the document by which it is found, unless it says what the newest says already. Gives
    /// the version, and whether it is new.
    pub async fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Result<Stored<(u64, bool)>, StoreError> {
        let user = user.clone();
        let writer = &self.store.writer;
        writer
            .change(move |connection| {
                knowledge::save(connection, &user, &row, &piece, maker.as_ref())
            })
            .await
    }

    /// What was saved, by the documents that a search gave; nothing for those that are something else.
    pub async fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Result<Vec<Option<KnowledgeRow>>, StoreError> {
        let user = user.clone();
        let readers = &self.store.readers;
        readers
            .read(move |reader| knowledge::of_documents(reader.connection, &user, &documents))
            .await
    }

    /// All versions under a key, the newest first.
    pub async fn versions(
        &self,
        user: &UserId,
        key: &str,
        most: usize,
    ) -> Result<Vec<KnowledgeRow>, StoreError> {
        let (user, key) = (user.clone(), key.to_owned());
        let readers = &self.store.readers;
        readers
            .read(move |reader| knowledge::versions(reader.connection, &user, &key, most))
            .await
    }

    /// Saves a learning, with the document by which it is found. One with the same trigger and fix is brought up to
    /// date. Gives whether it is new.
    pub async fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Result<Stored<bool>, StoreError> {
        let user = user.clone();
        let writer = &self.store.writer;
        writer
            .change(move |connection| {
                learnings::save(connection, &user, &row, &piece, maker.as_ref())
            })
            .await
    }

    /// Learnings by the documents that a search gave; nothing for those that are something else.
    pub async fn learnings(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Result<Vec<Option<LearningRow>>, StoreError> {
        let user = user.clone();
        let readers = &self.store.readers;
        readers
            .read(move |reader| learnings::of_documents(reader.connection, &user, &documents))
            .await
    }
}

/// How thoroughly something is removed. Either way nothing finds it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Its bytes stay in the file until something else takes their place.
    Plain,
    /// Its bytes are wiped from the file.
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
