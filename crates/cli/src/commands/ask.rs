//! Asks the user at the terminal whether a call may run. Without a terminal the call is denied, and the message names
//! the rule that would have allowed it.
//!
//! The approver is part of the running turn and has no access to the screen. It sends its question to the loop that
//! shows the turn (`watch.rs`), which owns the keys.

mod plain;
mod prompt;
mod question;

use super::watch::PromptContext;
use crate::screen::{self, allowing_rule};
use crate::terminal::Output;
use lango::app::{Failure, FailureKind};
use lango::{ApprovalDecision, Approver, PendingCall};
use lango_core::{
    ApprovalAnswer, BoxFuture, PendingApproval, PermissionMode, PreviewLength, Text, UserId,
};
use lango_engine::UpdateBacklog;
pub(super) use plain::ask_plainly;
pub(super) use prompt::{PromptStep, QuestionPrompt};
pub(super) use question::{Question, Reply};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// What happens when a call needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalMode {
    /// Ask the user at the terminal.
    Terminal,
    /// Ask the user at the terminal; the turn cannot wait, because nothing is persisted.
    TerminalOnly,
    /// Deny the call, because no user can be asked.
    Deny,
    /// Leave the request pending in the log.
    Defer,
}

impl ApprovalMode {
    /// Returns [`Terminal`](Self::Terminal) if questions appear on a terminal, or else [`Deny`](Self::Deny).
    pub(super) fn detect(questions: Output) -> Self {
        if questions.is_terminal() && crate::terminal::has_keyboard() {
            Self::Terminal
        } else {
            Self::Deny
        }
    }
}

/// A message of the approver to the loop that shows the turn.
pub(super) enum ApproverMessage {
    /// Show the question and send the reply. If the sender is closed, another process has answered.
    Ask(Box<Question>, oneshot::Sender<Reply>),
    /// The reply was handled, with all prompts that follow from it; the screen belongs to the loop again.
    Done,
}

/// Sends [`ApproverMessage::Done`] when it is dropped.
struct DoneOnDrop<'a>(&'a UnboundedSender<ApproverMessage>);

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        // The loop may have ended because its output is closed.
        let _ = self.0.send(ApproverMessage::Done);
    }
}

/// Asks the user at the terminal, or decides without one, as the [`ApprovalMode`] says.
pub(super) struct TerminalApprover<'a> {
    mode: ApprovalMode,
    context: PromptContext<'a>,
    /// The updates that are not on the screen yet.
    backlog: UpdateBacklog,
    messages: UnboundedSender<ApproverMessage>,
    denied: Mutex<Vec<PendingApproval>>,
    failure: Mutex<Option<Failure>>,
}

impl<'a> TerminalApprover<'a> {
    /// Creates an approver, and the messages that the loop has to handle.
    pub(super) fn new(
        mode: ApprovalMode,
        context: PromptContext<'a>,
        backlog: UpdateBacklog,
    ) -> (Self, UnboundedReceiver<ApproverMessage>) {
        let (messages, received) = unbounded_channel();
        let approver = Self {
            mode,
            context,
            backlog,
            messages,
            denied: Mutex::default(),
            failure: Mutex::default(),
        };
        (approver, received)
    }

    /// Returns the calls that were denied because no user could be asked; fails if a prompt failed.
    pub(super) fn finish(self) -> Result<Vec<PendingApproval>, Failure> {
        let failure = self.failure.into_inner();
        match failure.unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok(self
                .denied
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Prompts for what an allowed call needs, such as a passphrase, while the turn waits. Returns the user's answer, or
    /// a denial if the prompt was declined.
    pub(super) async fn prepare(
        &self,
        user: &UserId,
        approval: &PendingApproval,
        answer: ApprovalAnswer,
    ) -> Result<ApprovalAnswer, Failure> {
        if !answer.allows() {
            return Ok(answer);
        }
        let prepared = self.context.vaults.prepare(user, approval).await?;
        Ok(prepared.unwrap_or(answer))
    }

    async fn decide(&self, call: PendingCall<'_>) -> ApprovalDecision {
        // The question comes after what led to it.
        self.backlog.emptied().await;
        // Sent also if this is dropped, because another process has answered.
        let _done = DoneOnDrop(&self.messages);
        let decision = match self.ask(call).await {
            Ok(ApprovalDecision::Answer(answer)) => {
                match self.prepare(call.user(), call.approval, answer).await {
                    Ok(answer) => Ok(ApprovalDecision::Answer(answer)),
                    // Ctrl-C at a prompt stops the turn, as it does while the turn runs.
                    Err(failure) if failure.kind == FailureKind::Interrupted => {
                        Ok(ApprovalDecision::Cancel)
                    }
                    Err(failure) => Err(failure),
                }
            }
            decision => decision,
        };
        decision.unwrap_or_else(|failure| {
            let mut failed = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(failure);
            ApprovalDecision::Defer
        })
    }

    async fn ask(&self, call: PendingCall<'_>) -> Result<ApprovalDecision, Failure> {
        let approval = call.approval;
        let is_permission = approval.request.question.is_permission();
        match self.mode {
            ApprovalMode::Defer => Ok(ApprovalDecision::Defer),
            // A call that may already have run cannot be denied; a user has to say what happened.
            ApprovalMode::Deny if !is_permission => Ok(ApprovalDecision::Defer),
            ApprovalMode::Deny => {
                let reason = report_denied(approval);
                let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
                denied.push(approval.clone());
                Ok(ApprovalDecision::Unattended { reason })
            }
            ApprovalMode::Terminal | ApprovalMode::TerminalOnly => {
                if self
                    .context
                    .typed_command
                    .is_some_and(|typed| typed.is_for(&approval.request))
                {
                    return Ok(ApprovalDecision::allow());
                }
                let is_accepted_edit = call.is_accepted_edit();
                if is_accepted_edit && self.context.mode.get() == PermissionMode::AcceptEdits {
                    return Ok(ApprovalDecision::allow());
                }
                let can_wait = self.mode == ApprovalMode::Terminal;
                let question = Question {
                    waiting: approval.clone(),
                    folder: self.context.folder.into(),
                    preview: call.preview(PreviewLength::Full).await,
                    subject: call.subject(),
                    is_accepted_edit,
                    can_wait,
                    more: call.more,
                };
                let (reply, replied) = oneshot::channel();
                let _ = self
                    .messages
                    .send(ApproverMessage::Ask(Box::new(question), reply));
                // Without a loop that shows the turn, nobody can answer.
                let reply = replied.await.unwrap_or(Reply::Wait);
                Ok(match reply {
                    Reply::Answered(answer) => ApprovalDecision::Answer(answer),
                    Reply::Wait if can_wait => ApprovalDecision::Defer,
                    // Leaving the prompt does not answer what happened to the call.
                    Reply::Stop if !is_permission && can_wait => ApprovalDecision::Defer,
                    Reply::Stop | Reply::Wait => ApprovalDecision::Cancel,
                })
            }
        }
    }
}

impl Approver for TerminalApprover<'_> {
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(self.decide(call))
    }

    fn reconcile<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(self.decide(call))
    }

    fn answered_elsewhere(&self, _call: PendingCall<'_>) {
        screen::say("answered by another process, which continues the turn");
    }
}

/// Prints on stderr what was denied and how to allow it; returns the result that the model gets.
fn report_denied(waiting: &PendingApproval) -> Text {
    let request = &waiting.request;
    let (agent, tool) = (&request.agent, &request.tool);
    let next = match allowing_rule(waiting) {
        Some(rule) => format!("allow it with {rule}"),
        None => "run it at a terminal, where each call can be approved".to_owned(),
    };
    screen::say(&format!(
        "denied: {agent} wanted to call {tool}, and no user could be asked ({})\n  next: {next}",
        request.reason
    ));
    "no user could be asked to approve the call; say that it was not done and why".into()
}

/// Formats the user's reason for the model.
pub(super) fn reason(why: &str) -> Option<Text> {
    let why = why.trim();
    (!why.is_empty()).then(|| format!("the user said no: {why}").into())
}
