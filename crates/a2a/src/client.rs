//! Remote agents, which lango calls as sub-agents.
//!
//! A remote agent publishes a card, a JSON document that describes it. [`RemoteConnections`] reads the cards of all
//! configured agents concurrently, within one short timeout. A usable card becomes an [`A2aAgent`], which implements
//! [`RemoteAgent`](lango_core::RemoteAgent); an unusable one is [skipped](SkippedRemote) with a reason, and can be
//! retried in the background.
//!
//! Cards, answers and errors all come from untrusted servers. The client limits the size of everything that it reads,
//! sends a token only to the configured origin, whatever a card says, and ignores unknown or malformed fields instead
//! of failing a call.

mod agent;
mod call;
mod card;
mod card_error;
mod connect;
mod connections;
mod draft;
mod fetch;
mod files;
mod follow;
mod http;
mod masking;
mod origin;
mod outcome;
mod read;
mod refusal;
mod sanitize;
mod send;
mod settings;
mod slow_cards;
mod stream;
mod wire;

pub use agent::A2aAgent;
pub use card::Binding;
pub use card_error::{CardError, SkippedRemote};
pub use connect::connect;
pub use connections::RemoteConnections;
pub use reqwest::header::HeaderName;
pub use settings::{RemoteSettings, RemoteTimeouts};
pub use slow_cards::SlowCards;
