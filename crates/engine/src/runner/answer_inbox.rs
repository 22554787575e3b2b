//! Requests of a running turn and their answers: while one agent waits for an approval, others may still run.
//!
//! A parked turn accepts no answers here; [`Conversation::answer`] continues it.

use super::{Conversation, RunnerError};
use crate::turn::Turn;
use lango_core::{AnswerSource, ApprovalAnswer, ApprovalId, PendingApproval};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot, watch};

/// The inbox of a conversation for answers to approval requests.
#[derive(Debug, Default)]
pub struct AnswerInbox {
    inbox: Mutex<Inbox>,
    arrived: Notify,
    /// The requests of the turn that have no answer yet.
    waiting: watch::Sender<Vec<PendingApproval>>,
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
    pub by: AnswerSource,
    pub reply: oneshot::Sender<Result<(), RunnerError>>,
}

impl AnswerInbox {
    /// Delivers an answer to the running turn and resolves when the answer is stored. Returns false if no turn is
    /// running, or if it parked before it processed the answer.
    pub async fn give(
        &self,
        request: &ApprovalId,
        answer: &ApprovalAnswer,
        by: AnswerSource,
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
                by,
                reply,
            });
        }
        self.arrived.notify_one();
        match result.await {
            Ok(result) => {
                // Before the turn says so itself, so that the request is not found again.
                self.waiting.send_modify(|waiting| {
                    waiting.retain(|waiting| waiting.request.id != *request);
                });
                result.map(|()| true)
            }
            // The turn ended before it processed the answer.
            Err(_) => Ok(false),
        }
    }

    /// Waits for a request of a running turn that has no answer yet and is none of these. Returns it with the number of
    /// others.
    pub async fn next_request(&self, except: &[ApprovalId]) -> (PendingApproval, usize) {
        let mut waiting = self.waiting.subscribe();
        loop {
            {
                let waiting = waiting.borrow_and_update();
                let is_new = |waiting: &&PendingApproval| !except.contains(&waiting.request.id);
                let mut new = waiting.iter().filter(is_new);
                if let Some(first) = new.next()
                    && self.lock().is_open
                {
                    return (first.clone(), new.count());
                }
            }
            // The sender is a field of this, so it cannot be closed.
            let _ = waiting.changed().await;
        }
    }

    /// Waits until a request of the running turn is answered or no longer needs an answer.
    pub async fn settled(&self, request: &ApprovalId) {
        let mut waiting = self.waiting.subscribe();
        let is_settled = |waiting: &Vec<PendingApproval>| {
            let mut ids = waiting.iter().map(|waiting| &waiting.request.id);
            !ids.any(|id| id == request)
        };
        let _ = waiting.wait_for(is_settled).await;
    }

    /// Accepts answers until the returned guard is dropped.
    pub(super) fn listen(&self) -> AnswerListener<'_> {
        self.lock().is_open = true;
        self.waiting.send_replace(Vec::new());
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

    /// Publishes the requests that have no answer. They stay published when the turn parks, so that whoever decides
    /// about one of them can go on.
    pub(crate) fn publish(&self, turn: &Turn) {
        if turn.has_requests() || !self.0.waiting.borrow().is_empty() {
            let now = turn.waiting();
            self.0.waiting.send_if_modified(|waiting| {
                let is_changed = *waiting != now;
                *waiting = now;
                is_changed
            });
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
