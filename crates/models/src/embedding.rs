//! Embeddings over HTTP. Sends texts in batches, retries transient faults and checks the vectors that come back. The
//! formats of the provider families are in `wire`.
//!
//! The number of dimensions is configured, or measured with one request when connecting, so an embedder always knows
//! it. Empty texts are not sent, because most providers refuse them: their vector is all zeros.

mod wire;

use crate::http::{Endpoint, EndpointParts, ProviderTimeouts};
use crate::resilient::{PAUSE, retry_delay};
use crate::wire::WireRequest;
use lango_core::{
    BoxFuture, EmbedError, Embedder, EmbeddingModel, EmbeddingPurpose, ModelFault, Text,
};
use lango_net::PlainHttp;
use lango_secrets::{Credential, Masks};
use serde::Deserialize;
use std::sync::Arc;
use wire::{EmbeddingFailure, Wire};

/// The wire format of an embedding provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingKind {
    /// OpenAI's `/v1/embeddings`, which most servers speak.
    OpenAi,
    Gemini,
    /// Ollama's own `/api/embed`.
    Ollama,
}

impl EmbeddingKind {
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Gemini, Self::Ollama];

    /// Returns the name used in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}

/// The settings of one embedding provider.
#[derive(Clone)]
pub struct EmbeddingSettings {
    /// The provider part of the embedding model's name.
    pub id: String,
    pub kind: EmbeddingKind,
    /// The address. If it has no path, the version path of the kind is appended.
    pub base_url: String,
    /// The key, if the provider needs one. It is sent only to the origin of `base_url`.
    pub api_key: Option<Credential>,
    /// Whether the key may be sent over plain HTTP.
    pub plain_http: PlainHttp,
    /// Secret values to mask in everything the provider sends.
    pub masks: Masks,
    /// Where lango looked for the key; shown in errors.
    pub key_source: String,
    pub model: String,
    /// How many dimensions to request. `None` takes the model's default and measures it.
    pub dimensions: Option<u32>,
    pub timeouts: ProviderTimeouts,
}

/// More dimensions than any model has.
const MAX_DIMENSIONS: u32 = 65_536;

/// Creates an embedder. If the dimensions are not configured, it requests one vector to measure them; otherwise it
/// sends nothing yet.
pub async fn connect_embedder(
    settings: EmbeddingSettings,
) -> Result<Arc<dyn Embedder>, EmbedError> {
    let (configured, model) = (settings.dimensions, settings.model.as_str().into());
    let provider = Provider::new(settings);
    let dimensions = match configured {
        Some(dimensions) if (1..=MAX_DIMENSIONS).contains(&dimensions) => dimensions,
        Some(dimensions) => {
            let detail = format!(
                "{dimensions} is not a valid number of dimensions; set 1 to {MAX_DIMENSIONS}, or leave it out"
            );
            return Err(provider.error(detail, false));
        }
        None => provider.measure_dimensions().await?,
    };
    let maker = EmbeddingModel {
        provider: provider.id.clone(),
        model,
        dimensions,
        version: 1,
    };
    Ok(Arc::new(HttpEmbedder { provider, maker }))
}

struct HttpEmbedder {
    provider: Provider,
    maker: EmbeddingModel,
}

impl Embedder for HttpEmbedder {
    fn model(&self) -> &EmbeddingModel {
        &self.maker
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbeddingPurpose,
    ) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let zeros = vec![0.0; self.maker.dimensions as usize];
            let mut vectors = vec![zeros; texts.len()];
            let numbered = texts.into_iter().enumerate();
            let not_empty = numbered.filter(|(_, text)| !text.trim().is_empty());
            let (indexes, texts): (Vec<usize>, Vec<String>) = not_empty.unzip();
            let mut indexes = indexes.into_iter();
            for batch in batches(&texts) {
                let received = self.provider.vectors(batch, purpose).await?;
                self.check(&received)?;
                for (vector, index) in received.into_iter().zip(indexes.by_ref()) {
                    vectors[index] = vector;
                }
            }
            Ok(vectors)
        })
    }
}

impl HttpEmbedder {
    fn check(&self, vectors: &[Vec<f32>]) -> Result<(), EmbedError> {
        let expected = self.maker.dimensions as usize;
        match vectors.iter().find(|vector| vector.len() != expected) {
            None => Ok(()),
            Some(vector) => {
                let detail = format!(
                    "a vector of `{}` has {} dimensions, not {expected}; check the model and the configured dimensions",
                    self.maker.model,
                    vector.len()
                );
                Err(self.provider.error(detail, false))
            }
        }
    }
}

/// Maximum number of texts per request. Some servers accept no more than 32.
const BATCH_TEXTS: usize = 32;
/// Maximum number of bytes per request with several texts.
const BATCH_BYTES: usize = 256 * 1024;

/// Splits the texts into batches in their order. A text longer than the limit gets its own batch.
fn batches(texts: &[String]) -> Vec<&[String]> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        if at > start && (at - start == BATCH_TEXTS || bytes + text.len() > BATCH_BYTES) {
            batches.push(&texts[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += text.len();
    }
    batches.extend((start < texts.len()).then(|| &texts[start..]));
    batches
}

struct Provider {
    id: Text,
    endpoint: Endpoint,
    wire: Wire,
    key_source: String,
}

impl Provider {
    fn new(settings: EmbeddingSettings) -> Self {
        let wire = Wire {
            kind: settings.kind,
            model: settings.model,
            dimensions: settings.dimensions,
        };
        let base_url = wire.base_url(&settings.base_url);
        let kind = wire.kind;
        Self {
            id: settings.id.as_str().into(),
            endpoint: Endpoint::new(EndpointParts {
                base_url,
                key: settings.api_key,
                headers: Box::new(move |key| Wire::headers(kind, key)),
                plain_http: settings.plain_http,
                masks: settings.masks,
                timeouts: settings.timeouts,
            }),
            wire,
            key_source: settings.key_source,
        }
    }

    async fn measure_dimensions(&self) -> Result<u32, EmbedError> {
        let probe = ["How long is a vector?".to_owned()];
        let vectors = self.vectors(&probe, EmbeddingPurpose::Query).await?;
        let length = vectors.first().map_or(0, Vec::len);
        let dimensions = u32::try_from(length).unwrap_or(u32::MAX);
        match dimensions {
            1..=MAX_DIMENSIONS => Ok(dimensions),
            _ => Err(self.error(format!("its vectors have {length} dimensions"), false)),
        }
    }

    /// Requests one vector for each text, in their order, with retries. Does not check the dimensions.
    async fn vectors(
        &self,
        texts: &[String],
        purpose: EmbeddingPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let request = self.wire.request(texts, purpose);
        let mut tries = 0;
        loop {
            tries += 1;
            let fault = match self.ask(&request, texts.len()).await {
                Ok(vectors) => return Ok(vectors),
                Err(EmbeddingFailure::WrongReply(detail)) => return Err(self.error(detail, false)),
                Err(EmbeddingFailure::Fault(fault)) => fault,
            };
            match retry_delay(&fault, tries, PAUSE) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(self.explain(fault)),
            }
        }
    }

    async fn ask(
        &self,
        request: &WireRequest,
        count: usize,
    ) -> Result<Vec<Vec<f32>>, EmbeddingFailure> {
        let response = self.endpoint.post(request).await?;
        let body = self.endpoint.body(response).await?;
        self.wire.read(&body, count)
    }

    fn explain(&self, fault: ModelFault) -> EmbedError {
        let is_transient = fault.is_transient();
        let is_key_fault = matches!(fault, ModelFault::NoKey { .. } | ModelFault::BadKey { .. });
        let detail = match fault {
            ModelFault::ContextTooLong { detail, .. } => {
                format!("a text is too long for `{}`: {detail}", self.wire.model)
            }
            other => other.to_string(),
        };
        let mut error = self.error(detail, is_transient);
        if is_key_fault {
            error.detail += &format!(" (the key: {})", self.key_source);
        }
        error
    }

    /// Builds the error with secrets masked: some providers repeat the key that they refuse.
    fn error(&self, mut detail: String, is_transient: bool) -> EmbedError {
        self.endpoint.masks.mask_string(&mut detail);
        EmbedError {
            provider: self.id.clone(),
            detail,
            is_transient,
        }
    }
}
