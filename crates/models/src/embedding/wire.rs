//! How each family of providers is asked for vectors, and how its reply is read. It knows nothing of connections.
//!
//! A reply that is no reply may be a passing fault; one that is well formed and holds something else than the vectors that
//! were asked for will hold it again.

use super::EmbeddingKind;
use crate::http::Headers;
use crate::provider::with_version;
use crate::wire::{WireRequest, beginning};
use crate::{fault, gemini, openai};
use lango_core::{EmbeddingPurpose, ModelFault};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

/// Why there are no vectors.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nobody answered well; some of this passes.
    Fault(ModelFault),
    /// Something else came than was asked for; this does not pass.
    Wrong(String),
}

impl From<ModelFault> for Trouble {
    fn from(fault: ModelFault) -> Self {
        Self::Fault(fault)
    }
}

/// How one model is asked.
pub(super) struct Wire {
    pub kind: EmbeddingKind,
    pub model: String,
    /// What the provider is asked for.
    pub dimensions: Option<u32>,
}

impl Wire {
    /// The address as people write it, with the version or without what is not Ollama's own.
    pub fn base_url(&self, base_url: &str) -> String {
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

    pub fn headers(kind: EmbeddingKind, key: Option<&str>) -> Headers {
        match kind {
            EmbeddingKind::OpenAi | EmbeddingKind::Ollama => openai::headers(key),
            EmbeddingKind::Gemini => gemini::headers(key),
        }
    }

    pub fn request(&self, texts: &[String], purpose: EmbeddingPurpose) -> WireRequest {
        match self.kind {
            EmbeddingKind::OpenAi => self.listed("/embeddings", texts),
            EmbeddingKind::Ollama => self.listed("/api/embed", texts),
            EmbeddingKind::Gemini => {
                let model = self.model.trim_start_matches("models/");
                let request = |text: &String| self.one_of_gemini(model, text, purpose);
                let requests: Vec<Value> = texts.iter().map(request).collect();
                WireRequest {
                    path: format!("/models/{model}:batchEmbedContents"),
                    body: json!({ "requests": requests }).into(),
                }
            }
        }
    }

    /// The vectors in a reply, in the order of the texts.
    pub fn read(&self, body: &str, count: usize) -> Result<Vec<Vec<f32>>, Trouble> {
        let vectors = match self.kind {
            EmbeddingKind::OpenAi => in_order(parse::<OpenAiReply>(body)?.data)?,
            EmbeddingKind::Ollama => parse::<OllamaReply>(body)?.embeddings,
            EmbeddingKind::Gemini => {
                let embeddings = parse::<GeminiReply>(body)?.embeddings.into_iter();
                embeddings.map(|embedding| embedding.values).collect()
            }
        };
        if vectors.len() != count {
            let (came, asked) = (vectors.len(), count);
            let detail = format!("its reply has {came} vectors, and {asked} texts were sent");
            return Err(Trouble::Wrong(detail));
        }
        if vectors.iter().flatten().any(|number| !number.is_finite()) {
            let detail = "a vector holds something that is no number, or one that is too large";
            return Err(Trouble::Wrong(detail.to_owned()));
        }
        Ok(vectors)
    }

    fn listed(&self, path: &str, texts: &[String]) -> WireRequest {
        let mut body = json!({ "model": self.model, "input": texts });
        // Servers that know only one format take this name of it; what they do without one differs.
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

    fn one_of_gemini(&self, model: &str, text: &str, purpose: EmbeddingPurpose) -> Value {
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
    /// Whose vector it is; some servers leave it out and keep the order.
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

/// The vectors by their index, whatever order they came in.
fn in_order(rows: Vec<OpenAiVector>) -> Result<Vec<Vec<f32>>, Trouble> {
    let mut places: Vec<Option<Vec<f32>>> = Vec::new();
    places.resize_with(rows.len(), || None);
    for (at, row) in rows.into_iter().enumerate() {
        let index = row.index.unwrap_or(at);
        let place = places.get_mut(index).filter(|place| place.is_none());
        let place = place.ok_or_else(|| {
            Trouble::Wrong(format!(
                "its reply has a vector of index {index} twice or too many"
            ))
        })?;
        *place = Some(row.embedding);
    }
    Ok(places.into_iter().flatten().collect())
}

#[derive(Deserialize)]
struct ErrorInside {
    error: Option<Value>,
}

fn parse<T: DeserializeOwned>(body: &str) -> Result<T, Trouble> {
    let problem = match serde_json::from_str::<T>(body) {
        Ok(reply) => return Ok(reply),
        Err(problem) => problem,
    };
    if let Ok(ErrorInside { error: Some(error) }) = serde_json::from_str(body) {
        return Err(fault::inside(&error).into());
    }
    let detail = beginning(&format!("{problem}: {}", beginning(body)));
    match serde_json::from_str::<IgnoredAny>(body).is_ok() {
        true => Err(Trouble::Wrong(format!(
            "its reply holds no vectors: {detail}"
        ))),
        false => Err(ModelFault::Malformed { detail }.into()),
    }
}
