//! Streams a draft of the answer to the user. Text is buffered while it may still become a rejection, and the draft is
//! withdrawn if the reply turns out not to be an answer.

use super::TurnUpdate;
use crate::rejection;
use lango_core::AgentName;
use tokio::sync::mpsc;

pub(super) struct Draft {
    author: AgentName,
    updates: mpsc::Sender<TurnUpdate>,
    /// Whether the text may become the answer to the user.
    is_published: bool,
    /// Text that may still become a rejection.
    buffer: String,
    has_started: bool,
}

impl Draft {
    /// Creates a draft. Nothing is published unless `is_published`.
    pub fn new(author: AgentName, updates: mpsc::Sender<TurnUpdate>, is_published: bool) -> Self {
        Self {
            author,
            updates,
            is_published,
            buffer: String::new(),
            has_started: false,
        }
    }

    pub async fn push(&mut self, text: &str) {
        if !self.is_published {
            return;
        }
        self.buffer.push_str(text);
        if !self.has_started && rejection::may_become_rejection(&self.buffer) {
            return;
        }
        self.has_started = true;
        let text = std::mem::take(&mut self.buffer);
        let _ = self
            .updates
            .send(TurnUpdate::Draft {
                author: self.author.clone(),
                text,
            })
            .await;
    }

    /// Withdraws the draft and publishes why the call is retried.
    pub async fn retry(&mut self, reason: &str) {
        self.buffer.clear();
        self.withdraw().await;
        let agent = self.author.clone();
        let reason = reason.to_owned();
        let _ = self
            .updates
            .send(TurnUpdate::Retrying { agent, reason })
            .await;
    }

    pub async fn withdraw(&mut self) {
        if std::mem::take(&mut self.has_started) {
            let _ = self.updates.send(TurnUpdate::DraftWithdrawn).await;
        }
    }
}
