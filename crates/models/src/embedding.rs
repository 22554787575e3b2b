//! Vectors over HTTP: texts go out in batches, each is asked for again when a fault may pass, and what comes back is held
//! against what was asked for. How each family of providers says it is in `wire`.
//!
//! How many numbers a vector has is configured or learned from one reply before anything else is asked for, so that an
//! embedder knows from its first moment what it makes. A text with nothing in it is not sent, since most providers refuse
//! it: its vector is all zeros.

mod wire;

use crate::http::{Endpoint, EndpointParts, Patience};
use crate::resilient::{PAUSE, worth_waiting};
use crate::wire::WireRequest;
use lango_core::{
    BoxFuture, EmbedError, Embedder, EmbeddingMaker, EmbeddingPurpose, ModelFault, Text,
};
use lango_secrets::{Credential, Masks};
use serde::Deserialize;
use std::sync::Arc;
use wire::{Trouble, Wire};

/// How providers of vectors are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingKind {
    /// `/v1/embeddings` as OpenAI defined it, and very many servers speak it.
    OpenAi,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own `/api/embed`.
    Ollama,
}

impl EmbeddingKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Gemini, Self::Ollama];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}

/// How a provider of vectors is reached.
#[derive(Clone)]
pub struct EmbeddingSettings {
    /// Its name: the `provider` of the vectors' maker.
    pub id: String,
    /// How it is spoken to.
    pub kind: EmbeddingKind,
    /// Where it is. An address without a path gets the version that the kind has.
    pub base_url: String,
    /// The key, if it wants one. It is sent to the origin of `base_url` only.
    pub api_key: Option<Credential>,
    /// The values that are masked in what it says.
    pub masks: Masks,
    /// Where the key was looked for, for error texts.
    pub key_source: String,
    /// The model.
    pub model: String,
    /// How many numbers a vector is to have. If it is set, the provider is asked for just that; if not, it is learned.
    pub dimensions: Option<u32>,
    /// How long lango waits.
    pub patience: Patience,
}

/// More numbers than any model gives for a text.
const MOST_DIMENSIONS: u32 = 65_536;

/// An embedder that can be used. Asks once for one vector if the dimensions are not configured, else nothing is sent yet.
pub async fn connect_embedder(
    settings: EmbeddingSettings,
) -> Result<Arc<dyn Embedder>, EmbedError> {
    let (configured, model) = (settings.dimensions, settings.model.as_str().into());
    let provider = Provider::new(settings);
    let dimensions = match configured {
        Some(dimensions) if (1..=MOST_DIMENSIONS).contains(&dimensions) => dimensions,
        Some(dimensions) => {
            let detail =
                format!("no vector has {dimensions} numbers; set 1 to {MOST_DIMENSIONS}, or none");
            return Err(provider.error(detail, false));
        }
        None => provider.learn_dimensions().await?,
    };
    let maker = EmbeddingMaker {
        provider: provider.id.clone(),
        model,
        dimensions,
        version: 1,
    };
    Ok(Arc::new(HttpEmbedder { provider, maker }))
}

struct HttpEmbedder {
    provider: Provider,
    maker: EmbeddingMaker,
}

impl Embedder for HttpEmbedder {
    fn maker(&self) -> &EmbeddingMaker {
        &self.maker
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbeddingPurpose,
    ) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let nothing = vec![0.0; self.maker.dimensions as usize];
            let mut vectors = vec![nothing; texts.len()];
            let said = texts.into_iter().enumerate();
            let said = said.filter(|(_, text)| !text.trim().is_empty());
            let (places, texts): (Vec<usize>, Vec<String>) = said.unzip();
            let mut places = places.into_iter();
            for batch in batches(&texts) {
                let made = self.provider.vectors(batch, purpose).await?;
                self.check(&made)?;
                for (vector, place) in made.into_iter().zip(places.by_ref()) {
                    vectors[place] = vector;
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
                    "a vector of `{}` has {} numbers, not {expected}; check the model and the configured dimensions",
                    self.maker.model,
                    vector.len()
                );
                Err(self.provider.error(detail, false))
            }
        }
    }
}

/// How many texts, and how many bytes of them, are sent at once. Some servers take no more than 32.
const BATCH_TEXTS: usize = 32;
const BATCH_BYTES: usize = 256 * 1024;

/// The texts in their order; one that is too long for any batch is one of its own.
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

/// Whom we ask.
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
                masks: settings.masks,
                patience: settings.patience,
            }),
            wire,
            key_source: settings.key_source,
        }
    }

    async fn learn_dimensions(&self) -> Result<u32, EmbedError> {
        let probe = ["How long is a vector?".to_owned()];
        let vectors = self.vectors(&probe, EmbeddingPurpose::Query).await?;
        let length = vectors.first().map_or(0, Vec::len);
        let dimensions = u32::try_from(length).unwrap_or(u32::MAX);
        match dimensions {
            1..=MOST_DIMENSIONS => Ok(dimensions),
            _ => Err(self.error(format!("its vectors have {length} numbers"), false)),
        }
    }

    /// One vector for each text, in their order; their lengths are not looked at.
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
                Err(Trouble::Wrong(detail)) => return Err(self.error(detail, false)),
                Err(Trouble::Fault(fault)) => fault,
            };
            match worth_waiting(&fault, tries, PAUSE) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(self.explain(fault)),
            }
        }
    }

    async fn ask(&self, request: &WireRequest, count: usize) -> Result<Vec<Vec<f32>>, Trouble> {
        let response = self.endpoint.post(request).await?;
        let body = self.endpoint.body(response).await?;
        self.wire.read(&body, count)
    }

    fn explain(&self, fault: ModelFault) -> EmbedError {
        let is_passing = fault.is_passing();
        let is_of_the_key = matches!(fault, ModelFault::NoKey { .. } | ModelFault::BadKey { .. });
        let detail = match fault {
            ModelFault::ContextTooLong { detail, .. } => {
                format!("a text is too long for `{}`: {detail}", self.wire.model)
            }
            other => other.to_string(),
        };
        let mut error = self.error(detail, is_passing);
        if is_of_the_key {
            error.detail += &format!(" (the key: {})", self.key_source);
        }
        error
    }

    /// The error as it is told. Some providers repeat the key that they refuse; it must go no further.
    fn error(&self, mut detail: String, is_passing: bool) -> EmbedError {
        self.endpoint.masks.mask_string(&mut detail);
        EmbedError {
            provider: self.id.clone(),
            detail,
            is_passing,
        }
    }
}
