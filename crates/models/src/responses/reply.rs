//! Reads a reply of the Responses API, streamed or not.

use super::KIND;
use super::output::{ItemRef, Output};
use super::replay::{is_call, items_to_replay};
use crate::fault;
use crate::names::Names;
use crate::wire::{self, ReplyReader};
use lango_core::{
    Call, CallId, ModelEvent, ModelFault, ModelReply, ModelRequest, OpaqueData, StopReason, Usage,
};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct Reader {
    names: Names,
    output: Output,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Reader {
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::of(request),
            output: Output::new(request.answer_schema.is_some()),
            usage: Usage::default(),
            stop: None,
        }
    }

    /// Reads the response object at the end. Returns the text that was not shown yet.
    fn end(&mut self, response: &Value) -> Result<String, ModelFault> {
        if !response["error"].is_null() {
            return Err(failure(&response["error"]));
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        self.stop = Some(match (response["status"].as_str(), reason) {
            (Some("failed"), _) => return Err(failure(&json!("the response failed"))),
            (Some("cancelled" | "in_progress" | "queued"), _) => {
                return Err(ModelFault::Incomplete);
            }
            (Some("incomplete"), reason) => incomplete(reason),
            _ => StopReason::Finished,
        });
        if response["usage"].is_object() {
            self.usage = usage(&response["usage"]);
        }
        let items = response["output"].as_array();
        self.output.finish_all(items.map_or(&[], Vec::as_slice))
    }

    /// Reads one event of a stream. Returns the text to show.
    fn event(&mut self, event: &Value) -> Result<String, ModelFault> {
        let message = ItemRef::of_event(event, "message");
        let call = ItemRef::of_event(event, "function_call");
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let index = event["output_index"].as_u64();
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => self.output.begin(&event["item"], index)?,
            "response.output_item.done" => return self.output.finish(&event["item"], index),
            "response.output_text.delta" => return self.output.add_text(&message, text("delta")),
            "response.output_text.done" => return self.output.finish_text(&message, text("text")),
            "response.refusal.delta" => self.output.add_refusal(&message, text("delta"))?,
            "response.function_call_arguments.delta" => {
                self.output.add_arguments(&call, text("delta"))?;
            }
            "response.function_call_arguments.done" => {
                self.output.finish_arguments(&call, text("arguments"))?;
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                return self.end(&event["response"]);
            }
            "error" if event["error"].is_null() => return Err(failure(event)),
            _ if !event["error"].is_null() => return Err(failure(&event["error"])),
            _ => {}
        }
        Ok(String::new())
    }
}

impl ReplyReader for Reader {
    fn frame(&mut self, data: &str) -> Result<Option<ModelEvent>, ModelFault> {
        if data.trim() == "[DONE]" {
            self.stop.get_or_insert_default();
            return Ok(None);
        }
        let event = wire::parse(data)?;
        let shown = self.event(&event)?;
        // Pieces of arguments, reasoning or a refusal.
        let hidden = event["delta"].as_str().map_or(0, str::len);
        Ok(wire::output_event(shown, hidden))
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelFault> {
        let body = wire::parse(body)?;
        if body["error"].is_null() && !body["output"].is_array() {
            return Err(ModelFault::Malformed {
                detail: "it contains no output".to_owned(),
            });
        }
        self.end(&body).map(|_| ())
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn has_ended(&self) -> bool {
        self.is_complete()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault> {
        let stop = self.stop.ok_or(ModelFault::Incomplete)?;
        let (text, refusal, items) = self.output.into_parts();
        let calls = items.iter().filter(|item| is_call(item));
        let calls: Vec<Call> = calls.map(|item| call(item, &self.names)).collect();
        if text.trim().is_empty() && calls.is_empty() {
            wire::check_refusal(&stop, &refusal)?;
        }
        let opaque = items_to_replay(items).map(|items| OpaqueData {
            kind: KIND.into(),
            model: None,
            data: Arc::new(Value::from(items)),
        });
        Ok(ModelReply {
            text,
            calls,
            usage: self.usage,
            stop,
            opaque,
            ..ModelReply::default()
        })
    }
}

fn call(item: &Value, names: &Names) -> Call {
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    let id = Some(text("call_id")).filter(|id| !id.is_empty());
    let arguments = match &item["arguments"] {
        Value::String(arguments) => arguments.clone(),
        Value::Null => String::new(),
        // Some servers send an object instead of a string.
        other => other.to_string(),
    };
    Call {
        id: CallId::from(id.unwrap_or(text("id"))),
        name: names.original(text("name")).into(),
        arguments: wire::arguments(arguments),
    }
}

fn incomplete(reason: Option<&str>) -> StopReason {
    let detail = match reason {
        // Servers that give no reason have no content filter, so it must be the limit.
        None | Some("max_output_tokens" | "max_tokens" | "length") => {
            return StopReason::OutputLimit;
        }
        Some("content_filter") => "the provider's content filter stopped it".to_owned(),
        Some(reason) => format!("the provider stopped it ({})", wire::excerpt(reason)),
    };
    StopReason::Filtered {
        detail: detail.into(),
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input_tokens: number("/input_tokens"),
        cached_tokens: number("/input_tokens_details/cached_tokens"),
        cache_write_tokens: number("/input_tokens_details/cache_write_tokens"),
        output_tokens: number("/output_tokens"),
        reasoning_tokens: number("/output_tokens_details/reasoning_tokens"),
    }
}

/// Returns the fault for an error inside a response. A bad prompt or image is a permanent fault.
fn failure(error: &Value) -> ModelFault {
    let code = error["code"].as_str().unwrap_or_default();
    let is_about_the_request =
        code == "invalid_prompt" || code.contains("image") || code.contains("policy");
    match fault::of_error_object(error) {
        ModelFault::Overloaded { detail, .. } if is_about_the_request => {
            ModelFault::Refused { detail }
        }
        fault => fault,
    }
}
