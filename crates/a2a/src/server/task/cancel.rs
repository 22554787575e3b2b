//! Cancels a task. A run on this replica is stopped first; a run on another replica is stopped by that replica; a task
//! that waits is ended here.

use super::Task;
use super::io::{CallerId, Effect, StoreFailure};
use super::state::{Await, Idle, PendingCancel, Resume, State, Step};
use crate::server::Report;
use crate::server::backend::StopReason;
use crate::server::refusal::{Refusal, RefusalKind};
use crate::server::render::{View, state_name};
use a2a::TaskState;

impl Task {
    pub(super) fn decide_cancel(&mut self, caller: CallerId) {
        if self.document.state().is_terminal() {
            let refusal = self.not_cancelable();
            self.refuse(caller, refusal);
            return;
        }
        let is_settled = self.document.is_settled();
        match &mut self.state {
            State::Running(_) => {
                let callers = vec![caller];
                self.stop_run(StopReason::Cancelled, Some(PendingCancel { callers }));
            }
            State::Idle(idle) => {
                let pending = idle.cancel.get_or_insert_default();
                pending.callers.push(caller);
                if is_settled || idle.is_unstored() {
                    self.push([Step::EndCancelled]);
                } else {
                    self.request_cancel();
                }
            }
            State::New { .. } | State::Orphaned(_) | State::Retired => {
                let refusal = Refusal::no_task(self.id());
                self.refuse(caller, refusal);
            }
        }
    }

    /// Handles a cancel that another replica accepted for a run on this one.
    pub(super) fn cancel_requested(&mut self) {
        if !self.document.is_settled() {
            self.stop_run(StopReason::Cancelled, Some(PendingCancel::default()));
        }
    }

    /// Resumes an interrupted task to cancel it here; otherwise waits for the replica that runs it.
    pub(super) fn cancel_stored(&mut self, result: Result<(), StoreFailure>) {
        if result.is_err() {
            for caller in self.take_cancel().callers {
                self.refuse(caller, Refusal::store_failure());
            }
            return;
        }
        // The task may have ended in the meantime.
        self.push([Step::CheckCancel { is_overdue: false }]);
        if let State::Idle(idle) = &self.state
            && let Some(resumable) = idle.resumable
        {
            self.resume(Resume {
                caller: None,
                resumable,
                is_cancelled: true,
            });
        }
    }

    /// Answers a cancel that another replica performs, once that is done or overdue.
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
            // The request is stored and will be performed later. Until then, return the current task.
            for caller in self.take_cancel().callers {
                self.answer_snapshot(caller, View::default());
            }
        }
    }

    /// Asks the agent to cancel a task without a run, then stores the end. If the agent cannot, the task stays
    /// unchanged.
    pub(super) fn end_cancelled(&mut self) {
        let State::Idle(idle) = &self.state else {
            return;
        };
        // A task whose end could not be stored yet has ended, too.
        if idle.is_unstored() || self.document.state().is_terminal() {
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
        let is_over = self.document.state().is_terminal() || obstacle.is_some();
        if let State::Idle(idle) = &self.state
            && !is_over
            && !idle.is_unstored()
        {
            // Another replica has received a newer message for the task, and performs the cancel.
            self.push([Step::RequestCancel]);
            return;
        }
        for caller in self.take_cancel().callers {
            let refusal = match (self.document.state(), obstacle) {
                (TaskState::Canceled, _) => {
                    self.answer_snapshot(caller, View::default());
                    continue;
                }
                (state, _) if state.is_terminal() => self.not_cancelable(),
                (_, Some(reason)) => Refusal::new(
                    RefusalKind::TaskNotCancelable,
                    format!("the task cannot be cancelled: {reason}"),
                )
                .about("taskId", self.id()),
                (_, None) => Refusal::store_failure(),
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
        let message = format!(
            "the task has ended as `{}`",
            state_name(self.document.state())
        );
        Refusal::new(RefusalKind::TaskNotCancelable, message).about("taskId", self.id())
    }
}
