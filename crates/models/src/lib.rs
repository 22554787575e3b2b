//! The models that lango can call.
//!
//! A [`Provider`] is an address and a wire format: OpenAI's Responses API, the older chat completions API that most
//! servers speak, Anthropic's Messages API, or Gemini. [`ResilientModel`] retries transient faults and then falls back
//! to other models. [`OfflineModel`] is always available: fixed rules, no AI, no key, no network. It reads the routing
//! table in its instruction, delegates, calls real tools and rejects what it cannot do, so users can try everything
//! around the model.
//!
//! [`connect_embedder`] connects to an embedding model, over the same provider families and HTTP code.

mod anthropic;
mod api;
mod attachments;
mod embedding;
mod fault;
mod gemini;
mod http;
mod known;
mod masked;
mod names;
mod offline;
mod openai;
mod provider;
mod resilient;
mod responses;
mod schema;
mod table;
mod wire;

pub use api::OpenAiApi;
pub use embedding::{EmbeddingKind, EmbeddingSettings, connect_embedder};
pub use http::ProviderTimeouts;
pub use known::{KnownProvider, known_providers};
pub use masked::MaskedModel;
pub use offline::OfflineModel;
pub use provider::{Provider, ProviderFamily, ProviderModel, ProviderSettings};
pub use resilient::ResilientModel;
pub use table::{ModelFacts, facts_of, is_version_of, models_of};
