//! Cancelling: a run here is stopped first, a run on another replica is stopped by that one, and what waits is ended here.

use super::Task;
use super::io::{CallerId, Effect, StoreFailure};
use super::state::{Await, Idle, PendingCancel, Resumable, Resume, RunOutcome, State, Step};
use crate::server::Report;
use crate::server::backend::StopReason;
use crate::server::refusal::{Kind, Refusal};
use crate::server::render::{View, word};
use a2a::TaskState;

impl Task {
    pub(super) fn decide_cancel(&mut self, caller: CallerId, found: Option<Resumable>) {
        if self.document.state().is_terminal() {
            let refusal = self.not_cancelable();
            self.refuse(caller, refusal);
            return;
        }
        let is_settled = self.document.is_settled();
        let cancel = PendingCancel::of(caller);
        match &mut self.state {
            State::Running(_) => self.stop_run(StopReason::Cancelled, Some(cancel)),
            State::Idle(idle) => {
                let pending = idle.cancel.get_or_insert_default();
                pending.callers.extend(cancel.callers);
                if is_settled || matches!(idle.outcome, RunOutcome::Unstored(_)) {
                    self.push([Step::EndCancelled]);
                } else {
                    self.request_cancel(found);
                }
            }
            State::New | State::Orphaned(_) | State::Retired => {
                let refusal = Refusal::no_task(self.id());
                self.refuse(caller, refusal);
            }
        }
    }

    /// Another replica accepted a cancel of what runs here.
    pub(super) fn cancel_requested(&mut self) {
        if !self.document.is_settled() {
            self.stop_run(StopReason::Cancelled, Some(PendingCancel::default()));
        }
    }

    /// Resumes an interrupted task to cancel it here; otherwise waits for the replica that runs it.
    pub(super) fn cancel_stored(
        &mut self,
        found: Option<Resumable>,
        result: Result<(), StoreFailure>,
    ) {
        match (result, found) {
            (Err(_), _) => {
                for caller in self.take_cancel().callers {
                    self.refuse(caller, Refusal::store_failure());
                }
            }
            (Ok(()), Some(found)) => {
                self.push([Step::CheckCancel { is_overdue: false }]);
                self.resume(Resume {
                    caller: None,
                    found,
                    is_cancelled: true,
                });
            }
            // It may have ended meanwhile.
            (Ok(()), None) => self.push([Step::CheckCancel { is_overdue: false }]),
        }
    }

    /// Answers a cancel that another replica performs, when it has or when it is overdue.
    pub(super) fn check_cancel(&mut self, is_overdue: bool) {
        let State::Idle(Idle {
            cancel: Some(_), ..
        }) = self.state
        else {
            return;
        };
        if self.document.is_settled() {
            self.push([Step::EndCancelled]);
        } else if is_overdue {
            // The request is stored and will be performed; the task as it is now is all there is to say.
            for caller in self.take_cancel().callers {
                self.answer_snapshot(caller, View::default());
            }
        }
    }

    /// Has the agent cancel a task without a run, then stores the end. If the agent cannot, the task stays as it is.
    pub(super) fn end_cancelled(&mut self) {
        let State::Idle(idle) = &self.state else {
            return;
        };
        // An end that could not be stored yet is an end.
        let is_unstored = matches!(idle.outcome, RunOutcome::Unstored(_));
        if is_unstored || self.document.state().is_terminal() {
            self.push([Step::AnswerCancels { obstacle: None }]);
        } else {
            self.perform(Effect::CancelInAgent, Await::AgentCancel);
        }
    }

    pub(super) fn agent_cancelled(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.push([
                Step::Record {
                    report: Report::Cancelled("the client cancelled the task".into()),
                    reporter: None,
                },
                Step::AnswerCancels { obstacle: None },
            ]),
            Err(reason) => self.push([Step::AnswerCancels {
                obstacle: Some(reason),
            }]),
        }
    }

    pub(super) fn answer_cancels(&mut self, obstacle: Option<&str>) {
        for caller in self.take_cancel().callers {
            let refusal = match (self.document.state(), obstacle) {
                (TaskState::Canceled, _) => {
                    self.answer_snapshot(caller, View::default());
                    continue;
                }
                (state, _) if state.is_terminal() => self.not_cancelable(),
                (_, Some(reason)) => Refusal::new(
                    Kind::TaskNotCancelable,
                    format!("the task cannot be taken back: {reason}"),
                )
                .about("taskId", self.id()),
                (_, None) => Refusal::new(
                    Kind::Internal,
                    "how the task ended could not be kept; try again",
                ),
            };
            self.refuse(caller, refusal);
        }
    }

    fn take_cancel(&mut self) -> PendingCancel {
        match &mut self.state {
            State::Idle(idle) => idle.cancel.take().unwrap_or_default(),
            _ => PendingCancel::default(),
        }
    }

    fn not_cancelable(&self) -> Refusal {
        let message = format!("the task has ended as `{}`", word(self.document.state()));
        Refusal::new(Kind::TaskNotCancelable, message).about("taskId", self.id())
    }
}
