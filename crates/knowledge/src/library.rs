//! The library: documents, saved knowledge and learnings, and the search over them.
//!
//! Everything belongs to a user and is in a collection. A collection that is bound to a session is visible only there.
//! A document is split into chunks; each can be found by its words, and by its vector if there is an embedder. Every
//! hit contains its source and trust label.
//!
//! All vectors come from one embedding model. If another one is configured, adding and vector search fail until
//! [`Library::reindex`] has recomputed the vectors. Search by words works in the meantime, with a note.

mod add;
mod batch;
mod chunk;
mod entries;
mod error;
mod fuse;
mod manage;
mod read;
mod search;
mod snippet;
mod spelling;
mod tools;
mod walk;

pub use add::{AddOptions, AddProgress, AddReport, FileOutcome, SkippedFile};
pub use entries::{KnowledgeEntry, Learning, NewKnowledge, NewLearning, SaveReport};
pub use error::LibraryError;
pub use manage::{DeleteReport, LibraryDocument, ReindexReport};
pub use search::{LibraryHit, LibraryQuery, LibraryResults, LibrarySearchMode};
pub use tools::{Neighbours, library_tools, retrieve_tool};

use lango_core::{Clock, Embedder, EmbeddingModel, EmbeddingPurpose};
use lango_store::Store;
use std::sync::Arc;

/// The default collection for documents.
const DOCUMENTS: &str = "documents";

/// The collection of knowledge entries that agents save.
const KNOWLEDGE: &str = "knowledge";
/// The collection of learnings that agents save.
const LEARNINGS: &str = "learnings";

/// Documents, saved knowledge and learnings in a store. Clones share the same library.
#[derive(Clone)]
pub struct Library {
    store: Arc<Store>,
    embedder: Option<Arc<dyn Embedder>>,
    clock: Arc<dyn Clock>,
}

impl Library {
    /// Creates the library of a store. Without an embedder it can be searched only by words.
    pub fn new(
        store: Arc<Store>,
        embedder: Option<Arc<dyn Embedder>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            embedder,
            clock,
        }
    }

    /// Fails if the stored vectors come from another embedding model.
    async fn check_embedding_model(&self) -> Result<(), LibraryError> {
        let Some(embedder) = &self.embedder else {
            return Ok(());
        };
        match self.store.vector_model().await? {
            Some(stored) if stored != *embedder.model() => Err(
                LibraryError::other_embedding_model(&stored, embedder.model()),
            ),
            _ => Ok(()),
        }
    }

    fn embedding_model(&self) -> Option<EmbeddingModel> {
        let embedder = self.embedder.as_ref()?;
        Some(embedder.model().clone())
    }

    /// Embeds texts and checks the number and the dimensions of the vectors.
    async fn vectors(
        &self,
        embedder: &dyn Embedder,
        texts: Vec<String>,
        purpose: EmbeddingPurpose,
    ) -> Result<Vec<Vec<f32>>, LibraryError> {
        let wanted = texts.len();
        let vectors = embedder.embed(texts, purpose).await?;
        let embedding_model = embedder.model();
        let fits = |vector: &Vec<f32>| vector.len() == embedding_model.dimensions as usize;
        if vectors.len() != wanted || !vectors.iter().all(fits) {
            return Err(LibraryError::WrongVectors {
                provider: embedding_model.provider.clone(),
                wanted,
                dimensions: embedding_model.dimensions,
            });
        }
        Ok(vectors)
    }
}

/// Returns the text to embed for a chunk: its headings and its text.
fn embedded_text(heading: &str, text: &str) -> String {
    if heading.is_empty() {
        text.to_owned()
    } else {
        format!("{heading}\n{text}")
    }
}
