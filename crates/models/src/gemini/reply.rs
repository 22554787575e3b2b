//! Reads a reply of the Gemini API, streamed or not; both consist of the same parts.

use super::KIND;
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
    calls: Vec<Call>,
    /// All parts, unchanged.
    parts: Vec<Value>,
    usage: Usage,
    finish: Option<Finish>,
}

/// The provider's finish reason.
struct Finish {
    reason: String,
    message: Option<String>,
}

impl Finish {
    /// Describes the reason for users.
    fn sentence(&self) -> String {
        let reason = &self.reason;
        match &self.message {
            Some(message) => format!("it ended with {reason}: {message}"),
            None => format!("it ended with {reason}"),
        }
    }

    fn stop(&self) -> StopReason {
        match self.reason.as_str() {
            "STOP" | "FINISH_REASON_UNSPECIFIED" | "OTHER" => StopReason::Finished,
            "MAX_TOKENS" => StopReason::OutputLimit,
            _ => StopReason::Filtered {
                detail: self.sentence().trim_end_matches('.').into(),
            },
        }
    }
}

impl Reader {
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::of(request),
            budget: ReplyBudget::new(),
            text: String::new(),
            calls: Vec::new(),
            parts: Vec::new(),
            usage: Usage::default(),
            finish: None,
        }
    }

    fn part(&mut self, part: &Value) -> Result<String, ModelFault> {
        if self.parts.len() >= 65_536 || self.calls.len() >= MAX_CALLS {
            return Err(ModelFault::Malformed {
                detail: "too many parts".to_owned(),
            });
        }
        self.parts.push(self.budget.copy(part)?);
        if let Some(call) = part.get("functionCall") {
            let arguments = if call["args"].is_null() {
                "{}".to_owned()
            } else {
                call["args"].to_string()
            };
            self.calls.push(Call {
                id: CallId::from(call["id"].as_str().unwrap_or_default()),
                name: self
                    .names
                    .original(call["name"].as_str().unwrap_or_default())
                    .into(),
                arguments: arguments.into(),
            });
        }
        let is_thought = part["thought"] == true;
        let text = part["text"]
            .as_str()
            .filter(|_| !is_thought)
            .unwrap_or_default();
        self.text.push_str(text);
        Ok(text.to_owned())
    }

    fn usage(&mut self, usage: &Value) {
        let number = |name: &str| usage[name].as_u64().unwrap_or(0);
        if usage.is_object() {
            let thoughts = number("thoughtsTokenCount");
            self.usage = Usage {
                input_tokens: number("promptTokenCount"),
                cached_tokens: number("cachedContentTokenCount"),
                output_tokens: number("candidatesTokenCount").saturating_add(thoughts),
                reasoning_tokens: thoughts,
                ..Usage::default()
            };
        }
    }
}

impl ReplyReader for Reader {
    fn frame(&mut self, data: &str) -> Result<Option<ModelEvent>, ModelFault> {
        let chunk = wire::parse(data)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(fault::of_error_object(error));
        }
        let feedback = &chunk["promptFeedback"];
        if let Some(reason) = feedback["blockReason"].as_str() {
            let message = feedback["blockReasonMessage"].as_str();
            return Err(ModelFault::Refused {
                detail: match message {
                    Some(message) => {
                        format!(
                            "the request was blocked ({reason}): {}",
                            wire::excerpt(message)
                        )
                    }
                    None => format!("the request was blocked: {reason}"),
                },
            });
        }
        self.usage(&chunk["usageMetadata"]);
        let candidate = &chunk["candidates"][0];
        let (mut text, mut hidden) = (String::new(), 0);
        for part in candidate["content"]["parts"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let calls = self.calls.len();
            text.push_str(&self.part(part)?);
            let new = self.calls[calls..].iter();
            hidden += new.map(|call| call.arguments.len()).sum::<usize>();
            hidden += part["text"].as_str().map_or(0, str::len);
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            let message = candidate["finishMessage"].as_str();
            self.finish = Some(Finish {
                reason: reason.to_owned(),
                message: message.map(wire::excerpt),
            });
        }
        Ok(wire::output_event(text, hidden))
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelFault> {
        // Without `alt=sse` a stream is a list of chunks.
        match wire::parse(body)? {
            Value::Array(chunks) => chunks
                .iter()
                .try_for_each(|chunk| self.frame(&chunk.to_string()).map(|_| ())),
            chunk
                if chunk["candidates"].is_array()
                    || chunk.get("error").is_some()
                    || chunk.get("promptFeedback").is_some() =>
            {
                self.frame(body).map(|_| ())
            }
            _ => Err(ModelFault::Malformed {
                detail: "it contains no candidate".to_owned(),
            }),
        }
    }

    /// Always false: text, usage and errors may follow the finish reason, so only the connection's end is the end.
    fn is_complete(&self) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault> {
        let reader = *self;
        let Some(finish) = reader.finish else {
            return Err(ModelFault::Incomplete);
        };
        let stop = finish.stop();
        if reader.text.trim().is_empty() && reader.calls.is_empty() {
            match finish.reason.as_str() {
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                    return Err(ModelFault::Malformed {
                        detail: finish.sentence(),
                    });
                }
                _ => wire::check_refusal(&stop, "")?,
            }
        }
        let is_signed = reader
            .parts
            .iter()
            .any(|part| part.get("thoughtSignature").is_some());
        let opaque = is_signed.then(|| OpaqueData {
            kind: KIND.into(),
            model: None,
            data: Arc::new(Value::Array(reader.parts)),
        });
        Ok(ModelReply {
            text: reader.text,
            calls: reader.calls,
            usage: reader.usage,
            stop,
            opaque,
            ..ModelReply::default()
        })
    }
}
