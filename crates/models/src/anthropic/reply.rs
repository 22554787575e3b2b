//! Reads a reply of the Messages API, streamed or not: blocks of text, thinking and tool use.

use super::KIND;
use crate::fault;
use crate::names::Names;
use crate::wire::{self, MAX_CALLS, ReplyBudget, ReplyReader};
use lango_core::{
    Call, CallId, ModelEvent, ModelFault, ModelReply, ModelRequest, OpaqueData, StopReason, Usage,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) struct Reader {
    names: Names,
    budget: ReplyBudget,
    blocks: Vec<Block>,
    usage: Usage,
    stop: Option<StopReason>,
    has_stopped: bool,
}

/// A block as announced, and the pieces that follow it.
struct Block {
    index: u64,
    value: Value,
    /// Text, thinking, or the JSON of a tool's input.
    pieces: String,
    signature: String,
}

impl Reader {
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::of(request),
            budget: ReplyBudget::new(),
            blocks: Vec::new(),
            usage: Usage::default(),
            stop: None,
            has_stopped: false,
        }
    }

    fn begin_block(&mut self, index: u64, value: &Value) -> Result<(), ModelFault> {
        if self.blocks.len() >= 4 * MAX_CALLS {
            return Err(ModelFault::Malformed {
                detail: "too many blocks".to_owned(),
            });
        }
        self.blocks.push(Block {
            index,
            value: self.budget.copy(value)?,
            pieces: String::new(),
            signature: String::new(),
        });
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value) -> Result<Option<ModelEvent>, ModelFault> {
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) else {
            return Err(ModelFault::Malformed {
                detail: format!("a piece of block {index}, which was never started"),
            });
        };
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        let piece = match delta["type"].as_str() {
            Some("text_delta") => {
                self.budget.add(&mut block.pieces, text("text"))?;
                return Ok(wire::output_event(text("text").to_owned(), 0));
            }
            Some("input_json_delta") => text("partial_json"),
            Some("thinking_delta") => text("thinking"),
            Some("signature_delta") => {
                self.budget.add(&mut block.signature, text("signature"))?;
                return Ok(None);
            }
            _ => return Ok(None),
        };
        self.budget.add(&mut block.pieces, piece)?;
        Ok(wire::output_event(String::new(), piece.len()))
    }

    /// Reads the stop reason from the last delta, or from the message of a reply that is not streamed.
    fn stop(&mut self, message: &Value) {
        self.stop = match message["stop_reason"].as_str() {
            None => return,
            Some("max_tokens" | "model_context_window_exceeded") => Some(StopReason::OutputLimit),
            Some("refusal") => {
                let explanation = message["stop_details"]["explanation"].as_str();
                let detail = match explanation.filter(|text| !text.is_empty()) {
                    Some(text) => format!("it refused: {}", wire::excerpt(text)),
                    None => "it refused to answer".to_owned(),
                };
                let detail = detail.trim_end_matches('.').into();
                Some(StopReason::Filtered { detail })
            }
            Some(_) => Some(StopReason::Finished),
        };
    }

    /// Reads token counts. They are cumulative, so the last report overwrites the earlier ones.
    fn usage(&mut self, usage: &Value) {
        let number = |name: &str| usage[name].as_u64();
        if let Some(fresh) = number("input_tokens") {
            let cached = number("cache_read_input_tokens").unwrap_or(0);
            self.usage.cached_tokens = cached;
            let written = number("cache_creation_input_tokens").unwrap_or(0);
            self.usage.cache_write_tokens = written;
            self.usage.input_tokens = fresh.saturating_add(cached).saturating_add(written);
        }
        if let Some(output) = number("output_tokens") {
            self.usage.output_tokens = output;
        }
        let thinking = &usage["output_tokens_details"]["thinking_tokens"];
        if let Some(thinking) = thinking.as_u64() {
            self.usage.reasoning_tokens = thinking;
        }
    }
}

impl ReplyReader for Reader {
    fn frame(&mut self, data: &str) -> Result<Option<ModelEvent>, ModelFault> {
        let event = wire::parse(data)?;
        let index = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str() {
            Some("message_start") => self.usage(&event["message"]["usage"]),
            Some("content_block_start") => self.begin_block(index, &event["content_block"])?,
            Some("content_block_delta") => return self.delta(index, &event["delta"]),
            Some("message_delta") => {
                self.usage(&event["usage"]);
                self.stop(&event["delta"]);
            }
            Some("message_stop") => self.has_stopped = true,
            Some("error") => return Err(fault::of_error_object(&event["error"])),
            _ => {}
        }
        Ok(None)
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelFault> {
        let body = wire::parse(body)?;
        if body["type"] == "error" {
            return Err(fault::of_error_object(&body["error"]));
        }
        let Some(content) = body["content"].as_array() else {
            return Err(ModelFault::Malformed {
                detail: "it contains no content".to_owned(),
            });
        };
        for (index, block) in content.iter().enumerate() {
            self.begin_block(index as u64, block)?;
        }
        self.usage(&body["usage"]);
        self.stop(&body);
        self.stop.get_or_insert_default();
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.has_stopped
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault> {
        let Some(stop) = self.stop else {
            return Err(ModelFault::Incomplete);
        };
        let mut reply = ModelReply {
            usage: self.usage,
            stop,
            ..ModelReply::default()
        };
        let mut blocks = Vec::new();
        for block in self.blocks {
            let arguments = block.arguments();
            let value = block.into_value();
            match value["type"].as_str() {
                Some("text") => {
                    reply
                        .text
                        .push_str(value["text"].as_str().unwrap_or_default());
                }
                Some("tool_use") => reply.calls.push(Call {
                    id: CallId::from(value["id"].as_str().unwrap_or_default()),
                    name: self
                        .names
                        .original(value["name"].as_str().unwrap_or_default())
                        .into(),
                    arguments: arguments.into(),
                }),
                _ => {}
            }
            // The API refuses empty text blocks.
            if value["type"] != "text"
                || !value["text"].as_str().unwrap_or_default().trim().is_empty()
            {
                blocks.push(value);
            }
        }
        if reply.text.trim().is_empty() && reply.calls.is_empty() {
            wire::check_refusal(&reply.stop, "")?;
        }
        let has_thinking = blocks
            .iter()
            .any(|block| !matches!(block["type"].as_str(), Some("text" | "tool_use")));
        reply.opaque = has_thinking.then(|| OpaqueData {
            kind: KIND.into(),
            model: None,
            data: Arc::new(Value::Array(blocks)),
        });
        Ok(reply)
    }
}

impl Block {
    /// Returns the arguments of a tool use as raw text, which may be incomplete JSON.
    fn arguments(&self) -> String {
        if !self.pieces.is_empty() {
            return self.pieces.clone();
        }
        match &self.value["input"] {
            Value::Null => "{}".to_owned(),
            input => input.to_string(),
        }
    }

    /// Builds the complete block from its pieces.
    fn into_value(mut self) -> Value {
        let field = match self.value["type"].as_str() {
            Some("text") => "text",
            Some("thinking") => "thinking",
            Some("tool_use") => {
                if !self.pieces.is_empty() {
                    let input: Map<String, Value> =
                        serde_json::from_str(&self.pieces).unwrap_or_default();
                    self.value["input"] = json!(input);
                }
                return self.value;
            }
            _ => return self.value,
        };
        if !self.pieces.is_empty() {
            let before = self.value[field].as_str().unwrap_or_default();
            self.value[field] = Value::from(format!("{before}{}", self.pieces));
        }
        if !self.signature.is_empty() {
            self.value["signature"] = Value::from(self.signature);
        }
        self.value
    }
}
