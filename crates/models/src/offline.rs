//! `offline/rules`: the demo model. It answers from a small table of rules and says so.
//!
//! It sees only the request, as a real model would: the instruction and the offered functions tell it what it can do.
//! So it also shows that the instruction contains everything a router needs.

mod agent;
mod answer;
mod clause;
mod extract;
mod orchestrator;
mod parts;
mod plan;
mod request;
mod routing;
mod rules;
mod small_talk;
mod steps;
mod suggestions;
mod verbatim;

use futures_util::StreamExt;
use futures_util::stream;
use lango_core::{
    BoxStream, Call, CallId, Model, ModelError, ModelEvent, ModelInfo, ModelReply, ModelRequest,
    Price,
};
use request::Request;
use serde_json::Value;

/// The rule-based model that needs no key and no network.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineModel;

impl OfflineModel {
    pub const NAME: &'static str = "offline/rules";

    /// Returns three phrases that work in any folder and need no approval, as the greeting suggests them to the default
    /// team.
    pub fn examples() -> [&'static str; 3] {
        suggestions::examples()
    }
}

impl Model for OfflineModel {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn info(&self) -> ModelInfo {
        ModelInfo {
            price: Some(Price::default()),
            context_tokens: None,
        }
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let reply = reply(&request).into_model_reply();
        let pieces: Vec<_> = pieces(&reply.text)
            .map(|piece| Ok(ModelEvent::Text(piece.to_owned())))
            .collect();
        stream::iter(pieces.into_iter().chain([Ok(ModelEvent::Reply(reply))])).boxed()
    }
}

/// Splits a text into pieces of a few words, as a model streams it. A long text has larger pieces, so that their number
/// stays small.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    const MIN_BYTES: usize = 20;
    const MAX_PIECES: usize = 200;
    let length = MIN_BYTES.max(text.len() / MAX_PIECES);
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.floor_char_boundary(length);
        let end = rest[start..]
            .find(char::is_whitespace)
            .map_or(rest.len(), |at| start + at + 1);
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(end));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The reply that the rules choose: text, or function calls with their arguments.
enum Decision {
    Say(String),
    Call(Vec<(String, Value)>),
}

fn reply(request: &ModelRequest) -> Decision {
    let request = Request::read(request);
    if let Some(message) = request.stop_message() {
        return Decision::Say(message);
    }
    match routing::Table::read(request.instruction) {
        Some(table) => orchestrator::decide(&request, &table),
        None => agent::decide(&request),
    }
}

impl Decision {
    fn into_model_reply(self) -> ModelReply {
        let (text, calls) = match self {
            Self::Say(text) => (text, Vec::new()),
            Self::Call(calls) => (String::new(), calls),
        };
        let call = |(name, arguments): (String, Value)| Call {
            id: CallId::from(""),
            name: name.into(),
            arguments: arguments.to_string().into(),
        };
        ModelReply {
            text,
            calls: calls.into_iter().map(call).collect(),
            cost_micros: Some(0),
            ..ModelReply::default()
        }
    }
}
