//! Reading a reply, streamed or whole.

use super::KIND;
use super::think::Thinking;
use crate::fault;
use crate::names::Names;
use crate::wire::{self, CALLS, ReplyReader, Room};
use lango_core::{Call, CallId, ModelEvent, ModelFault, ModelReply, ModelRequest, Opaque, Usage};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct Reader {
    names: Names,
    room: Room,
    text: String,
    thinking: Thinking,
    calls: Vec<PartialCall>,
    usage: Usage,
    /// What has to come back with the conversation.
    thoughts: Vec<Value>,
    refusal: String,
    finish_reason: Option<String>,
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
            thoughts: Vec::new(),
            refusal: String::new(),
            finish_reason: None,
            is_done: false,
        }
    }

    /// A `delta` of a stream, or the `message` of a whole reply.
    fn message(&mut self, message: &Value) -> Result<Option<ModelEvent>, ModelFault> {
        let refusal = message["refusal"].as_str().unwrap_or_default();
        self.room.add(&mut self.refusal, refusal)?;
        // OpenRouter's form of signed thoughts; it wants the list back as it was.
        if let Some(details) = message["reasoning_details"].as_array() {
            for detail in details {
                self.thoughts.push(self.room.keep(detail)?);
            }
        }
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

    fn usage(&mut self, usage: &Value) {
        let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        if usage.is_object() {
            self.usage = Usage {
                input_tokens: number("/prompt_tokens"),
                cached_tokens: number("/prompt_tokens_details/cached_tokens"),
                output_tokens: number("/completion_tokens"),
                reasoning_tokens: number("/completion_tokens_details/reasoning_tokens"),
                ..Usage::default()
            };
        }
    }
}

impl ReplyReader for Reader {
    fn frame(&mut self, data: &str) -> Result<Option<ModelEvent>, ModelFault> {
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(None);
        }
        let chunk = wire::parse(data)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(fault::inside(error));
        }
        self.usage(&chunk["usage"]);
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = Some(reason.to_owned());
        }
        self.message(&choice["delta"])
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelFault> {
        let body = wire::parse(body)?;
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Err(fault::inside(error));
        }
        let choice = &body["choices"][0];
        if !choice["message"].is_object() {
            return Err(ModelFault::Malformed {
                detail: "there is no choice in it".to_owned(),
            });
        }
        self.usage(&body["usage"]);
        self.finish_reason = choice["finish_reason"].as_str().map(str::to_owned);
        self.is_done = true;
        self.message(&choice["message"]).map(|_| ())
    }

    fn is_whole(&self) -> bool {
        self.is_done
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault> {
        let mut reader = *self;
        reader.text.push_str(&reader.thinking.rest());
        if !reader.is_done && reader.finish_reason.is_none() {
            return Err(ModelFault::CutOff);
        }
        let says_nothing = reader.text.trim().is_empty() && reader.calls.is_empty();
        if says_nothing
            && (reader.finish_reason.as_deref() == Some("content_filter")
                || !reader.refusal.is_empty())
        {
            return Err(ModelFault::Refused {
                detail: wire::beginning(&reader.refusal),
            });
        }
        let is_cut = matches!(
            reader.finish_reason.as_deref(),
            Some("length" | "content_filter")
        );
        let names = reader.names;
        let call = |call: PartialCall| Call {
            id: CallId::new(call.id),
            name: names.own(&call.name).into(),
            arguments: call.arguments.into(),
        };
        let opaque = (!reader.thoughts.is_empty()).then(|| Opaque {
            kind: KIND.into(),
            data: Arc::new(json!({ "reasoning_details": reader.thoughts })),
        });
        Ok(ModelReply {
            text: reader.text,
            calls: reader.calls.into_iter().map(call).collect(),
            usage: reader.usage,
            is_cut,
            opaque,
            ..ModelReply::default()
        })
    }
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
