//! The events of a response.
//!
//! Each draft is a separate message. A withdrawn draft ends as `incomplete`, and the finished response has only the
//! answer.

use super::completion::{Completion, Ending};
use super::responses::{AnswerNumber, Objects, text_part};
use crate::problem::Problem;
use crate::protocol::{AnswerRemainder, Frames, Renderer, StreamedText};
use lango_core::{AgentName, Usage};
use lango_engine::{TurnEnd, TurnUpdate};
use serde_json::{Value, json};

/// A renderer that writes a turn as events of a response.
pub(super) struct ResponseStream {
    objects: Objects,
    /// Whether only the answer is streamed, because the client parses all of the text.
    is_answer_only: bool,
    /// The number of the next event.
    sequence: u64,
    /// The number of the current message, or of the next one if none is open.
    message: AnswerNumber,
    is_open: bool,
    text: StreamedText,
}

impl ResponseStream {
    pub(super) fn new(objects: Objects, is_answer_only: bool) -> Self {
        Self {
            objects,
            is_answer_only,
            sequence: 0,
            message: AnswerNumber(0),
            is_open: false,
            text: StreamedText::default(),
        }
    }

    fn push(&mut self, name: &str, mut event: Value, frames: &mut Frames) {
        event["type"] = json!(name);
        event["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        frames.push(Some(name), &event);
    }

    /// Pushes an event about the text of the current message.
    fn push_part(&mut self, name: &str, mut event: Value, frames: &mut Frames) {
        event["item_id"] = json!(self.objects.message_id(&self.message));
        event["output_index"] = json!(self.message.0);
        event["content_index"] = json!(0);
        self.push(name, event, frames);
    }

    fn push_item(&mut self, name: &str, status: &str, text: &str, frames: &mut Frames) {
        let item = self.objects.message(&self.message, status, text);
        let event = json!({ "output_index": self.message.0, "item": item });
        self.push(name, event, frames);
    }

    fn push_text(&mut self, text: &str, frames: &mut Frames) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.push_item("response.output_item.added", "in_progress", "", frames);
            let event = json!({ "part": text_part("") });
            self.push_part("response.content_part.added", event, frames);
        }
        if !text.is_empty() {
            let event = json!({ "delta": text, "logprobs": [] });
            self.push_part("response.output_text.delta", event, frames);
        }
    }

    /// Ends the current message.
    fn close(&mut self, status: &str, text: &str, frames: &mut Frames) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let event = json!({ "text": text, "logprobs": [] });
        self.push_part("response.output_text.done", event, frames);
        let event = json!({ "part": text_part(text) });
        self.push_part("response.content_part.done", event, frames);
        self.push_item("response.output_item.done", status, text, frames);
    }

    fn withdraw(&mut self, frames: &mut Frames) {
        if self.is_open {
            let text = self.text.text().to_owned();
            self.close("incomplete", &text, frames);
            self.message.0 += 1;
        }
        self.text.withdraw();
    }

    fn draft(&mut self, author: &AgentName, text: &str, frames: &mut Frames) {
        if !self.text.is_by(author) {
            self.withdraw(frames);
        }
        self.text.push(author, text);
        self.push_text(text, frames);
    }

    fn finish(&mut self, completion: &Completion, frames: &mut Frames) {
        let rest = match self.text.rest(&completion.text) {
            AnswerRemainder::Continues(rest) => rest,
            AnswerRemainder::Replaced(answer) => {
                self.withdraw(frames);
                answer
            }
        };
        self.push_text(rest, frames);
        self.close("completed", &completion.text, frames);
        let name = match completion.ending {
            Ending::Answered => "response.completed",
            Ending::Limited | Ending::Waiting(_) => "response.incomplete",
        };
        let response = self.objects.completed(completion, &self.message);
        self.push(name, json!({ "response": response }), frames);
    }
}

impl Renderer for ResponseStream {
    fn start(&mut self, frames: &mut Frames) {
        for name in ["response.created", "response.in_progress"] {
            let event = json!({ "response": self.objects.running() });
            self.push(name, event, frames);
        }
    }

    fn shown(&mut self, shown: &TurnUpdate, frames: &mut Frames) {
        match shown {
            TurnUpdate::Draft { author, text, .. } if !self.is_answer_only => {
                self.draft(author, text, frames);
            }
            TurnUpdate::DraftWithdrawn => self.withdraw(frames),
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
        let (response, completion) = self.objects.ended(end, usage);
        match completion {
            Some(completion) => self.finish(&completion, frames),
            None => {
                self.withdraw(frames);
                self.push("response.failed", json!({ "response": response }), frames);
            }
        }
    }
}
