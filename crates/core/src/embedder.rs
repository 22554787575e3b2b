//! The interface to embedding models.

use crate::{BoxFuture, Text};
use serde::{Deserialize, Serialize};

/// Turns texts into vectors. Similar texts get vectors that are close to each other.
pub trait Embedder: Send + Sync {
    /// Returns the identity of the model. Vectors of different models are never compared.
    fn model(&self) -> &EmbeddingModel;

    /// Returns one vector for each text, in the same order.
    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbeddingPurpose,
    ) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// The identity of an embedding model, stored with its vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingModel {
    /// The provider, such as `offline`.
    pub provider: Text,
    pub model: Text,
    /// The length of a vector.
    pub dimensions: u32,
    /// Changes when the same model starts to return different vectors.
    pub version: u32,
}

/// The role of a text in a search. Some models embed the two roles differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingPurpose {
    /// A text to be found.
    Document,
    /// A text to search with.
    Query,
}

/// A failed embedding request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} gave no vectors: {detail}")]
pub struct EmbedError {
    pub provider: Text,
    /// What went wrong and what to do about it.
    pub detail: String,
    /// Whether a retry may succeed.
    pub is_transient: bool,
}
