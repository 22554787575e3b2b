//! Reasoning that must be sent back to the server in the next request. It has two forms: `reasoning_content`, a text
//! (DeepSeek, Moonshot and others, which refuse a tool call without it), and `reasoning_details`, a list whose signed
//! entries must stay unchanged (OpenRouter).

use crate::wire::ReplyBudget;
use lango_core::ModelFault;
use serde_json::{Map, Value, json};

/// The reasoning of one reply.
#[derive(Default)]
pub(super) struct Reasoning {
    content: String,
    details: Vec<Value>,
}

impl Reasoning {
    /// Adds the reasoning in a `delta` or a `message`.
    pub(super) fn add(
        &mut self,
        message: &Value,
        budget: &mut ReplyBudget,
    ) -> Result<(), ModelFault> {
        let content = message["reasoning_content"].as_str().unwrap_or_default();
        budget.add(&mut self.content, content)?;
        for detail in message["reasoning_details"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.add_detail(budget.copy(detail)?);
        }
        Ok(())
    }

    /// Adds an entry, or a piece of one: pieces with the same type and index belong together.
    fn add_detail(&mut self, piece: Value) {
        let is_same = |entry: &&mut Value| {
            entry["type"] == piece["type"]
                && entry["index"] == piece["index"]
                && piece["index"].is_u64()
        };
        match (self.details.iter_mut().rev().find(is_same), piece) {
            (Some(entry), Value::Object(piece)) => merge(entry, piece),
            (_, piece) => self.details.push(piece),
        }
    }

    /// Returns the fields to send back with the message.
    pub(super) fn fields(self) -> Option<Value> {
        if !self.details.is_empty() {
            return Some(json!({ "reasoning_details": self.details }));
        }
        (!self.content.is_empty()).then(|| json!({ "reasoning_content": self.content }))
    }
}

/// Returns how many bytes of reasoning a `delta` has. Servers send the same text in several fields.
pub(super) fn output_bytes(message: &Value) -> usize {
    let length = |text: &Value| text.as_str().map_or(0, str::len);
    let fields = ["reasoning_content", "reasoning"].map(|field| length(&message[field]));
    let details = message["reasoning_details"].as_array();
    let details = details.into_iter().flatten();
    let details = details.map(|detail| length(&detail["text"]) + length(&detail["summary"]));
    fields.into_iter().max().unwrap_or(0).max(details.sum())
}

/// Merges a piece into its entry: appends to text fields and overwrites all others.
fn merge(entry: &mut Value, piece: Map<String, Value>) {
    const GROWING: [&str; 3] = ["text", "summary", "data"];
    for (field, value) in piece {
        match (&mut entry[&field], value) {
            (_, Value::Null) => {}
            (Value::String(text), Value::String(more)) if GROWING.contains(&field.as_str()) => {
                text.push_str(&more);
            }
            (old, value) => *old = value,
        }
    }
}
