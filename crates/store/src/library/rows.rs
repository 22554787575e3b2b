//! The seam to the library's rows: documents in chunks, their words, their vectors, and what agents saved.
//!
//! All writing is in changes of a few hundred rows, because others wait behind them; what is larger is for the caller to
//! cut. Reading is bounded by what is looked for, not by what is there, with one exception: the coarse look at vectors
//! passes over all bits of the collections it searches.

use super::{
    CollectionId, CollectionRow, DocumentRow, Found, KnowledgeRow, LearningRow, Piece, QueryWord,
    Ranked, Removal, Stored, VectorSearch, Wanted,
};
use crate::database::Answer;
use lango_core::{EmbeddingMaker, SessionId, UserId};

/// The rows of the library in a database.
pub trait LibraryRows: Send + Sync {
    /// A user's collection of that name, made if it is not there.
    fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> Answer<'_, CollectionId>;

    /// The collections that a user sees in a session, and who made their vectors. Without a session, those that are seen
    /// everywhere.
    fn visible(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
    ) -> Answer<'_, (Vec<CollectionRow>, Option<EmbeddingMaker>)>;

    /// All collections of a user, those of every session included, by name.
    fn all_collections(&self, user: &UserId) -> Answer<'_, Vec<CollectionRow>>;

    /// A user's documents in the order of their names, those of all sessions included.
    fn documents(&self, user: &UserId, wanted: Wanted) -> Answer<'_, Vec<DocumentRow>>;

    /// Writes pieces of documents, in one change. A first piece needs its name to be free: see
    /// [`remove`](Self::remove). Chunks with vectors need the maker.
    fn write(&self, pieces: Vec<Piece>, maker: Option<EmbeddingMaker>) -> Answer<'_, Stored<()>>;

    /// Removes a user's document with its words and vectors, in as many changes as that takes. Gives the number of its
    /// chunks, or nothing if there is no such document.
    fn remove(&self, user: &UserId, document: i64, removal: Removal) -> Answer<'_, Option<u64>>;

    /// Who made the vectors, if there are any.
    fn maker(&self) -> Answer<'_, Option<EmbeddingMaker>>;

    /// Makes room for the vectors of this maker: those of another are dropped.
    fn begin_vectors(&self, maker: EmbeddingMaker) -> Answer<'_, ()>;

    /// Chunks without a vector, in the order of their keys, after a key: key, heading and text.
    fn without_vectors(&self, after: i64, most: usize) -> Answer<'_, Vec<(i64, String, String)>>;

    /// Gives chunks their vectors. One that is gone meanwhile is passed over.
    fn set_vectors(
        &self,
        maker: EmbeddingMaker,
        made: Vec<(i64, Vec<f32>)>,
    ) -> Answer<'_, Stored<()>>;

    /// How many chunks of all users there are, and how many of them hold each of the words; see
    /// [`lexical`](Self::lexical) for what a word is.
    fn frequencies(&self, words: Vec<String>) -> Answer<'_, (u64, Vec<u64>)>;

    /// The chunks that hold any of the words, the best first.
    fn lexical(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        most: usize,
    ) -> Answer<'_, Ranked>;

    /// The chunks whose vectors are nearest, with the cosine of the angle, the nearest first.
    fn nearest(
        &self,
        collections: Vec<CollectionId>,
        maker: EmbeddingMaker,
        vector: Vec<f32>,
        most: usize,
    ) -> Answer<'_, Stored<Vec<(i64, f64)>>>;

    /// How those are found.
    fn vector_search(&self) -> Answer<'_, VectorSearch>;

    /// Makes the index for them, if there can be one and is none, however long that takes; others go on meanwhile. Says how
    /// they are found then.
    fn index_vectors(&self) -> Answer<'_, VectorSearch>;

    /// Chunks by their keys, in that order, without those that are gone.
    fn chunks(&self, ids: Vec<i64>) -> Answer<'_, Vec<Found>>;

    /// Saves a new version, with the document by which it is found, unless it says what the newest says already. Gives
    /// the version, and whether it is new.
    fn save_knowledge(
        &self,
        user: &UserId,
        row: KnowledgeRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<(u64, bool)>>;

    /// What was saved, by the documents that a search gave; nothing for those that are something else.
    fn knowledge(
        &self,
        user: &UserId,
        documents: Vec<i64>,
    ) -> Answer<'_, Vec<Option<KnowledgeRow>>>;

    /// All versions under a key, the newest first.
    fn versions(&self, user: &UserId, key: &str, most: usize) -> Answer<'_, Vec<KnowledgeRow>>;

    /// Saves a learning, with the document by which it is found. One with the same trigger and fix is brought up to
    /// date. Gives whether it is new.
    fn save_learning(
        &self,
        user: &UserId,
        row: LearningRow,
        piece: Piece,
        maker: Option<EmbeddingMaker>,
    ) -> Answer<'_, Stored<bool>>;

    /// Learnings by the documents that a search gave; nothing for those that are something else.
    fn learnings(&self, user: &UserId, documents: Vec<i64>)
    -> Answer<'_, Vec<Option<LearningRow>>>;
}
