//! Reads a reply of the chat completions API, streamed or not.

use super::reasoning::{self, Reasoning};
use super::think::ThinkFilter;
use super::{KIND, stop, usage};
use crate::fault;
use crate::names::Names;
use crate::wire::{self, MAX_CALLS, ReplyBudget, ReplyReader};
use lango_core::{
    Call, CallId, ModelEvent, ModelFault, ModelReply, ModelRequest, OpaqueData, StopReason, Usage,
};
use serde_json::Value;
use std::sync::Arc;

pub(super) struct Reader {
    names: Names,
    budget: ReplyBudget,
    text: String,
    thinking: ThinkFilter,
    calls: Vec<PartialCall>,
    usage: Usage,
    reasoning: Reasoning,
    refusal: String,
    stop: Option<StopReason>,
    is_done: bool,
}

/// A call whose arguments are still arriving.
#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Reader {
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::of(request),
            budget: ReplyBudget::new(),
            text: String::new(),
            thinking: ThinkFilter::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            reasoning: Reasoning::default(),
            refusal: String::new(),
            stop: None,
            is_done: false,
        }
    }

    /// Reads a `delta` of a stream, or the `message` of a reply that is not streamed.
    fn message(&mut self, message: &Value) -> Result<Option<ModelEvent>, ModelFault> {
        self.reasoning.add(message, &mut self.budget)?;
        let left = self.budget.left();
        let refusal = message["refusal"].as_str().unwrap_or_default();
        self.budget.add(&mut self.refusal, refusal)?;
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.tool_call(call)?;
        }
        let hidden = reasoning::output_bytes(message) + left - self.budget.left();
        let piece = text_of(&message["content"]);
        let content = self.thinking.pass(&piece);
        self.budget.add(&mut self.text, &content)?;
        Ok(wire::output_event(content, hidden + piece.len()))
    }

    /// Reads one piece of a call. A new id starts a new call, even if its index was used before: some servers number
    /// every parallel call 0. A new index starts a new call too, even if its id was used before. A piece without an id
    /// belongs to the call with its index, or to the last call if it has no index.
    fn tool_call(&mut self, piece: &Value) -> Result<(), ModelFault> {
        let index = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let name = piece["function"]["name"].as_str().unwrap_or_default();
        let known = self.calls.iter().rposition(|call| {
            (id.is_empty() || call.id == id) && (index.is_none() || call.index == index)
        });
        let is_new = known
            .is_none_or(|at| id.is_empty() && !name.is_empty() && !self.calls[at].name.is_empty());
        if is_new {
            if self.calls.len() == MAX_CALLS {
                return Err(ModelFault::Malformed {
                    detail: format!("more than {MAX_CALLS} calls"),
                });
            }
            let mut call = PartialCall {
                index,
                ..PartialCall::default()
            };
            self.budget.add(&mut call.id, id)?;
            self.calls.push(call);
        }
        let at = known.filter(|_| !is_new).unwrap_or(self.calls.len() - 1);
        let call = &mut self.calls[at];
        if call.name.is_empty() {
            self.budget.add(&mut call.name, name)?;
        }
        match &piece["function"]["arguments"] {
            Value::String(arguments) => self.budget.add(&mut call.arguments, arguments),
            Value::Null => Ok(()),
            // Some servers send an object instead of a string.
            other => self.budget.add(&mut call.arguments, &other.to_string()),
        }
    }

    /// Reads the fields around the message: error, usage and finish reason.
    fn envelope(&mut self, body: &Value) -> Result<(), ModelFault> {
        let choice = first_choice(body);
        for error in [&body["error"], &choice["error"]] {
            if !error.is_null() {
                return Err(fault::of_error_object(error));
            }
        }
        // Groq has the usage in its own object, Moonshot in the choice.
        let candidates = [&body["usage"], &body["x_groq"]["usage"], &choice["usage"]];
        if let Some(usage) = candidates.into_iter().find(|usage| usage.is_object()) {
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
        // Some servers end a stream with the complete message instead of the last piece.
        let delta = choice.get("delta").or_else(|| choice.get("message"));
        self.message(delta.unwrap_or(&Value::Null))
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelFault> {
        let body = wire::parse(body)?;
        self.envelope(&body)?;
        let message = &first_choice(&body)["message"];
        // After a content filter the finish reason may be all that is left.
        let is_filtered = matches!(self.stop, Some(StopReason::Filtered { .. }));
        if !message.is_object() && !is_filtered {
            return Err(ModelFault::Malformed {
                detail: "it contains no choice".to_owned(),
            });
        }
        self.is_done = true;
        self.message(message).map(|_| ())
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault> {
        let mut reader = *self;
        reader.text.push_str(&reader.thinking.finish());
        if !reader.is_done && reader.stop.is_none() {
            return Err(ModelFault::Incomplete);
        }
        let stop = reader.stop.unwrap_or_default();
        let is_empty = reader.text.trim().is_empty() && reader.calls.is_empty();
        if is_empty {
            wire::check_refusal(&stop, &reader.refusal)?;
        }
        let names = reader.names;
        let call = |call: PartialCall| Call {
            id: CallId::new(call.id),
            name: names.original(&call.name).into(),
            arguments: wire::arguments(call.arguments),
        };
        let opaque = reader.reasoning.fields().map(|fields| OpaqueData {
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

/// Returns the choice with index 0. A chunk of a stream may contain only other choices.
fn first_choice(body: &Value) -> &Value {
    let mut choices = body["choices"].as_array().into_iter().flatten();
    let is_first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
    choices.find(is_first).unwrap_or(&Value::Null)
}

/// Returns the text of a content, which is a string or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}
