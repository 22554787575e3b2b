//! The library: documents, saved knowledge and learnings, and the search over them.
//!
//! Everything belongs to a user, and lies in collections. One that is bound to a session is searched there alone. A
//! document is cut into chunks; each is found by its words, and by its vector if there is an embedder. Whether its words
//! may be believed comes back with every hit.
//!
//! All vectors are of one maker. When another embedder is configured, adding and searching by vectors is refused until
//! [`Library::reindex`] has made them anew; searching by words works meanwhile, and says so.

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
mod tools;
mod walk;

pub use add::{AddOptions, AddReport, Added, Progress, Skipped};
pub use entries::{Entry, Learning, NewEntry, NewLearning, Saved};
pub use error::LibraryError;
pub use manage::{Document, Forgotten, ReindexReport};
pub use search::{Hit, Mode, Query, Results};
pub use tools::{Neighbours, library_tools, retrieve_tool};

use lango_core::{Clock, Embedder, EmbeddingMaker, EmbeddingPurpose};
use lango_store::Store;
use std::sync::Arc;

/// The collection of documents that were added without naming one.
const DOCUMENTS: &str = "documents";

/// The collections of what agents save.
const KNOWLEDGE: &str = "knowledge";
const LEARNINGS: &str = "learnings";

/// Documents, saved knowledge and learnings in a store. A clone is the same library.
#[derive(Clone)]
pub struct Library {
    store: Arc<Store>,
    embedder: Option<Arc<dyn Embedder>>,
    clock: Arc<dyn Clock>,
}

impl Library {
    /// The library of a store. Without an embedder it is searched by words only.
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

    /// Refuses if the vectors that are stored are not the embedder's.
    async fn check_maker(&self) -> Result<(), LibraryError> {
        let Some(embedder) = &self.embedder else {
            return Ok(());
        };
        match self.store.vector_maker().await? {
            Some(stored) if stored != *embedder.maker() => {
                Err(LibraryError::other_maker(&stored, embedder.maker()))
            }
            _ => Ok(()),
        }
    }

    fn maker(&self) -> Option<EmbeddingMaker> {
        let embedder = self.embedder.as_ref()?;
        Some(embedder.maker().clone())
    }

    /// The vectors of texts, as many as there are texts.
    async fn vectors(
        &self,
        embedder: &dyn Embedder,
        texts: Vec<String>,
        purpose: EmbeddingPurpose,
    ) -> Result<Vec<Vec<f32>>, LibraryError> {
        let wanted = texts.len();
        let vectors = embedder.embed(texts, purpose).await?;
        let maker = embedder.maker();
        let fits = |vector: &Vec<f32>| vector.len() == maker.dimensions as usize;
        if vectors.len() != wanted || !vectors.iter().all(fits) {
            return Err(LibraryError::WrongVectors {
                provider: maker.provider.clone(),
                wanted,
                dimensions: maker.dimensions,
            });
        }
        Ok(vectors)
    }
}

/// What a vector is made of: a chunk with the headings above it.
fn embedded_text(heading: &str, text: &str) -> String {
    if heading.is_empty() {
        text.to_owned()
    } else {
        format!("{heading}\n{text}")
    }
}
