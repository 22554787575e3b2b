//! Streams a draft of the answer to the user. Text is buffered while it may still become a rejection, and the draft is
//! withdrawn if the reply turns out not to be an answer.

use super::{TurnUpdate, UpdateSender};
use crate::rejection;
use lango_core::{AgentName, FrameId};

pub(super) struct Draft<'a> {
    frame: FrameId,
    author: AgentName,
    updates: &'a UpdateSender,
    /// Whether the text may become the answer to the user.
    is_published: bool,
    /// Text that may still become a rejection.
    buffer: String,
    /// How many bytes at the start of the buffer are formatting. There may be many, and each piece is looked at once.
    formatting: usize,
    has_started: bool,
}

impl<'a> Draft<'a> {
    /// Creates a draft. Nothing is published unless `is_published`.
    pub(crate) fn new(
        frame: FrameId,
        author: AgentName,
        updates: &'a UpdateSender,
        is_published: bool,
    ) -> Self {
        Self {
            frame,
            author,
            updates,
            is_published,
            buffer: String::new(),
            formatting: 0,
            has_started: false,
        }
    }

    pub(crate) fn push(&mut self, text: &str) {
        if !self.is_published {
            return;
        }
        self.buffer.push_str(text);
        if !self.has_started {
            let rest = rejection::without_formatting(&self.buffer[self.formatting..]);
            self.formatting = self.buffer.len() - rest.len();
            if rejection::may_become_rejection(rest) {
                return;
            }
        }
        self.has_started = true;
        let text = std::mem::take(&mut self.buffer);
        self.formatting = 0;
        self.updates.send(TurnUpdate::Draft {
            frame: self.frame.clone(),
            author: self.author.clone(),
            text,
        });
    }

    /// Withdraws the draft and publishes why the call is retried.
    pub(crate) fn retry(&mut self, reason: &str) {
        self.buffer.clear();
        self.formatting = 0;
        self.withdraw();
        let agent = self.author.clone();
        let reason = reason.to_owned();
        self.updates.send(TurnUpdate::Retrying { agent, reason });
    }

    pub(crate) fn withdraw(&mut self) {
        if std::mem::take(&mut self.has_started) {
            self.updates.send(TurnUpdate::DraftWithdrawn);
        }
    }
}
