//! Runs a turn and asks an approver until the turn ends or has to wait.

use crate::approver::{Approver, NoAnswer};
use crate::questions::Questions;
use lango_core::{AnswerSource, ApprovalAnswer, ApprovalId, PendingApproval, UserInput};
use lango_engine::{
    CancelToken, Conversation, RunnerError, TurnEnd, TurnStatus, TurnUpdate, UpdateSender,
};
use std::time::Duration;

/// Interval between checks of a turn that another process has continued.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Interval between checks whether another process has answered what the approver is asked.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum number of events that are read at once.
const MAX_EVENTS: usize = 256;

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
    /// Runs until the turn ends or has to wait. Without a turn to resume, the result waits for no approvals. If another
    /// process answers what the approver is asked, that process continues the turn, and this follows the turn to its end;
    /// cancelling only stops following it then, and the result waits for no approvals.
    ///
    /// # Errors
    /// The turn cannot start, continue or be stored.
    pub async fn run(mut self, action: TurnAction) -> Result<TurnEnd, RunnerError> {
        let message = match &action {
            TurnAction::Ask(message) => Some(message.clone()),
            TurnAction::Answer(..) | TurnAction::Resume => None,
        };
        let mut questions = Questions::new(self.approver, self.cancel, self.conversation);
        let end = match (self.begin(action, &mut questions).await, message) {
            // The earlier turn was interrupted and cannot go on without an answer.
            (Err(error @ RunnerError::ApprovalPending { .. }), Some(message)) => {
                let earlier = TurnEnd::Waiting(self.conversation.waiting().to_vec());
                match self.settle(earlier, &mut questions).await? {
                    TurnEnd::Finished(_) => {
                        self.begin(TurnAction::Ask(message), &mut questions).await?
                    }
                    TurnEnd::Waiting(_) => return Err(error),
                }
            }
            (end, _) => end?,
        };
        self.settle(end, &mut questions).await
    }

    /// Asks the approver until the turn ends, or the approver defers.
    async fn settle(
        &mut self,
        mut end: TurnEnd,
        questions: &mut Questions<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        while let TurnEnd::Waiting(waiting) = &end {
            let Some(first) = questions.next_of(waiting) else {
                break;
            };
            end = match self.decide(first, waiting.len() - 1, questions).await {
                Ok((answer, by)) => self.answer(first, answer, by, questions).await?,
                Err(NoAnswer::Cancel) => self.conversation.cancel_waiting(self.updates).await?,
                Err(NoAnswer::Defer) => break,
                Err(NoAnswer::Elsewhere) => {
                    let next_seq = self.conversation.next_seq();
                    self.follow(first, next_seq, questions).await?
                }
            };
        }
        Ok(end)
    }

    async fn begin(
        &mut self,
        action: TurnAction,
        questions: &mut Questions<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        let (conversation, cancel, updates) = (&mut *self.conversation, self.cancel, self.updates);
        match action {
            TurnAction::Ask(message) => {
                let turn = conversation.turn(message, cancel, updates);
                questions.during(turn).await
            }
            TurnAction::Answer(request, answer) => {
                let by = AnswerSource::Person;
                let answered = conversation.answer(&request, answer, by, cancel, updates);
                questions.during(answered).await
            }
            TurnAction::Resume => {
                conversation.refresh().await?;
                if !conversation.is_interrupted() {
                    return Ok(TurnEnd::Waiting(conversation.waiting().to_vec()));
                }
                let resumed = conversation.resume(cancel, updates);
                let resumed = questions.during(resumed).await?;
                // Another process has finished the turn: nothing is left to do, and nothing is pending.
                Ok(resumed.unwrap_or_else(|| TurnEnd::Waiting(Vec::new())))
            }
        }
    }

    /// Asks the approver, unless the turn is cancelled or another process answers first.
    async fn decide(
        &self,
        approval: &PendingApproval,
        more: usize,
        questions: &mut Questions<'_>,
    ) -> Result<(ApprovalAnswer, AnswerSource), NoAnswer> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(NoAnswer::Cancel),
            decision = questions.decide(approval, more) => decision,
            () = self.answered_elsewhere(approval) => Err(NoAnswer::Elsewhere),
        }
    }

    /// Waits until another process has answered a request.
    async fn answered_elsewhere(&self, approval: &PendingApproval) {
        loop {
            tokio::time::sleep(ANSWER_POLL_INTERVAL).await;
            // A store that does not answer now says nothing about the request.
            if let Ok(false) = self.is_pending(approval).await {
                return;
            }
        }
    }

    /// Whether a request waits for an answer, according to the log. The log is only read if it has grown.
    async fn is_pending(&self, approval: &PendingApproval) -> Result<bool, RunnerError> {
        let conversation = &self.conversation;
        let new = conversation.events(conversation.next_seq(), 1).await?;
        if new.is_empty() {
            return Ok(true);
        }
        Ok(match conversation.turn_status(&approval.turn).await? {
            TurnStatus::Waiting(waiting) => waiting
                .iter()
                .any(|pending| pending.request.id == approval.request.id),
            TurnStatus::Finished(_) | TurnStatus::Unfinished | TurnStatus::Unknown => false,
        })
    }

    /// Continues the turn with an answer, or waits for the process that has answered meanwhile.
    async fn answer(
        &mut self,
        approval: &PendingApproval,
        answer: ApprovalAnswer,
        by: AnswerSource,
        questions: &mut Questions<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        let request = &approval.request.id;
        let next_seq = self.conversation.next_seq();
        self.conversation.refresh().await?;
        let mut pending = self.conversation.waiting().iter();
        if pending.any(|pending| pending.request.id == *request) {
            let (cancel, updates) = (self.cancel, self.updates);
            let conversation = &mut *self.conversation;
            let answered = conversation.answer(request, answer, by, cancel, updates);
            return questions.during(answered).await;
        }
        self.follow(approval, next_seq, questions).await
    }

    /// Follows a turn that another process has continued after it answered a request, until the turn has ended or waits
    /// again. Publishes the events that the other process stores, from this number on.
    async fn follow(
        &mut self,
        approval: &PendingApproval,
        mut next_seq: u64,
        questions: &mut Questions<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        self.approver.answered_elsewhere(questions.call(approval));
        let end = loop {
            // Read before the events, so that all events up to the end are published.
            let status = self.conversation.turn_status(&approval.turn).await?;
            next_seq = self.publish_stored(next_seq).await?;
            match status {
                TurnStatus::Finished(report) => break TurnEnd::Finished(report),
                TurnStatus::Waiting(waiting) => break TurnEnd::Waiting(waiting),
                TurnStatus::Unknown => return Err(RunnerError::NothingPending),
                TurnStatus::Unfinished => {}
            }
            tokio::select! {
                () = self.cancel.cancelled() => break TurnEnd::Waiting(Vec::new()),
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        };
        self.conversation.refresh().await?;
        Ok(end)
    }

    /// Publishes stored events from this number on. Returns the number of the next one.
    async fn publish_stored(&self, mut next_seq: u64) -> Result<u64, RunnerError> {
        loop {
            let events = self.conversation.events(next_seq, MAX_EVENTS).await?;
            let Some(last) = events.last() else {
                return Ok(next_seq);
            };
            next_seq = last.seq + 1;
            self.updates.send(TurnUpdate::Stored(events.into()));
        }
    }
}
