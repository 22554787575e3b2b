//! `offline/rules`: answers by a small table of rules and says so. It is the welcome mat, not the product.
//!
//! It knows nothing but the request: what it may do it reads out of the instruction and the functions it is offered, as a
//! model would. So it also proves that the instruction carries what a router needs.

mod agent;
mod orchestrator;
mod reading;
mod request;
mod routing;
mod rules;
mod small_talk;
mod words;

use futures_util::StreamExt;
use futures_util::stream;
use lango_core::{
    BoxStream, Call, CallId, Model, ModelError, ModelEvent, ModelReply, ModelRequest, ModelTerms,
    Price,
};
use request::Request;
use serde_json::Value;

/// The model that is always there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

impl Offline {
    /// Its name.
    pub const NAME: &'static str = "offline/rules";
}

impl Model for Offline {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn terms(&self) -> ModelTerms {
        ModelTerms {
            price: Some(Price::default()),
            context_tokens: None,
        }
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let reply = reply(&request).into_model_reply();
        let lines: Vec<_> = reply
            .text
            .split_inclusive('\n')
            .map(|line| Ok(ModelEvent::Text(line.to_owned())))
            .collect();
        stream::iter(lines.into_iter().chain([Ok(ModelEvent::Reply(reply))])).boxed()
    }
}

/// What the rules decide.
enum Decision {
    Say(String),
    Call(Vec<(&'static str, Value)>),
}

fn reply(request: &ModelRequest) -> Decision {
    let request = Request::read(request);
    if let Some(stopped) = request.stopped() {
        return Decision::Say(stopped);
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
        let call = |(name, arguments): (&str, Value)| Call {
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
