//! The chunks of a chat completion.

use super::chat::{finish_reason, id};
use super::completion::Completion;
use super::error::ApiError;
use super::request::Subject;
use crate::problem::Problem;
use crate::protocol::{AnswerRemainder, Frames, Renderer, StreamedText};
use lango_core::Usage;
use lango_engine::{TurnEnd, TurnUpdate};
use serde_json::{Value, json};

/// Separates withdrawn text from the text after it.
const BREAK: &str = "\n\n";

/// A renderer that writes a turn as chunks of a chat completion.
pub(super) struct ChatStream {
    subject: Subject,
    with_usage: bool,
    /// Whether only the answer is streamed, because the client parses all of the text.
    is_answer_only: bool,
    text: StreamedText,
    /// Whether the next text needs a separator, because the text before it was withdrawn.
    needs_break: bool,
}

impl ChatStream {
    pub(super) fn new(subject: Subject, with_usage: bool, is_answer_only: bool) -> Self {
        Self {
            subject,
            with_usage,
            is_answer_only,
            text: StreamedText::default(),
            needs_break: false,
        }
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = json!({
            "id": id(&self.subject),
            "object": "chat.completion.chunk",
            "created": self.subject.created,
            "model": self.subject.model,
            "choices": choices,
        });
        if self.with_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn push_text(&mut self, text: &str, frames: &mut Frames) {
        if text.is_empty() {
            return;
        }
        let text = if std::mem::take(&mut self.needs_break) {
            format!("{BREAK}{text}")
        } else {
            text.to_owned()
        };
        let choices = choices(json!({ "content": text }), None);
        frames.push(None, &self.chunk(choices));
    }
}

fn choices(delta: Value, finish_reason: Option<&str>) -> Value {
    json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }])
}

impl Renderer for ChatStream {
    fn start(&mut self, frames: &mut Frames) {
        let delta = json!({ "role": "assistant", "content": "", "refusal": null });
        frames.push(None, &self.chunk(choices(delta, None)));
    }

    fn shown(&mut self, shown: &TurnUpdate, frames: &mut Frames) {
        match shown {
            TurnUpdate::Draft { author, text, .. } if !self.is_answer_only => {
                if !self.text.is_by(author) {
                    self.needs_break |= self.text.withdraw();
                }
                self.text.push(author, text);
                self.push_text(text, frames);
            }
            TurnUpdate::DraftWithdrawn => self.needs_break |= self.text.withdraw(),
            TurnUpdate::Draft { .. }
            | TurnUpdate::Stored(_)
            | TurnUpdate::Queued
            | TurnUpdate::Retrying { .. }
            | TurnUpdate::ModelStarted { .. }
            | TurnUpdate::ModelProgress { .. }
            | TurnUpdate::ToolOutput { .. } => {}
        }
    }

    fn end(&mut self, end: Result<TurnEnd, Problem>, usage: Usage, frames: &mut Frames) {
        let end = end.map_err(ApiError::from);
        match end.and_then(|end| Completion::of(end, usage)) {
            Ok(completion) => {
                let rest = match self.text.rest(&completion.text) {
                    AnswerRemainder::Continues(rest) => rest,
                    AnswerRemainder::Replaced(answer) => {
                        self.needs_break = true;
                        answer
                    }
                };
                self.push_text(rest, frames);
                let finish = finish_reason(&completion.ending);
                let mut last = self.chunk(choices(json!({}), Some(finish)));
                last["lango"] = json!(self.subject.details(completion.approvals()));
                frames.push(None, &last);
                if self.with_usage {
                    let mut chunk = self.chunk(json!([]));
                    chunk["usage"] = completion.chat_usage();
                    frames.push(None, &chunk);
                }
            }
            Err(error) => frames.push(None, &error.json()),
        }
        frames.push_text("[DONE]");
    }
}
