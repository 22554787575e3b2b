//! Who decides about calls that need approval.

use lango_core::{
    AnswerSource, ApprovalAnswer, BoxFuture, PendingApproval, PreviewLength, RuleSubject, Text,
    UserId,
};
use lango_engine::Runner;
use std::sync::Arc;

/// Decides about calls that need approval: a user interface, or a policy in code.
///
/// The agent that made the call waits meanwhile, and others go on. The state of the turn is stored: if the process ends,
/// the question is asked again. The future of a decision is dropped if the turn is cancelled, or if another process
/// answers the request; what it shows must disappear with it.
pub trait Approver: Send + Sync {
    /// Decides whether a call may run.
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision>;

    /// Says what to do about a call whose outcome is unknown, because the process ended while it ran, or about a turn of a
    /// database that was restored from a backup. Only [`ApprovalAnswer::Retry`], [`ApprovalAnswer::Skip`] and
    /// [`ApprovalAnswer::Happened`] fit.
    fn reconcile<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision>;

    /// Called when another process has answered the request meanwhile and continues the turn. If the approver was still
    /// deciding, the future of its decision was dropped before.
    fn answered_elsewhere(&self, call: PendingCall<'_>) {
        let _ = call;
    }
}

/// A call that waits for a decision.
#[derive(Clone, Copy)]
pub struct PendingCall<'a> {
    /// The request: agent, tool, exact arguments, and why approval is needed.
    pub approval: &'a PendingApproval,
    /// How many more calls of the turn wait.
    pub more: usize,
    pub(crate) runner: &'a Runner,
    pub(crate) user: &'a UserId,
}

impl PendingCall<'_> {
    /// Returns what the call would change, as described by its tool; `None` if the tool has no preview.
    pub async fn preview(&self, length: PreviewLength) -> Option<String> {
        self.runner.preview(self.approval, length).await
    }

    /// Returns the owner of the session.
    pub fn user(&self) -> &UserId {
        self.user
    }

    /// Returns what patterns of rules and grants match for this call.
    pub fn subject(&self) -> RuleSubject {
        self.runner.subject_of(self.approval)
    }

    /// Whether mode `accept-edits` would run the call without asking.
    pub fn is_accepted_edit(&self) -> bool {
        self.runner.is_accepted_edit(self.approval)
    }
}

/// The decision about a pending call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// The user's answer.
    Answer(ApprovalAnswer),
    /// Denies the call because no user can be asked.
    Unattended {
        /// The explanation for the model.
        reason: Text,
    },
    /// Leaves the call pending. The turn ends with [`TurnEvent::Waiting`](crate::TurnEvent::Waiting), and
    /// [`Session::answer`](crate::Session::answer) continues it, in this process or another.
    Defer,
    /// Cancels the turn.
    Cancel,
}

impl ApprovalDecision {
    /// Allows this call.
    pub fn allow() -> Self {
        Self::Answer(ApprovalAnswer::Once)
    }

    /// Denies this call. The reason is for the model.
    pub fn deny(reason: impl Into<Text>) -> Self {
        Self::Answer(ApprovalAnswer::No {
            reason: Some(reason.into()),
        })
    }

    /// Returns the answer and its source, if there is an answer.
    pub(crate) fn into_answer(self) -> Result<(ApprovalAnswer, AnswerSource), NoAnswer> {
        match self {
            Self::Answer(answer) => Ok((answer, AnswerSource::Person)),
            Self::Unattended { reason } => {
                let reason = Some(reason);
                Ok((ApprovalAnswer::No { reason }, AnswerSource::Unattended))
            }
            Self::Defer => Err(NoAnswer::Defer),
            Self::Cancel => Err(NoAnswer::Cancel),
        }
    }
}

/// Why there is no answer.
pub(crate) enum NoAnswer {
    Defer,
    Cancel,
    /// Another process has answered.
    Elsewhere,
}

/// Denies every call, because no user can be asked. Calls with an unknown outcome stay pending. This is the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn approve<'a>(&'a self, _call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        let reason = "no user could be asked to approve the call; say that it was not done and why";
        Box::pin(std::future::ready(ApprovalDecision::Unattended {
            reason: reason.into(),
        }))
    }

    fn reconcile<'a>(&'a self, _call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::ready(ApprovalDecision::Defer))
    }
}

/// Leaves every call pending, for a program that answers later with [`Session::answer`](crate::Session::answer).
#[derive(Debug, Clone, Copy, Default)]
pub struct DeferAll;

impl Approver for DeferAll {
    fn approve<'a>(&'a self, _call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::ready(ApprovalDecision::Defer))
    }

    fn reconcile<'a>(&'a self, _call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::ready(ApprovalDecision::Defer))
    }
}

/// Creates an approver from an asynchronous function. Calls with an unknown outcome stay pending.
///
/// ```
/// # use lango::{ApprovalDecision, Lango, PendingApproval, approve_with};
/// let approver = approve_with(|approval: PendingApproval| async move {
///     match approval.request.tool.as_str() {
///         "payment_send" => ApprovalDecision::deny("payments are off today"),
///         _ => ApprovalDecision::allow(),
///     }
/// });
/// let lango = Lango::builder().approver(approver).build()?;
/// # Ok::<(), lango::Error>(())
/// ```
pub fn approve_with<F, R>(decide: F) -> impl Approver
where
    F: Fn(PendingApproval) -> R + Send + Sync,
    R: Future<Output = ApprovalDecision> + Send + 'static,
{
    ApproveWith(decide)
}

struct ApproveWith<F>(F);

impl<F, R> Approver for ApproveWith<F>
where
    F: Fn(PendingApproval) -> R + Send + Sync,
    R: Future<Output = ApprovalDecision> + Send + 'static,
{
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin((self.0)(call.approval.clone()))
    }

    fn reconcile<'a>(&'a self, _call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::ready(ApprovalDecision::Defer))
    }
}

impl<T: Approver + ?Sized> Approver for Arc<T> {
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        (**self).approve(call)
    }

    fn reconcile<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        (**self).reconcile(call)
    }

    fn answered_elsewhere(&self, call: PendingCall<'_>) {
        (**self).answered_elsewhere(call);
    }
}
