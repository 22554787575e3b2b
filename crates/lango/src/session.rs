//! A session: a conversation of one user, in which turns run one after another.

use crate::approver::{Approver, NoAnswer, PendingCall};
use crate::{Error, TurnStream};
use lango_core::{
    ApprovalAnswer, ApprovalId, Event, EventRange, PendingApproval, SessionId, SessionStore,
    TurnId, UserId, UserInput,
};
use lango_engine::{
    CancelToken, Conversation, RunnerError, TurnEnd, TurnStatus, UpdateSender, turn_updates,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};

/// Interval between checks of a turn that another process has continued.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

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
    /// If an earlier turn was interrupted, it is resumed first. Must be called within a tokio runtime.
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

    /// Reads stored events, in order. The first event of a session has the number 1.
    ///
    /// # Errors
    /// The session has no turn yet, or cannot be read.
    pub async fn events(&self, from: u64, limit: usize) -> Result<Vec<Event>, Error> {
        let range = EventRange { from, limit };
        Ok(self.store.read(&self.id, range).await?)
    }

    fn spawn(&self, action: TurnAction) -> TurnStream {
        let (updates, receiver) = turn_updates();
        let (sender, end) = oneshot::channel();
        let cancel = CancelToken::new();
        let (session, token) = (self.clone(), cancel.clone());
        tokio::spawn(async move {
            let mut conversation = session.conversation.lock().await;
            let run = TurnRun {
                conversation: &mut conversation,
                approver: &*session.approver,
                cancel: &token,
                updates: &updates,
            };
            let result = run.to_end(action).await;
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

/// What starts or continues a turn.
enum TurnAction {
    Ask(UserInput),
    Answer(ApprovalId, ApprovalAnswer),
    Resume,
}

/// Runs a turn and asks the approver until the turn ends or has to wait.
struct TurnRun<'a> {
    conversation: &'a mut Conversation,
    approver: &'a dyn Approver,
    cancel: &'a CancelToken,
    updates: &'a UpdateSender,
}

impl TurnRun<'_> {
    async fn to_end(mut self, action: TurnAction) -> Result<TurnEnd, Error> {
        let mut end = self.begin(action).await?;
        while let TurnEnd::Waiting(waiting) = &end {
            let Some(first) = waiting.first() else {
                break;
            };
            end = match self.decide(first, waiting.len() - 1).await {
                Ok((answer, by)) => {
                    let (request, turn) = (first.request.id.clone(), first.turn.clone());
                    self.conversation.refresh().await?;
                    let mut pending = self.conversation.waiting().iter();
                    if pending.any(|pending| pending.request.id == request) {
                        let (cancel, updates) = (self.cancel, self.updates);
                        let conversation = &mut self.conversation;
                        let answered = conversation.answer(&request, answer, by, cancel, updates);
                        answered.await?
                    } else {
                        self.end_elsewhere(&turn).await?
                    }
                }
                Err(NoAnswer::Cancel) => self.conversation.cancel_waiting(self.updates).await?,
                Err(NoAnswer::Defer) => break,
            };
        }
        Ok(end)
    }

    async fn begin(&mut self, action: TurnAction) -> Result<TurnEnd, Error> {
        let (conversation, cancel, updates) = (&mut *self.conversation, self.cancel, self.updates);
        Ok(match action {
            TurnAction::Ask(message) => conversation.turn(message, cancel, updates).await?,
            TurnAction::Answer(request, answer) => {
                let by = lango_core::AnswerSource::Person;
                let answered = conversation.answer(&request, answer, by, cancel, updates);
                answered.await?
            }
            TurnAction::Resume => {
                conversation.refresh().await?;
                if conversation.is_interrupted() {
                    let resumed = conversation.resume(cancel, updates).await?;
                    resumed.ok_or(RunnerError::NothingPending)?
                } else if conversation.waiting().is_empty() {
                    return Err(RunnerError::NothingPending.into());
                } else {
                    TurnEnd::Waiting(conversation.waiting().to_vec())
                }
            }
        })
    }

    /// Asks the approver, unless the turn is cancelled first.
    async fn decide(
        &self,
        approval: &PendingApproval,
        more: usize,
    ) -> Result<(ApprovalAnswer, lango_core::AnswerSource), NoAnswer> {
        let call = PendingCall {
            approval,
            more,
            conversation: self.conversation,
        };
        let decision = if approval.request.question.is_permission() {
            self.approver.approve(call)
        } else {
            self.approver.reconcile(call)
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(NoAnswer::Cancel),
            decision = decision => decision.into_answer(),
        }
    }

    /// Waits for a turn that another process has continued, until it has ended or waits again.
    async fn end_elsewhere(&self, turn: &TurnId) -> Result<TurnEnd, Error> {
        loop {
            match self.conversation.turn_status(turn).await? {
                TurnStatus::Finished(report) => return Ok(TurnEnd::Finished(report)),
                TurnStatus::Waiting(waiting) => return Ok(TurnEnd::Waiting(waiting)),
                TurnStatus::Unfinished => tokio::time::sleep(POLL_INTERVAL).await,
                TurnStatus::Unknown => return Err(RunnerError::NothingPending.into()),
            }
        }
    }
}
