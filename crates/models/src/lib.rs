//! The models lango can ask.
//!
//! A [`Provider`] is an address and a wire: OpenAI's Responses, its older chat completions, which very many servers speak,
//! Anthropic's messages, or Gemini. [`Resilient`] asks again when a fault may pass, and others in a model's place.
//! [`Offline`] is always there: fixed rules, no AI, no key, no network. It reads the routing table out of the instruction it
//! is sent, delegates, calls real tools and refuses what it cannot do, so that everything around a model can be tried.
//!
//! [`connect_embedder`] gives vectors of texts, from the same families of providers and over the same connections.

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
mod sse;
mod table;
mod wire;

pub use api::Api;
pub use embedding::{EmbeddingKind, EmbeddingSettings, connect_embedder};
pub use http::Patience;
pub use known::{KnownProvider, known_providers};
pub use masked::MaskedModel;
pub use offline::Offline;
pub use provider::{Kind, Provider, ProviderModel, ProviderSettings};
pub use resilient::Resilient;
pub use table::{ModelFacts, facts_of, is_version_of, models_of};
