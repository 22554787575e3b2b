//! The seam to what turns texts into vectors.

use crate::{BoxFuture, Text};
use serde::{Deserialize, Serialize};

/// Turns texts into vectors, near to each other when the texts are alike.
pub trait Embedder: Send + Sync {
    /// What made a vector. Vectors of different makers are never compared.
    fn maker(&self) -> &EmbeddingMaker;

    /// One vector for each text, in their order.
    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbeddingPurpose,
    ) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// What made a vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingMaker {
    /// The provider, such as `offline`.
    pub provider: Text,
    /// The model.
    pub model: Text,
    /// How many numbers a vector has.
    pub dimensions: u32,
    /// Changes when the same model begins to give other vectors.
    pub version: u32,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingPurpose {
    /// Something to be found.
    Document,
    /// Something to find by.
    Query,
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} gave no vectors: {detail}")]
pub struct EmbedError {
    /// Whom we asked.
    pub provider: Text,
    /// What went wrong and the way out.
    pub detail: String,
    /// Whether a later try may succeed.
    pub is_passing: bool,
}
