//! Dispatch to the two implementations of `library` that there still are.

use crate::database::Answer;
use crate::engine::Engine;
use crate::library::*;
use crate::store::Store;
use lango_core::*;

impl LibraryRows for Store {
    fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Answer<'_, CollectionId> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::collection(engine.as_ref(), user, name, session),
            Engine::Postgres(engine) => {
                LibraryRows::collection(engine.as_ref(), user, name, session)
            }
        }
    }

    fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::visible(engine.as_ref(), user, session),
            Engine::Postgres(engine) => LibraryRows::visible(engine.as_ref(), user, session),
        }
    }

    fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::all_collections(engine.as_ref(), user),
            Engine::Postgres(engine) => LibraryRows::all_collections(engine.as_ref(), user),
        }
    }

    fn documents(&self, user: &UserId, wanted: Wanted) -> Answer<'_, Vec<DocumentRow>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::documents(engine.as_ref(), user, wanted),
            Engine::Postgres(engine) => LibraryRows::documents(engine.as_ref(), user, wanted),
        }
    }

    fn write(&self, pieces: Vec<Piece>, maker: Option<EmbeddingMaker>) -> Answer<'_, Stored<()>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::write(engine.as_ref(), pieces, maker),
            Engine::Postgres(engine) => LibraryRows::write(engine.as_ref(), pieces, maker),
        }
    }

    fn remove(&self, user: &UserId, document: i64, removal: Removal) -> Answer<'_, Option<u64>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::remove(engine.as_ref(), user, document, removal),
            Engine::Postgres(engine) => {
                LibraryRows::remove(engine.as_ref(), user, document, removal)
            }
        }
    }

    fn maker(&self) -> Answer<'_, Option<EmbeddingMaker>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::maker(engine.as_ref()),
            Engine::Postgres(engine) => LibraryRows::maker(engine.as_ref()),
        }
    }

    fn begin_vectors(&self, maker: EmbeddingMaker) -> Answer<'_, ()> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::begin_vectors(engine.as_ref(), maker),
            Engine::Postgres(engine) => LibraryRows::begin_vectors(engine.as_ref(), maker),
        }
    }

    fn without_vectors(&self, after: i64, most: usize) -> Answer<'_, Vec<(i64, String, String)>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::without_vectors(engine.as_ref(), after, most),
            Engine::Postgres(engine) => LibraryRows::without_vectors(engine.as_ref(), after, most),
        }
    }

    fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Answer<'_, Stored<()>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::set_vectors(engine.as_ref(), maker, made),
            Engine::Postgres(engine) => LibraryRows::set_vectors(engine.as_ref(), maker, made),
        }
    }

    fn frequencies(&self, words: Vec<String>) -> Answer<'_, (u64, Vec<u64>)> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::frequencies(engine.as_ref(), words),
            Engine::Postgres(engine) => LibraryRows::frequencies(engine.as_ref(), words),
        }
    }

    fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        most: usize,
    ) -> Answer<'_, Ranked> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::lexical(engine.as_ref(), collections, words, most)
            }
            Engine::Postgres(engine) => {
                LibraryRows::lexical(engine.as_ref(), collections, words, most)
            }
        }
    }

    fn nearest(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Answer<'_, Stored<Vec<(i64, f64)>>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::nearest(engine.as_ref(), collections, maker, vector, most)
            }
            Engine::Postgres(engine) => {
                LibraryRows::nearest(engine.as_ref(), collections, maker, vector, most)
            }
        }
    }

    fn vector_search(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::vector_search(engine.as_ref()),
            Engine::Postgres(engine) => LibraryRows::vector_search(engine.as_ref()),
        }
    }

    fn index_vectors(&self) -> Answer<'_, VectorSearch> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::index_vectors(engine.as_ref()),
            Engine::Postgres(engine) => LibraryRows::index_vectors(engine.as_ref()),
        }
    }

    fn chunks(&self, ids: Vec<i64>) -> Answer<'_, Vec<Found>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::chunks(engine.as_ref(), ids),
            Engine::Postgres(engine) => LibraryRows::chunks(engine.as_ref(), ids),
        }
    }

    fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<(u64, bool)>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::save_knowledge(engine.as_ref(), user, row, piece, maker)
            }
            Engine::Postgres(engine) => {
                LibraryRows::save_knowledge(engine.as_ref(), user, row, piece, maker)
            }
        }
    }

    fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<KnowledgeRow>>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::knowledge(engine.as_ref(), user, documents),
            Engine::Postgres(engine) => LibraryRows::knowledge(engine.as_ref(), user, documents),
        }
    }

    fn versions(&self, user: &UserId, key: &str, most: usize) -> Answer<'_, Vec<KnowledgeRow>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::versions(engine.as_ref(), user, key, most),
            Engine::Postgres(engine) => LibraryRows::versions(engine.as_ref(), user, key, most),
        }
    }

    fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<bool>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                LibraryRows::save_learning(engine.as_ref(), user, row, piece, maker)
            }
            Engine::Postgres(engine) => {
                LibraryRows::save_learning(engine.as_ref(), user, row, piece, maker)
            }
        }
    }

    fn learnings(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<LearningRow>>> {
        match &self.engine {
            Engine::Sqlite(engine) => LibraryRows::learnings(engine.as_ref(), user, documents),
            Engine::Postgres(engine) => LibraryRows::learnings(engine.as_ref(), user, documents),
        }
    }
}
