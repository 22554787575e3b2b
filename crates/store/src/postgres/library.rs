//! The library's rows in PostgreSQL.
//!
//! Whoever writes chunks, words or vectors first agrees on the maker of the vectors, then holds the rows of the collections
//! until the end: in this order, so that no two wait for each other. Readers never wait.

mod collections;
mod documents;
mod entries;
mod fold;
mod lexical;
mod nearest;
mod statements;
mod vectors;
mod writing;

use super::PostgresEngine;
use super::failure::Failure;
use super::pgvector;
use crate::database::Answer;
use crate::library::{
    CollectionId, CollectionRow, DocumentRow, Found, KnowledgeRow, LearningRow, LibraryRows, Piece,
    QueryWord, Ranked, Removal, Stored, VectorSearch, Wanted,
};
use deadpool_postgres::Transaction;
use lango_core::{EmbeddingMaker, SessionId, UserId};
#[cfg(test)]
pub(super) use statements::{BY_WORDS, EVERYDAY};

/// How many chunks one change deletes.
const DELETED_AT_ONCE: usize = 500;

/// Removes some of a user's document, of whatever session; nothing if it is not the user's.
pub(crate) async fn remove_document(
    transaction: &Transaction<'_>,
    user: &UserId,
    document: i64,
) -> Result<(), Failure> {
    let removed = documents::remove_some(transaction, user, document, DELETED_AT_ONCE);
    removed.await.map(drop)
}

/// Indexes the words of chunks that came from elsewhere: their keys, and their headings and texts.
pub(crate) async fn index(
    transaction: &Transaction<'_>,
    keys: &[i64],
    texts: &[(&str, &str)],
) -> Result<(), Failure> {
    writing::index(transaction, keys, texts).await
}

impl LibraryRows for PostgresEngine {
    fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Answer<'_, CollectionId> {
        let given = (user.clone(), name.to_owned(), session.cloned());
        self.change(given, |transaction, (user, name, session)| {
            Box::pin(collections::ensure(
                transaction,
                user,
                name,
                session.as_ref(),
            ))
        })
    }

    fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)> {
        let given = (user.clone(), session.cloned());
        self.look(given, |transaction, (user, session)| {
            Box::pin(async move {
                let seen = collections::visible(transaction, user, session.as_ref()).await?;
                Ok((seen, vectors::maker(transaction).await?))
            })
        })
    }

    fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>> {
        self.look(user.clone(), |transaction, user| {
            Box::pin(collections::all(transaction, user))
        })
    }

    fn documents(&self, user: &UserId, wanted: Wanted) -> Answer<'_, Vec<DocumentRow>> {
        self.look((user.clone(), wanted), |transaction, (user, wanted)| {
            Box::pin(documents::list(transaction, user, wanted))
        })
    }

    fn write(&self, pieces: Vec<Piece>, maker: Option<EmbeddingMaker>) -> Answer<'_, Stored<()>> {
        self.change((pieces, maker), |transaction, (pieces, maker)| {
            Box::pin(writing::write(transaction, pieces, maker.as_ref()))
        })
    }

    fn remove(&self, user: &UserId, document: i64, _removal: Removal) -> Answer<'_, Option<u64>> {
        let user = user.clone();
        Box::pin(async move {
            let mut removed = 0;
            loop {
                let given = (user.clone(), document);
                let some = self.change(given, |transaction, (user, document)| {
                    Box::pin(documents::remove_some(
                        transaction,
                        user,
                        *document,
                        DELETED_AT_ONCE,
                    ))
                });
                let Some(some) = some.await? else {
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
        self.look((), |transaction, ()| Box::pin(vectors::maker(transaction)))
    }

    fn begin_vectors(&self, maker: EmbeddingMaker) -> Answer<'_, ()> {
        self.change(maker, |transaction, maker| {
            Box::pin(vectors::begin(transaction, maker))
        })
    }

    fn without_vectors(&self, after: i64, most: usize) -> Answer<'_, Vec<(i64, String, String)>> {
        self.look((after, most), |transaction, (after, most)| {
            Box::pin(vectors::missing(transaction, *after, *most))
        })
    }

    fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Answer<'_, Stored<()>> {
        self.change((maker, made), |transaction, (maker, made)| {
            Box::pin(vectors::set(transaction, maker, made))
        })
    }

    fn frequencies(&self, words: Vec<String>) -> Answer<'_, (u64, Vec<u64>)> {
        self.look(words, |transaction, words| {
            Box::pin(lexical::frequencies(transaction, words))
        })
    }

    fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        most: usize,
    ) -> Answer<'_, Ranked> {
        let given = (collections, words, most);
        self.look(given, |transaction, (collections, words, most)| {
            Box::pin(lexical::search(transaction, collections, words, *most))
        })
    }

    fn nearest(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Answer<'_, Stored<Vec<(i64, f64)>>> {
        let given = nearest::Asked {
            memory: self.bits.clone(),
            signs_read: self.database.signs_read,
            collections,
            maker,
            vector,
            most,
        };
        self.look(given, |transaction, asked| {
            Box::pin(nearest::search(transaction, asked))
        })
    }

    fn vector_search(&self) -> Answer<'_, VectorSearch> {
        self.look(self.database.signs_read, |transaction, signs_read| {
            Box::pin(pgvector::described(&**transaction, *signs_read))
        })
    }

    fn index_vectors(&self) -> Answer<'_, VectorSearch> {
        Box::pin(pgvector::make(&self.database))
    }

    fn chunks(&self, ids: Vec<i64>) -> Answer<'_, Vec<Found>> {
        self.look(ids, |transaction, ids| {
            Box::pin(documents::chunks(transaction, ids))
        })
    }

    fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<(u64, bool)>> {
        let given = (user.clone(), row, piece, maker);
        self.change(given, |transaction, (user, row, piece, maker)| {
            let maker = maker.as_ref();
            Box::pin(entries::save_knowledge(
                transaction,
                user,
                row,
                piece,
                maker,
            ))
        })
    }

    fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<KnowledgeRow>>> {
        self.look(
            (user.clone(), documents),
            |transaction, (user, documents)| {
                Box::pin(entries::knowledge(transaction, user, documents))
            },
        )
    }

    fn versions(&self, user: &UserId, key: &str, most: usize) -> Answer<'_, Vec<KnowledgeRow>> {
        let given = (user.clone(), key.to_owned(), most);
        self.look(given, |transaction, (user, key, most)| {
            Box::pin(entries::versions(transaction, user, key, *most))
        })
    }

    fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<bool>> {
        let given = (user.clone(), row, piece, maker);
        self.change(given, |transaction, (user, row, piece, maker)| {
            let maker = maker.as_ref();
            Box::pin(entries::save_learning(transaction, user, row, piece, maker))
        })
    }

    fn learnings(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<LearningRow>>> {
        self.look(
            (user.clone(), documents),
            |transaction, (user, documents)| {
                Box::pin(entries::learnings(transaction, user, documents))
            },
        )
    }
}
