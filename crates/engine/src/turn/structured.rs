//! Answers by a JSON schema: which replies must satisfy it, and what follows when one does not.
//!
//! Only the root answers such a turn. A reply that does not satisfy the schema is sent back once with the problem; the
//! second one, or one that no model call is left to correct, fails the turn.

use super::Turn;
use super::frame::FrameEnd;
use crate::answer_schema::{AnswerSchema, without_fence};
use lango_core::{Fault, FrameId};

impl Turn {
    /// Whether the answer to the user must satisfy a schema.
    pub(crate) fn has_answer_schema(&self) -> bool {
        self.state.setup.answer_schema.is_some()
    }

    /// The schema for the answer of this frame: the root's, if the turn has one.
    pub(super) fn answer_schema_of(&self, frame: &FrameId) -> Option<&AnswerSchema> {
        let schema = self.state.setup.answer_schema.as_ref();
        schema.filter(|_| frame.is_root())
    }

    /// The text of a reply without calls as it is stored: without the fence around JSON where JSON is wanted.
    pub(super) fn answer_text(&self, frame: &FrameId, text: String) -> String {
        match self.answer_schema_of(frame) {
            Some(_) => without_fence(&text).to_owned(),
            None => text,
        }
    }

    /// What is wrong with an answer by the schema, if there is one.
    pub(super) fn answer_problem(&self, frame: &FrameId, text: &str) -> Option<String> {
        self.answer_schema_of(frame)?.check(text).err()
    }

    /// Sends an invalid answer back once; fails the turn if it was the second, or if no model call is left.
    pub(super) fn invalid_answer(&mut self, frame: &FrameId, problem: String) {
        self.correct(frame, Fault::InvalidAnswer, None, problem.clone());
        let retried = self.state.frame(frame).is_some_and(|frame| {
            !matches!(frame.end, Some(FrameEnd::Failed(_))) && self.offer(frame).is_some()
        });
        if !retried {
            let error = format!("the answer does not satisfy the schema: {problem}");
            self.fail(error, false);
        }
    }
}
