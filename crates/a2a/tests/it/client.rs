//! Tests of the client: cards, calls and failures. They use scripted servers on loopback, which can also misbehave.

mod answers;
mod calls;
mod cards;
mod connections;
mod echoes;
mod failures;
mod headers;
mod replies;
pub(crate) mod script;
mod streams;
pub(crate) mod support;
