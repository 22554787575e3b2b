//! Why the library could not do it.

use lango_core::{EmbedError, EmbeddingMaker, StoreError, Text};
use std::io;
use std::path::PathBuf;

/// Why the library could not do it.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The vectors are of another maker.
    #[error(
        "the vectors of the library were made by {stored}, and now {configured} is configured; reindex the library, or \
         configure the former again"
    )]
    OtherMaker {
        /// Who made those that are stored.
        stored: String,
        /// Who would make new ones.
        configured: String,
    },
    /// There is nothing that makes vectors.
    #[error("there is no embedding provider; set `embedding.provider`")]
    NoEmbedder,
    /// The embedder gave something else than it was asked for.
    #[error("{provider} did not give {wanted} vectors of {dimensions} numbers")]
    WrongVectors {
        /// Whom we asked.
        provider: Text,
        /// How many vectors.
        wanted: usize,
        /// How many numbers each.
        dimensions: u32,
    },
    /// There is no such file or folder, and the library has nothing from there.
    #[error("there is no `{}`", path.display())]
    NoSuchPath {
        /// What was asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The library has no such document.
    #[error("the library has no document `{name}`; list its documents to see their names and ids")]
    NoSuchDocument {
        /// What was asked for.
        name: String,
    },
    /// Something that an agent or a person gave is not usable.
    #[error("{problem}")]
    Unusable {
        /// What, and the way out.
        problem: String,
    },
    /// There are no vectors.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A task of ours ended before its time.
    #[error("reading a document was broken off: {detail}")]
    BrokenOff {
        /// What was said.
        detail: String,
    },
}

impl LibraryError {
    pub(super) fn other_maker(stored: &EmbeddingMaker, configured: &EmbeddingMaker) -> Self {
        Self::OtherMaker {
            stored: shown(stored),
            configured: shown(configured),
        }
    }
}

impl From<tokio::task::JoinError> for LibraryError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::BrokenOff {
            detail: error.to_string(),
        }
    }
}

fn shown(maker: &EmbeddingMaker) -> String {
    let EmbeddingMaker {
        provider,
        model,
        dimensions,
        version,
    } = maker;
    format!("`{provider}/{model}` ({dimensions} numbers, version {version})")
}
