//! The library's rows in SQLite. What is written goes through the one writer, in changes of a few hundred rows.

mod collections;
mod documents;
mod knowledge;
mod learnings;
mod lexical;
mod nearest;
mod statements;
mod vectors;

use super::SqliteEngine;
use super::failure::Failure;
use crate::database::Answer;
use crate::library::{
    CollectionId, CollectionRow, DocumentRow, Found, KnowledgeRow, LearningRow, LibraryRows, Piece,
    QueryWord, Ranked, Removal, Stored, VectorSearch, Wanted,
};
use lango_core::{EmbeddingMaker, SessionId, UserId};
use rusqlite::Connection;
use std::sync::Arc;

/// How many chunks one change deletes, and how many it wipes, which takes about 10 ms each among 100,000.
const DELETED_AT_ONCE: usize = 200;
const WIPED_AT_ONCE: usize = 4;

/// Wipes some of a user's document, of whatever session; nothing if it is not the user's.
pub(crate) fn wipe_document(
    connection: &Connection,
    user: &UserId,
    document: i64,
) -> Result<(), Failure> {
    documents::wipe_some(connection, user, document, WIPED_AT_ONCE).map(drop)
}

impl LibraryRows for SqliteEngine {
    fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Answer<'_, CollectionId> {
        let (user, name, session) = (user.clone(), name.to_owned(), session.cloned());
        Box::pin(self.writer.change(move |connection| {
            collections::ensure(connection, &user, &name, session.as_ref())
        }))
    }

    fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)> {
        let (user, session) = (user.clone(), session.cloned());
        Box::pin(self.readers.read(move |reader| {
            let seen = collections::visible(reader.connection, &user, session.as_ref())?;
            Ok((seen, vectors::maker(reader.connection)?))
        }))
    }

    fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| collections::all(reader.connection, &user)),
        )
    }

    fn documents(&self, user: &UserId, wanted: Wanted) -> Answer<'_, Vec<DocumentRow>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| documents::list(reader.connection, &user, &wanted)),
        )
    }

    fn write(&self, pieces: Vec<Piece>, maker: Option<EmbeddingMaker>) -> Answer<'_, Stored<()>> {
        let pieces = Arc::new(pieces);
        Box::pin(
            self.writer
                .change(move |connection| documents::write(connection, &pieces, maker.as_ref())),
        )
    }

    fn remove(&self, user: &UserId, document: i64, removal: Removal) -> Answer<'_, Option<u64>> {
        let user = user.clone();
        Box::pin(async move {
            let mut removed = 0;
            loop {
                let user = user.clone();
                let remove = move |connection: &Connection| match removal {
                    Removal::Plain => {
                        documents::remove_some(connection, &user, document, DELETED_AT_ONCE)
                    }
                    Removal::Wiped => {
                        documents::wipe_some(connection, &user, document, WIPED_AT_ONCE)
                    }
                };
                let Some(some) = self.writer.change(remove).await? else {
                    return Ok(None);
                };
                removed += some.chunks;
                if some.is_gone {
                    return Ok(Some(removed));
                }
            }
        })
    }

    fn maker(&self) -> Answer<'_, Option<EmbeddingMaker>> {
        Box::pin(
            self.readers
                .read(|reader| vectors::maker(reader.connection)),
        )
    }

    fn begin_vectors(&self, maker: EmbeddingMaker) -> Answer<'_, ()> {
        Box::pin(
            self.writer
                .change(move |connection| vectors::begin(connection, &maker)),
        )
    }

    fn without_vectors(&self, after: i64, most: usize) -> Answer<'_, Vec<(i64, String, String)>> {
        Box::pin(
            self.readers
                .read(move |reader| vectors::missing(reader.connection, after, most)),
        )
    }

    fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Answer<'_, Stored<()>> {
        Box::pin(
            self.writer
                .change(move |connection| vectors::set(connection, &maker, &made)),
        )
    }

    fn frequencies(&self, words: Vec<String>) -> Answer<'_, (u64, Vec<u64>)> {
        Box::pin(
            self.readers
                .read(move |reader| lexical::frequencies(reader.connection, &words)),
        )
    }

    fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        most: usize,
    ) -> Answer<'_, Ranked> {
        Box::pin(
            self.readers
                .read(move |reader| lexical::search(reader.connection, &collections, &words, most)),
        )
    }

    fn nearest(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Answer<'_, Stored<Vec<(i64, f64)>>> {
        let memory = Arc::clone(&self.bits);
        Box::pin(self.readers.read(move |reader| {
            let asked = nearest::Asked {
                collections: &collections,
                maker: &maker,
                vector: &vector,
                most,
            };
            nearest::search(reader.connection, &memory, asked)
        }))
    }

    fn vector_search(&self) -> Answer<'_, VectorSearch> {
        Box::pin(async { Ok(VectorSearch::Plain { why: None }) })
    }

    fn index_vectors(&self) -> Answer<'_, VectorSearch> {
        self.vector_search()
    }

    fn chunks(&self, ids: Vec<i64>) -> Answer<'_, Vec<Found>> {
        Box::pin(
            self.readers
                .read(move |reader| documents::chunks(reader.connection, &ids)),
        )
    }

    fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<(u64, bool)>> {
        let user = user.clone();
        Box::pin(self.writer.change(move |connection| {
            knowledge::save(connection, &user, &row, &piece, maker.as_ref())
        }))
    }

    fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<KnowledgeRow>>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| knowledge::of_documents(reader.connection, &user, &documents)),
        )
    }

    fn versions(&self, user: &UserId, key: &str, most: usize) -> Answer<'_, Vec<KnowledgeRow>> {
        let (user, key) = (user.clone(), key.to_owned());
        Box::pin(
            self.readers
                .read(move |reader| knowledge::versions(reader.connection, &user, &key, most)),
        )
    }

    fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<bool>> {
        let user = user.clone();
        Box::pin(self.writer.change(move |connection| {
            learnings::save(connection, &user, &row, &piece, maker.as_ref())
        }))
    }

    fn learnings(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<LearningRow>>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| learnings::of_documents(reader.connection, &user, &documents)),
        )
    }
}
