//! The questions of a turn to its approver: one at a time, also while other agents of the turn still work.

use crate::approver::{ApprovalDecision, Approver, NoAnswer, PendingCall};
use lango_core::{AnswerSource, ApprovalAnswer, ApprovalId, BoxFuture, PendingApproval, UserId};
use lango_engine::{AnswerInbox, CancelToken, Conversation, Runner};
use std::sync::Arc;

/// Asks an approver about the calls of one turn.
pub(crate) struct Questions<'a> {
    approver: &'a dyn Approver,
    cancel: &'a CancelToken,
    requests: Arc<AnswerInbox>,
    runner: Arc<Runner>,
    user: UserId,
    open: Option<OpenQuestion<'a>>,
    /// The requests that the approver left pending, or that end with the turn.
    unanswered: Vec<ApprovalId>,
}

/// A question that the approver has not answered, or whose answer the turn has not taken.
struct OpenQuestion<'a> {
    request: ApprovalId,
    decision: Decision<'a>,
}

enum Decision<'a> {
    Pending(BoxFuture<'a, ApprovalDecision>),
    Made(ApprovalAnswer, AnswerSource),
}

impl<'a> Questions<'a> {
    pub(crate) fn new(
        approver: &'a dyn Approver,
        cancel: &'a CancelToken,
        conversation: &Conversation,
    ) -> Self {
        Self {
            approver,
            cancel,
            requests: conversation.answers(),
            runner: Arc::new(conversation.runner()),
            user: conversation.user().clone(),
            open: None,
            unanswered: Vec::new(),
        }
    }

    /// Runs the turn, and meanwhile asks about calls that wait while other agents work. A question that is open when the
    /// turn parks stays open for [`decide`](Self::decide).
    pub(crate) async fn during<T>(&mut self, running: impl Future<Output = T>) -> T {
        tokio::pin!(running);
        loop {
            tokio::select! {
                biased;
                end = &mut running => return end,
                () = self.answer_next() => {}
            }
        }
    }

    /// Returns the request to ask about next: the one whose question is open, or else the first. Returns `None` if the
    /// approver has left one pending.
    pub(crate) fn next_of<'w>(
        &self,
        waiting: &'w [PendingApproval],
    ) -> Option<&'w PendingApproval> {
        let is_unanswered =
            |waiting: &PendingApproval| self.unanswered.contains(&waiting.request.id);
        if waiting.iter().any(is_unanswered) {
            return None;
        }
        let is_open = |waiting: &&PendingApproval| {
            let open = self.open.as_ref();
            open.is_some_and(|open| open.request == waiting.request.id)
        };
        waiting.iter().find(is_open).or_else(|| waiting.first())
    }

    /// Asks the approver about a request of a parked turn.
    pub(crate) async fn decide(
        &mut self,
        approval: &PendingApproval,
        more: usize,
    ) -> Result<(ApprovalAnswer, AnswerSource), NoAnswer> {
        let open = self.open.take();
        let open = open.filter(|open| open.request == approval.request.id);
        let open = open.unwrap_or_else(|| self.ask(approval.clone(), more));
        match open.decision {
            Decision::Pending(decision) => decision.await.into_answer(),
            Decision::Made(answer, by) => Ok((answer, by)),
        }
    }

    /// Returns a call for notices to the approver.
    pub(crate) fn call<'b>(&'b self, approval: &'b PendingApproval) -> PendingCall<'b> {
        PendingCall {
            approval,
            more: 0,
            runner: &self.runner,
            user: &self.user,
        }
    }

    fn ask(&self, approval: PendingApproval, more: usize) -> OpenQuestion<'a> {
        let (approver, runner, user) = (self.approver, Arc::clone(&self.runner), self.user.clone());
        let request = approval.request.id.clone();
        let decision = async move {
            let call = PendingCall {
                approval: &approval,
                more,
                runner: &runner,
                user: &user,
            };
            if approval.request.question.is_permission() {
                approver.approve(call).await
            } else {
                approver.reconcile(call).await
            }
        };
        OpenQuestion {
            request,
            decision: Decision::Pending(Box::pin(decision)),
        }
    }

    /// Asks about the next request of the running turn, and passes the answer to the turn. May be dropped at any time
    /// and called again.
    async fn answer_next(&mut self) {
        if self.open.is_none() {
            let (approval, more) = self.requests.next_request(&self.unanswered).await;
            self.open = Some(self.ask(approval, more));
        }
        let Some(open) = &mut self.open else {
            return;
        };
        let request = open.request.clone();
        if let Decision::Pending(decision) = &mut open.decision {
            let decision = tokio::select! {
                biased;
                decision = decision => decision,
                () = self.requests.settled(&request) => {
                    self.open = None;
                    return;
                }
            };
            match decision.into_answer() {
                Ok((answer, by)) => open.decision = Decision::Made(answer, by),
                Err(no_answer) => {
                    self.open = None;
                    self.unanswered.push(request);
                    if let NoAnswer::Cancel = no_answer {
                        self.cancel.cancel();
                    }
                    return;
                }
            }
        }
        let Decision::Made(answer, by) = &open.decision else {
            return;
        };
        // Not taken: the turn parks at this moment, and takes the answer then.
        if let Ok(false) = self.requests.give(&request, answer, by.clone()).await {
            std::future::pending::<()>().await;
        }
        self.open = None;
    }
}
