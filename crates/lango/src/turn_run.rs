//! Runs a turn and asks an approver until the turn ends or has to wait.

use crate::approver::{Approver, NoAnswer, PendingCall};
use lango_core::{AnswerSource, ApprovalAnswer, ApprovalId, PendingApproval, TurnId, UserInput};
use lango_engine::{CancelToken, Conversation, RunnerError, TurnEnd, TurnStatus, UpdateSender};
use std::time::Duration;

/// Interval between checks of a turn that another process has continued.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What starts or continues a turn.
#[non_exhaustive]
pub enum TurnAction {
    /// A message, which starts a turn.
    Ask(UserInput),
    /// The answer to an approval, which continues the waiting turn.
    Answer(ApprovalId, ApprovalAnswer),
    /// Nothing new: an interrupted turn is resumed, and the approver is asked again about pending approvals.
    Resume,
}

/// A turn in the caller's own task, for programs that hold a [`Conversation`]. [`Session`](crate::Session) is simpler.
pub struct TurnRun<'a> {
    /// The session.
    pub conversation: &'a mut Conversation,
    /// Who decides about calls that need approval.
    pub approver: &'a dyn Approver,
    /// Stops the turn, also while the approver decides.
    pub cancel: &'a CancelToken,
    /// Where updates go.
    pub updates: &'a UpdateSender,
}

impl TurnRun<'_> {
    /// Runs until the turn ends or has to wait. Without a turn to resume, the result waits for no approvals.
    ///
    /// # Errors
    /// The turn cannot start, continue or be stored.
    pub async fn run(mut self, action: TurnAction) -> Result<TurnEnd, RunnerError> {
        let message = match &action {
            TurnAction::Ask(message) => Some(message.clone()),
            TurnAction::Answer(..) | TurnAction::Resume => None,
        };
        let end = match (self.begin(action).await, message) {
            // The earlier turn was interrupted and cannot go on without an answer.
            (Err(error @ RunnerError::ApprovalPending { .. }), Some(message)) => {
                let earlier = TurnEnd::Waiting(self.conversation.waiting().to_vec());
                match self.settle(earlier).await? {
                    TurnEnd::Finished(_) => self.begin(TurnAction::Ask(message)).await?,
                    TurnEnd::Waiting(_) => return Err(error),
                }
            }
            (end, _) => end?,
        };
        self.settle(end).await
    }

    /// Asks the approver until the turn ends, or the approver defers.
    async fn settle(&mut self, mut end: TurnEnd) -> Result<TurnEnd, RunnerError> {
        while let TurnEnd::Waiting(waiting) = &end {
            let Some(first) = waiting.first() else {
                break;
            };
            end = match self.decide(first, waiting.len() - 1).await {
                Ok((answer, by)) => self.answer(first, answer, by).await?,
                Err(NoAnswer::Cancel) => self.conversation.cancel_waiting(self.updates).await?,
                Err(NoAnswer::Defer) => break,
            };
        }
        Ok(end)
    }

    async fn begin(&mut self, action: TurnAction) -> Result<TurnEnd, RunnerError> {
        let (conversation, cancel, updates) = (&mut *self.conversation, self.cancel, self.updates);
        match action {
            TurnAction::Ask(message) => conversation.turn(message, cancel, updates).await,
            TurnAction::Answer(request, answer) => {
                let by = AnswerSource::Person;
                let answered = conversation.answer(&request, answer, by, cancel, updates);
                answered.await
            }
            TurnAction::Resume => {
                conversation.refresh().await?;
                if !conversation.is_interrupted() {
                    return Ok(TurnEnd::Waiting(conversation.waiting().to_vec()));
                }
                let resumed = conversation.resume(cancel, updates).await?;
                // Another process has finished the turn: nothing is left to do, and nothing is pending.
                Ok(resumed.unwrap_or_else(|| TurnEnd::Waiting(Vec::new())))
            }
        }
    }

    /// Asks the approver, unless the turn is cancelled first.
    async fn decide(
        &self,
        approval: &PendingApproval,
        more: usize,
    ) -> Result<(ApprovalAnswer, AnswerSource), NoAnswer> {
        let call = self.pending_call(approval, more);
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

    /// Continues the turn with an answer, or waits for the process that has answered meanwhile.
    async fn answer(
        &mut self,
        approval: &PendingApproval,
        answer: ApprovalAnswer,
        by: AnswerSource,
    ) -> Result<TurnEnd, RunnerError> {
        let request = &approval.request.id;
        self.conversation.refresh().await?;
        let mut pending = self.conversation.waiting().iter();
        if pending.any(|pending| pending.request.id == *request) {
            let (cancel, updates) = (self.cancel, self.updates);
            let conversation = &mut *self.conversation;
            let answered = conversation.answer(request, answer, by, cancel, updates);
            return answered.await;
        }
        self.approver
            .answered_elsewhere(self.pending_call(approval, 0));
        self.end_elsewhere(&approval.turn).await
    }

    fn pending_call<'a>(&'a self, approval: &'a PendingApproval, more: usize) -> PendingCall<'a> {
        PendingCall {
            approval,
            more,
            conversation: self.conversation,
        }
    }

    /// Waits for a turn that another process has continued, until it has ended or waits again.
    async fn end_elsewhere(&self, turn: &TurnId) -> Result<TurnEnd, RunnerError> {
        loop {
            match self.conversation.turn_status(turn).await? {
                TurnStatus::Finished(report) => return Ok(TurnEnd::Finished(report)),
                TurnStatus::Waiting(waiting) => return Ok(TurnEnd::Waiting(waiting)),
                TurnStatus::Unfinished => tokio::time::sleep(POLL_INTERVAL).await,
                TurnStatus::Unknown => return Err(RunnerError::NothingPending),
            }
        }
    }
}
