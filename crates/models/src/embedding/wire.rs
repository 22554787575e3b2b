//! The request and reply formats of the embedding providers, without any HTTP.
//!
//! A malformed reply may be a transient fault. A well-formed reply without the requested vectors is not retried,
//! because the next one would be the same.

use super::EmbeddingKind;
use crate::http::Headers;
use crate::provider::with_version;
use crate::wire::{WireRequest, excerpt};
use crate::{fault, gemini, openai};
use lango_core::{EmbeddingPurpose, ModelFault};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

/// Why a request for vectors failed.
#[derive(Debug)]
pub(super) enum EmbeddingFailure {
    /// A fault of the connection or the provider, which may be transient.
    Fault(ModelFault),
    /// The reply does not contain the requested vectors. A retry does not help.
    WrongReply(String),
}

impl From<ModelFault> for EmbeddingFailure {
    fn from(fault: ModelFault) -> Self {
        Self::Fault(fault)
    }
}

/// The wire format for one embedding model.
pub(super) struct Wire {
    pub kind: EmbeddingKind,
    pub model: String,
    /// The dimensions to request, if configured.
    pub dimensions: Option<u32>,
}

impl Wire {
    /// Completes the address that the user wrote: adds the version path; for Ollama removes `/v1` or `/api`.
    pub(super) fn base_url(&self, base_url: &str) -> String {
        match self.kind {
            EmbeddingKind::OpenAi => with_version(base_url, "/v1"),
            EmbeddingKind::Gemini => with_version(base_url, "/v1beta"),
            EmbeddingKind::Ollama => {
                let plain = base_url.trim_end_matches('/');
                let ending = ["/v1", "/api"];
                let shorter = ending.iter().find_map(|ending| plain.strip_suffix(ending));
                shorter.unwrap_or(plain).to_owned()
            }
        }
    }

    pub(super) fn headers(kind: EmbeddingKind, key: Option<&str>) -> Headers {
        match kind {
            EmbeddingKind::OpenAi | EmbeddingKind::Ollama => openai::headers(key),
            EmbeddingKind::Gemini => gemini::headers(key),
        }
    }

    pub(super) fn request(&self, texts: &[String], purpose: EmbeddingPurpose) -> WireRequest {
        match self.kind {
            EmbeddingKind::OpenAi => self.list_request("/embeddings", texts),
            EmbeddingKind::Ollama => self.list_request("/api/embed", texts),
            EmbeddingKind::Gemini => {
                let model = self.model.trim_start_matches("models/");
                let request = |text: &String| self.gemini_request(model, text, purpose);
                let requests: Vec<Value> = texts.iter().map(request).collect();
                WireRequest {
                    path: format!("/models/{model}:batchEmbedContents"),
                    body: json!({ "requests": requests }).into(),
                }
            }
        }
    }

    /// Parses the vectors of a reply, in the order of the texts.
    pub(super) fn read(&self, body: &str, count: usize) -> Result<Vec<Vec<f32>>, EmbeddingFailure> {
        let vectors = match self.kind {
            EmbeddingKind::OpenAi => in_order(parse::<OpenAiReply>(body)?.data)?,
            EmbeddingKind::Ollama => parse::<OllamaReply>(body)?.embeddings,
            EmbeddingKind::Gemini => {
                let embeddings = parse::<GeminiReply>(body)?.embeddings.into_iter();
                embeddings.map(|embedding| embedding.values).collect()
            }
        };
        if vectors.len() != count {
            let received = vectors.len();
            let detail = format!("its reply has {received} vectors for {count} texts");
            return Err(EmbeddingFailure::WrongReply(detail));
        }
        if vectors.iter().flatten().any(|number| !number.is_finite()) {
            let detail = "a vector contains a value that is not a finite number";
            return Err(EmbeddingFailure::WrongReply(detail.to_owned()));
        }
        Ok(vectors)
    }

    fn list_request(&self, path: &str, texts: &[String]) -> WireRequest {
        let mut body = json!({ "model": self.model, "input": texts });
        // Name the format, because servers differ in their default.
        if self.kind == EmbeddingKind::OpenAi {
            body["encoding_format"] = json!("float");
        }
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = json!(dimensions);
        }
        WireRequest {
            path: path.to_owned(),
            body: body.into(),
        }
    }

    fn gemini_request(&self, model: &str, text: &str, purpose: EmbeddingPurpose) -> Value {
        let task = match purpose {
            EmbeddingPurpose::Document => "RETRIEVAL_DOCUMENT",
            EmbeddingPurpose::Query => "RETRIEVAL_QUERY",
        };
        let mut request = json!({
            "model": format!("models/{model}"),
            "content": { "parts": [{ "text": text }] },
            "taskType": task,
        });
        if let Some(dimensions) = self.dimensions {
            request["outputDimensionality"] = json!(dimensions);
        }
        request
    }
}

#[derive(Deserialize)]
struct OpenAiReply {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    /// The index of its text. Some servers leave it out and return the vectors in order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct GeminiReply {
    embeddings: Vec<GeminiVector>,
}

#[derive(Deserialize)]
struct GeminiVector {
    values: Vec<f32>,
}

#[derive(Deserialize)]
struct OllamaReply {
    embeddings: Vec<Vec<f32>>,
}

/// Sorts the vectors by their index.
fn in_order(rows: Vec<OpenAiVector>) -> Result<Vec<Vec<f32>>, EmbeddingFailure> {
    let mut slots: Vec<Option<Vec<f32>>> = Vec::new();
    slots.resize_with(rows.len(), || None);
    for (at, row) in rows.into_iter().enumerate() {
        let index = row.index.unwrap_or(at);
        let slot = slots.get_mut(index).filter(|slot| slot.is_none());
        let slot = slot.ok_or_else(|| {
            EmbeddingFailure::WrongReply(format!(
                "index {index} of a vector in its reply is a duplicate or too high"
            ))
        })?;
        *slot = Some(row.embedding);
    }
    Ok(slots.into_iter().flatten().collect())
}

#[derive(Deserialize)]
struct ErrorInside {
    error: Option<Value>,
}

fn parse<T: DeserializeOwned>(body: &str) -> Result<T, EmbeddingFailure> {
    let problem = match serde_json::from_str::<T>(body) {
        Ok(reply) => return Ok(reply),
        Err(problem) => problem,
    };
    if let Ok(ErrorInside { error: Some(error) }) = serde_json::from_str(body) {
        return Err(fault::of_error_object(&error).into());
    }
    let detail = excerpt(&format!("{problem}: {}", excerpt(body)));
    if serde_json::from_str::<IgnoredAny>(body).is_ok() {
        let detail = format!("its reply contains no vectors: {detail}");
        Err(EmbeddingFailure::WrongReply(detail))
    } else {
        Err(ModelFault::Malformed { detail }.into())
    }
}
