//! A session: a conversation of one user, in which turns run one after another.

use crate::approver::Approver;
use crate::turn_run::{TurnAction, TurnRun};
use crate::{Error, TurnStream};
use lango_core::{
    ApprovalAnswer, ApprovalId, Event, EventRange, PendingApproval, SessionId, SessionStore,
    StoreError, UserId, UserInput,
};
use lango_engine::{CancelToken, Conversation, RunnerError, TurnEnd, TurnUpdate, turn_updates};
use std::fmt;
use std::sync::Arc;
use tokio::sync::{Mutex, oneshot};

/// A conversation of one user. Clones refer to the same conversation; their turns run one after another.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    user: UserId,
    conversation: Arc<Mutex<Conversation>>,
    approver: Arc<dyn Approver>,
    store: Arc<dyn SessionStore>,
}

impl Session {
    pub(crate) fn new(
        conversation: Conversation,
        approver: Arc<dyn Approver>,
        store: Arc<dyn SessionStore>,
    ) -> Self {
        Self {
            id: conversation.session().clone(),
            user: conversation.user().clone(),
            conversation: Arc::new(Mutex::new(conversation)),
            approver,
            store,
        }
    }

    /// Returns the id, with which [`Lango::open`](crate::Lango::open) opens the session again.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the owner of the session.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Starts a turn in a task of its own. Await the result for the report, or read it as a stream of events.
    ///
    /// If the session is busy with another turn, this one is queued ([`TurnEvent::Queued`](crate::TurnEvent::Queued)). If an
    /// earlier turn was interrupted, it is resumed first, and the approver is asked about a call whose outcome is unknown. Must be called within a tokio runtime.
    pub fn run(&self, message: impl Into<UserInput>) -> TurnStream {
        self.spawn(TurnAction::Ask(message.into()))
    }

    /// Answers a request of a turn that waits for approval, and continues the turn.
    pub fn answer(&self, request: ApprovalId, answer: ApprovalAnswer) -> TurnStream {
        self.spawn(TurnAction::Answer(request, answer))
    }

    /// Resumes a turn that was interrupted, for example by a crash, or asks again about its pending approvals. Without such
    /// a turn, the stream ends with [`RunnerError::NothingPending`](lango_engine::RunnerError::NothingPending).
    pub fn resume(&self) -> TurnStream {
        self.spawn(TurnAction::Resume)
    }

    /// Returns the approvals that the last turn waits for.
    ///
    /// # Errors
    /// The session cannot be read.
    pub async fn waiting(&self) -> Result<Vec<PendingApproval>, Error> {
        let mut conversation = self.conversation.lock().await;
        conversation.refresh().await?;
        Ok(conversation.waiting().to_vec())
    }

    /// Reads stored events in order, from number `from` on; the first event has number 1. A session without a turn has none.
    ///
    /// # Errors
    /// The session cannot be read.
    pub async fn events(&self, from: u64, limit: usize) -> Result<Vec<Event>, Error> {
        let range = EventRange { from, limit };
        match self.store.read(&self.id, range).await {
            Err(StoreError::NotFound { .. }) => Ok(Vec::new()),
            events => Ok(events?),
        }
    }

    fn spawn(&self, action: TurnAction) -> TurnStream {
        let (updates, receiver) = turn_updates();
        let (sender, end) = oneshot::channel();
        let cancel = CancelToken::new();
        let (session, token) = (self.clone(), cancel.clone());
        tokio::spawn(async move {
            let conversation = match session.conversation.try_lock() {
                Ok(conversation) => Ok(conversation),
                Err(_busy) => {
                    updates.send(TurnUpdate::Queued);
                    tokio::select! {
                        biased;
                        () = token.cancelled() => Err(RunnerError::CancelledWhileQueued),
                        conversation = session.conversation.lock() => Ok(conversation),
                    }
                }
            };
            let mut conversation = match conversation {
                Ok(conversation) => conversation,
                Err(error) => {
                    drop(updates);
                    let _ = sender.send(Err(error.into()));
                    return;
                }
            };
            let run = TurnRun {
                conversation: &mut conversation,
                approver: &*session.approver,
                cancel: &token,
                updates: &updates,
            };
            let result = match run.run(action).await {
                Ok(TurnEnd::Waiting(none)) if none.is_empty() => {
                    Err(RunnerError::NothingPending.into())
                }
                result => result.map_err(Error::from),
            };
            drop(updates);
            // The stream may have been dropped.
            let _ = sender.send(result);
        });
        TurnStream::new(receiver, end, cancel)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
