//! Answers with a JSON schema: which replies must match it, and what happens if one does not.
//!
//! If a turn has a schema, only the root answers the user. The first reply that does not match the schema is sent back
//! with the problem. A second one fails the turn, and so does the first if no model call is left.

use super::Turn;
use super::frame::FrameEnd;
use crate::answer_schema::{AnswerSchema, without_fence};
use lango_core::{FrameId, TurnFault};

impl Turn {
    /// Whether the answer to the user must match a schema.
    pub(crate) fn has_answer_schema(&self) -> bool {
        self.state.setup.answer_schema.is_some()
    }

    /// Returns the schema for the answer of this frame: that of the turn for the root, `None` for other frames.
    pub(super) fn answer_schema_of(&self, frame: &FrameId) -> Option<&AnswerSchema> {
        let schema = self.state.setup.answer_schema.as_ref();
        schema.filter(|_| frame.is_root())
    }

    /// Returns the text to store for a reply without calls: without an enclosing code fence if JSON is expected.
    pub(super) fn answer_text(&self, frame: &FrameId, text: String) -> String {
        match self.answer_schema_of(frame) {
            Some(_) => without_fence(&text).to_owned(),
            None => text,
        }
    }

    /// Returns how the answer violates the schema, if it does.
    pub(super) fn answer_problem(&self, frame: &FrameId, text: &str) -> Option<String> {
        self.answer_schema_of(frame)?.check(text).err()
    }

    /// Sends an invalid answer back once. Fails the turn if it was the second, or if no model call is left.
    pub(super) fn invalid_answer(&mut self, frame: &FrameId, problem: String) {
        self.correct(frame, TurnFault::InvalidAnswer, None, problem.clone());
        let retried = self.state.frame(frame).is_some_and(|frame| {
            !matches!(frame.end, Some(FrameEnd::Failed(_))) && self.offer(frame).is_some()
        });
        if !retried {
            let error = format!("the answer does not satisfy the schema: {problem}");
            self.fail(error, false, None);
        }
    }
}
