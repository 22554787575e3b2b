//! Agents elsewhere, as sub-agents here.
//!
//! A remote agent is known by its card, a JSON document that it publishes. [`Remotes`] reads the cards of all that are
//! configured at once and within one short time-out; what is usable becomes an [`A2aAgent`], which is a
//! [`RemoteAgent`](lango_core::RemoteAgent), what is not is [left out](SkippedRemote) with the reason in plain words.
//! It keeps both, and tries again in the background for as long as it lives.
//!
//! Everything here was written by strangers: cards, answers, errors. All of it is read with bounds, nothing of it decides
//! where a token goes, and a field that is new or odd does not fail a call.

mod agent;
mod call;
mod card;
mod connect;
mod draft;
mod fault;
mod fetch;
mod files;
mod follow;
mod http;
mod masking;
mod names;
mod origin;
mod read;
mod refusal;
mod remotes;
mod sending;
mod settings;
mod slow_cards;
mod sse;
mod stream;
mod verdict;
mod wire;
mod words;

pub use agent::A2aAgent;
pub use card::Binding;
pub use connect::connect;
pub use fault::{CardFault, SkippedRemote};
pub use remotes::Remotes;
pub use reqwest::header::HeaderName;
pub use settings::{Patience, RemoteSettings};
pub use slow_cards::SlowCards;
