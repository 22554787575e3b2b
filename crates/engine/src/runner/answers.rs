//! Answers to requests of a turn that runs: while one agent waits for an approval, others may be at work.
//!
//! A turn that is parked takes none. It is continued with [`Conversation::answer`].

use super::{Conversation, RunnerError};
use lango_core::{Answer, ApprovalId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The inbox for answers of one conversation.
#[derive(Debug, Default)]
pub struct Answers {
    inbox: Mutex<Inbox>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Inbox {
    is_open: bool,
    given: VecDeque<GivenAnswer>,
}

/// An answer on its way to its turn.
#[derive(Debug)]
pub(super) struct GivenAnswer {
    pub request: ApprovalId,
    pub answer: Answer,
    pub taken: oneshot::Sender<Result<(), RunnerError>>,
}

impl Answers {
    /// Gives an answer to the running turn. Returns whether the turn took it: false if none runs, or if it parked first. Resolves
    /// when the answer is stored.
    pub async fn give(&self, request: &ApprovalId, answer: &Answer) -> Result<bool, RunnerError> {
        let (taken, result) = oneshot::channel();
        {
            let mut inbox = self.lock();
            if !inbox.is_open {
                return Ok(false);
            }
            inbox.given.push_back(GivenAnswer {
                request: request.clone(),
                answer: answer.clone(),
                taken,
            });
        }
        self.arrived.notify_one();
        match result.await {
            Ok(taken) => taken.map(|()| true),
            // The turn ended without it.
            Err(_) => Ok(false),
        }
    }

    /// Accepts answers until the result is dropped.
    pub(super) fn open(&self) -> OpenInbox<'_> {
        self.lock().is_open = true;
        OpenInbox(self)
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation {
    /// Returns the inbox for answers to requests of its turn, while that runs.
    pub fn answers(&self) -> Arc<Answers> {
        Arc::clone(&self.answers)
    }
}

/// The inbox of a turn that runs.
pub(super) struct OpenInbox<'a>(&'a Answers);

impl OpenInbox<'_> {
    pub async fn next(&self) -> GivenAnswer {
        loop {
            if let Some(given) = self.0.lock().given.pop_front() {
                return given;
            }
            self.0.arrived.notified().await;
        }
    }

    /// Accepts no more answers, unless one has arrived. Returns whether it closed.
    pub fn close_if_empty(&self) -> bool {
        let mut inbox = self.0.lock();
        inbox.is_open = !inbox.given.is_empty();
        !inbox.is_open
    }
}

impl Drop for OpenInbox<'_> {
    fn drop(&mut self) {
        *self.0.lock() = Inbox::default();
    }
}
