//! How a turn ended, in terms of OpenAI's protocols.

use super::error::ApiError;
use crate::protocol::pending_text;
use lango_core::{Outcome, Usage};
use lango_engine::TurnEnd;
use serde_json::{Value, json};

/// The result of a turn, as clients see it.
#[derive(Debug)]
pub(super) struct Completion {
    /// The answer, or lango's own message if there is none.
    pub text: String,
    pub ending: Ending,
    pub usage: Usage,
}

/// Why the text ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The text is the answer.
    Answered,
    /// A limit of the turn was reached.
    Limited,
    /// The turn waits for these approvals.
    Waiting(Vec<String>),
}

impl Completion {
    /// Reads the end of a turn. `usage` covers its model calls; it is needed only if the turn waits for approvals.
    pub(super) fn of(end: TurnEnd, usage: Usage) -> Result<Self, ApiError> {
        let report = match end {
            TurnEnd::Waiting(waiting) => {
                let ids = waiting.iter().map(|waiting| waiting.request.id.to_string());
                return Ok(Self {
                    text: pending_text(&waiting),
                    ending: Ending::Waiting(ids.collect()),
                    usage,
                });
            }
            TurnEnd::Finished(report) => report,
        };
        let ending = match &report.outcome {
            Outcome::Answered { limit: None } => Ending::Answered,
            Outcome::Answered { limit: Some(_) } | Outcome::Limited { .. } => Ending::Limited,
            Outcome::Failed { error, setup, .. } => {
                let code = if *setup {
                    "setup_needed"
                } else {
                    "turn_failed"
                };
                return Err(ApiError::turn_failed(error.to_string(), code));
            }
            Outcome::Cancelled => {
                let message = "the turn was cancelled".to_owned();
                return Err(ApiError::turn_failed(message, "turn_cancelled"));
            }
            Outcome::Interrupted => {
                let message = "the turn was interrupted and did not go on".to_owned();
                return Err(ApiError::turn_failed(message, "turn_interrupted"));
            }
        };
        Ok(Self {
            text: report.answer.as_deref().unwrap_or_default().to_owned(),
            ending,
            usage: report.usage,
        })
    }

    /// Returns the ids of pending approvals.
    pub(super) fn approvals(&self) -> Vec<String> {
        match &self.ending {
            Ending::Waiting(ids) => ids.clone(),
            Ending::Answered | Ending::Limited => Vec::new(),
        }
    }

    /// Returns the usage in the format of chat completions.
    pub(super) fn chat_usage(&self) -> Value {
        json!({
            "prompt_tokens": self.usage.input_tokens,
            "completion_tokens": self.usage.output_tokens,
            "total_tokens": self.usage.total(),
            "prompt_tokens_details": { "cached_tokens": self.usage.cached_tokens, "audio_tokens": 0 },
            "completion_tokens_details": { "reasoning_tokens": self.usage.reasoning_tokens, "audio_tokens": 0 },
        })
    }

    /// Returns the usage in the format of responses.
    pub(super) fn response_usage(&self) -> Value {
        json!({
            "input_tokens": self.usage.input_tokens,
            "input_tokens_details": {
                "cached_tokens": self.usage.cached_tokens,
                "cache_write_tokens": self.usage.cache_write_tokens,
            },
            "output_tokens": self.usage.output_tokens,
            "output_tokens_details": { "reasoning_tokens": self.usage.reasoning_tokens },
            "total_tokens": self.usage.total(),
        })
    }
}
