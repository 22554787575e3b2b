//! Answers to requests of a running turn: while one agent waits for an approval, others may still run.
//!
//! A parked turn accepts no answers here; [`Conversation::answer`] continues it.

use super::{Conversation, RunnerError};
use lango_core::{ApprovalAnswer, ApprovalId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The inbox of a conversation for answers to approval requests.
#[derive(Debug, Default)]
pub struct AnswerInbox {
    inbox: Mutex<Inbox>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Inbox {
    is_open: bool,
    given: VecDeque<PendingAnswer>,
}

/// An answer that its turn has not processed yet.
#[derive(Debug)]
pub(super) struct PendingAnswer {
    pub request: ApprovalId,
    pub answer: ApprovalAnswer,
    pub reply: oneshot::Sender<Result<(), RunnerError>>,
}

impl AnswerInbox {
    /// Delivers an answer to the running turn and resolves when the answer is stored. Returns false if no turn is
    /// running, or if it parked before it processed the answer.
    pub async fn give(
        &self,
        request: &ApprovalId,
        answer: &ApprovalAnswer,
    ) -> Result<bool, RunnerError> {
        let (reply, result) = oneshot::channel();
        {
            let mut inbox = self.lock();
            if !inbox.is_open {
                return Ok(false);
            }
            inbox.given.push_back(PendingAnswer {
                request: request.clone(),
                answer: answer.clone(),
                reply,
            });
        }
        self.arrived.notify_one();
        match result.await {
            Ok(result) => result.map(|()| true),
            // The turn ended before it processed the answer.
            Err(_) => Ok(false),
        }
    }

    /// Accepts answers until the returned guard is dropped.
    pub(super) fn listen(&self) -> AnswerListener<'_> {
        self.lock().is_open = true;
        AnswerListener(self)
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation {
    /// Returns the inbox for answers to requests of the running turn.
    pub fn answers(&self) -> Arc<AnswerInbox> {
        Arc::clone(&self.answers)
    }
}

/// The reading end of the inbox, which a running turn holds. Dropping it closes the inbox.
pub(super) struct AnswerListener<'a>(&'a AnswerInbox);

impl AnswerListener<'_> {
    pub(crate) async fn next(&self) -> PendingAnswer {
        loop {
            if let Some(given) = self.0.lock().given.pop_front() {
                return given;
            }
            self.0.arrived.notified().await;
        }
    }

    /// Closes the inbox unless it contains an answer. Returns whether it closed.
    pub(crate) fn close_if_empty(&self) -> bool {
        let mut inbox = self.0.lock();
        inbox.is_open = !inbox.given.is_empty();
        !inbox.is_open
    }
}

impl Drop for AnswerListener<'_> {
    fn drop(&mut self) {
        *self.0.lock() = Inbox::default();
    }
}
