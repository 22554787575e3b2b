//! Reading a reply, streamed or whole.

use super::reasoning::Reasoning;
use super::think::Thinking;
use super::{KIND, stop, usage};
use crate::fault;
use crate::names::Names;
use crate::wire::{self, CALLS, ReplyReader, Room};
use lango_core::{
    Call, CallId, ModelEvent, ModelFault, ModelReply, ModelRequest, Opaque, StopReason, Usage,
};
use serde_json::Value;
use std::sync::Arc;

pub(super) struct Reader {
    names: Names,
    room: Room,
    text: String,
    thinking: Thinking,
    calls: Vec<PartialCall>,
    usage: Usage,
    reasoning: Reasoning,
    refusal: String,
    stop: Option<StopReason>,
    is_done: bool,
}

/// A call whose arguments are still coming.
#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Reader {
    pub fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::of(request),
            room: Room::new(),
            text: String::new(),
            thinking: Thinking::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            reasoning: Reasoning::default(),
            refusal: String::new(),
            stop: None,
            is_done: false,
        }
    }

    /// A `delta` of a stream, or the `message` of a whole reply.
    fn message(&mut self, message: &Value) -> Result<Option<ModelEvent>, ModelFault> {
        let refusal = message["refusal"].as_str().unwrap_or_default();
        self.room.add(&mut self.refusal, refusal)?;
        self.reasoning.add(message, &mut self.room)?;
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.tool_call(call)?;
        }
        let content = self.thinking.pass(&words(&message["content"]));
        self.room.add(&mut self.text, &content)?;
        Ok((!content.is_empty()).then_some(ModelEvent::Text(content)))
    }

    /// One piece of a call. A new id begins a new call, also under an index that was used before: some servers number
    /// every parallel call 0. So does a new index under an id that was used before. A piece without an id belongs to the
    /// call of its index, else to the last one.
    fn tool_call(&mut self, piece: &Value) -> Result<(), ModelFault> {
        let index = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let name = piece["function"]["name"].as_str().unwrap_or_default();
        let known = self.calls.iter().rposition(|call| match id.is_empty() {
            true => index.is_none() || call.index == index,
            false => call.id == id && (index.is_none() || call.index == index),
        });
        let begins = known
            .is_none_or(|at| id.is_empty() && !name.is_empty() && !self.calls[at].name.is_empty());
        if begins {
            if self.calls.len() == CALLS {
                return Err(ModelFault::Malformed {
                    detail: format!("more than {CALLS} calls"),
                });
            }
            let mut call = PartialCall {
                index,
                ..PartialCall::default()
            };
            self.room.add(&mut call.id, id)?;
            self.calls.push(call);
        }
        let at = known.filter(|_| !begins).unwrap_or(self.calls.len() - 1);
        let call = &mut self.calls[at];
        if call.name.is_empty() {
            self.room.add(&mut call.name, name)?;
        }
        match &piece["function"]["arguments"] {
            Value::String(arguments) => self.room.add(&mut call.arguments, arguments),
            Value::Null => Ok(()),
            // Some servers send the object itself.
            other => self.room.add(&mut call.arguments, &other.to_string()),
        }
    }

    /// Reads what surrounds the message: an error, the usage, the reason of the end.
    fn envelope(&mut self, body: &Value) -> Result<(), ModelFault> {
        let choice = first_choice(body);
        for error in [&body["error"], &choice["error"]] {
            if !error.is_null() {
                return Err(fault::inside(error));
            }
        }
        // Beside the choices, in Groq's own object, or in the choice (Moonshot).
        let places = [&body["usage"], &body["x_groq"]["usage"], &choice["usage"]];
        if let Some(usage) = places.into_iter().find(|usage| usage.is_object()) {
            self.usage = usage::read(usage);
        }
        if let Some(stop) = stop::reason(choice) {
            self.stop = Some(stop);
        }
        Ok(())
    }
}

impl ReplyReader for Reader {
    fn frame(&mut self, data: &str) -> Result<Option<ModelEvent>, ModelFault> {
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(None);
        }
        let chunk = wire::parse(data)?;
        self.envelope(&chunk)?;
        let choice = first_choice(&chunk);
        // Some servers close a stream with the whole message in place of the last piece.
        let delta = choice.get("delta").or_else(|| choice.get("message"));
        self.message(delta.unwrap_or(&Value::Null))
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelFault> {
        let body = wire::parse(body)?;
        self.envelope(&body)?;
        let message = &first_choice(&body)["message"];
        // A content filter may leave nothing but its reason.
        let is_filtered = matches!(self.stop, Some(StopReason::Filtered { .. }));
        if !message.is_object() && !is_filtered {
            return Err(ModelFault::Malformed {
                detail: "there is no choice in it".to_owned(),
            });
        }
        self.is_done = true;
        self.message(message).map(|_| ())
    }

    fn is_whole(&self) -> bool {
        self.is_done
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault> {
        let mut reader = *self;
        reader.text.push_str(&reader.thinking.rest());
        if !reader.is_done && reader.stop.is_none() {
            return Err(ModelFault::CutOff);
        }
        let stop = reader.stop.unwrap_or_default();
        let says_nothing = reader.text.trim().is_empty() && reader.calls.is_empty();
        if says_nothing {
            wire::refusal(&stop, &reader.refusal)?;
        }
        let names = reader.names;
        let call = |call: PartialCall| Call {
            id: CallId::new(call.id),
            name: names.own(&call.name).into(),
            arguments: wire::arguments(call.arguments),
        };
        let opaque = reader.reasoning.fields().map(|fields| Opaque {
            kind: KIND.into(),
            model: None,
            data: Arc::new(fields),
        });
        Ok(ModelReply {
            text: reader.text,
            calls: reader.calls.into_iter().map(call).collect(),
            usage: reader.usage,
            stop,
            opaque,
            ..ModelReply::default()
        })
    }
}

/// The choice that counts. One chunk of a stream may hold nothing but another.
fn first_choice(body: &Value) -> &Value {
    let mut choices = body["choices"].as_array().into_iter().flatten();
    let is_first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
    choices.find(is_first).unwrap_or(&Value::Null)
}

/// Text, or a list of parts of which some are text.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}
