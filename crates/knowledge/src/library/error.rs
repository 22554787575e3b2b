//! The errors of the library.

use lango_core::{EmbedError, EmbeddingModel, StoreError, Text};
use std::path::PathBuf;

/// An error of the library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The stored vectors come from another embedding model.
    #[error(
        "the vectors of the library were made by {stored}, but {configured} is configured; reindex the library, or configure \
         the former model again"
    )]
    OtherEmbeddingModel { stored: String, configured: String },
    #[error("no embedding provider is configured; set `embedding.provider`")]
    NoEmbedder,
    /// The embedder returned the wrong number of vectors, or vectors of the wrong length.
    #[error("{provider} did not return {wanted} vectors of {dimensions} dimensions")]
    WrongVectors {
        provider: Text,
        /// The number of requested vectors.
        wanted: usize,
        dimensions: u32,
    },
    /// The path does not exist, and the library has no documents from there.
    #[error("`{}` does not exist", path.display())]
    NoSuchPath { path: PathBuf },
    #[error("the library has no document `{name}`; list its documents to see their names and ids")]
    NoSuchDocument { name: String },
    /// An argument is invalid.
    #[error("{problem}")]
    Unusable {
        /// What is wrong, and how to fix it.
        problem: String,
    },
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A background task panicked or was cancelled.
    #[error("reading a document was interrupted: {detail}")]
    Interrupted { detail: String },
}

impl LibraryError {
    pub(super) fn other_embedding_model(
        stored: &EmbeddingModel,
        configured: &EmbeddingModel,
    ) -> Self {
        Self::OtherEmbeddingModel {
            stored: model_label(stored),
            configured: model_label(configured),
        }
    }
}

impl From<tokio::task::JoinError> for LibraryError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Interrupted {
            detail: error.to_string(),
        }
    }
}

fn model_label(embedding_model: &EmbeddingModel) -> String {
    let EmbeddingModel {
        provider,
        model,
        dimensions,
        version,
    } = embedding_model;
    format!("`{provider}/{model}` ({dimensions} dimensions, version {version})")
}
