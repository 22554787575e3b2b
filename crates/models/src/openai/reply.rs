//! Reading a reply, streamed or whole.

use super::KIND;
use crate::names::Names;
use crate::wire::{self, CALLS, ReplyReader};
use lango_core::{Call, CallId, Function, ModelEvent, ModelFault, ModelReply, Opaque, Usage};
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) struct Reader {
    names: Names,
    text: String,
    calls: Vec<PartialCall>,
    usage: Usage,
    /// What has to come back with the conversation.
    kept: Map<String, Value>,
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
    pub fn new(functions: &[Function]) -> Self {
        Self {
            names: Names::of(functions),
            text: String::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            kept: Map::new(),
            refusal: String::new(),
            finish_reason: None,
            is_done: false,
        }
    }

    /// A `delta` of a stream, or the `message` of a whole reply.
    fn message(&mut self, message: &Value) -> Result<Option<ModelEvent>, ModelFault> {
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        wire::add(&mut self.refusal, text("refusal"))?;
        // OpenRouter's form of signed thoughts; it wants the list back as it was.
        if let Some(details) = message["reasoning_details"].as_array() {
            let kept = self
                .kept
                .entry("reasoning_details")
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Some(kept) = kept.as_array_mut()
                && kept.len() + details.len() <= 4096
            {
                kept.extend(details.iter().cloned());
            }
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.tool_call(call)?;
        }
        let content = text("content");
        wire::add(&mut self.text, content)?;
        Ok((!content.is_empty()).then(|| ModelEvent::Text(content.to_owned())))
    }

    /// One piece of a call. A new id begins a new call, also under an index that was used before: some servers number
    /// every parallel call 0. A piece without an id belongs to the call of its index, else to the last one.
    fn tool_call(&mut self, piece: &Value) -> Result<(), ModelFault> {
        let index = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let name = piece["function"]["name"].as_str().unwrap_or_default();
        let known = self.calls.iter().rposition(|call| match id.is_empty() {
            true => index.is_none() || call.index == index,
            false => call.id == id,
        });
        let begins = known
            .is_none_or(|at| id.is_empty() && !name.is_empty() && !self.calls[at].name.is_empty());
        if begins {
            if self.calls.len() == CALLS {
                return Err(ModelFault::Malformed {
                    detail: format!("more than {CALLS} calls"),
                });
            }
            self.calls.push(PartialCall {
                index,
                id: id.to_owned(),
                ..PartialCall::default()
            });
        }
        let at = known.filter(|_| !begins).unwrap_or(self.calls.len() - 1);
        let call = &mut self.calls[at];
        if call.name.is_empty() {
            wire::add(&mut call.name, name)?;
        }
        match &piece["function"]["arguments"] {
            Value::String(arguments) => wire::add(&mut call.arguments, arguments),
            Value::Null => Ok(()),
            // Some servers send the object itself.
            other => wire::add(&mut call.arguments, &other.to_string()),
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
            return Err(error_in_stream(error));
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
            return Err(error_in_stream(error));
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

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault> {
        let reader = *self;
        if !reader.is_done && reader.finish_reason.is_none() {
            return Err(ModelFault::CutOff);
        }
        let says_nothing = reader.text.trim().is_empty() && reader.calls.is_empty();
        if says_nothing
            && (reader.finish_reason.as_deref() == Some("content_filter") || !reader.refusal.is_empty())
        {
            return Err(ModelFault::Refused {
                detail: wire::beginning(&reader.refusal),
            });
        }
        let names = reader.names;
        let call = |call: PartialCall| Call {
            id: CallId::new(call.id),
            name: names.own(&call.name).into(),
            arguments: call.arguments.into(),
        };
        let opaque = (!reader.kept.is_empty()).then(|| Opaque {
            kind: KIND.into(),
            data: Arc::new(Value::Object(reader.kept)),
        });
        Ok(ModelReply {
            text: reader.text,
            calls: reader.calls.into_iter().map(call).collect(),
            usage: reader.usage,
            opaque,
            ..ModelReply::default()
        })
    }
}

fn error_in_stream(error: &Value) -> ModelFault {
    let message = error["message"]
        .as_str()
        .map_or_else(|| error.to_string(), str::to_owned);
    let detail = wire::beginning(&message);
    match error["code"].as_u64().or_else(|| error["status"].as_u64()) {
        Some(429) => ModelFault::RateLimited {
            retry_after_ms: None,
            detail,
        },
        Some(400..=499) => ModelFault::Refused { detail },
        _ => ModelFault::Overloaded { detail },
    }
}
