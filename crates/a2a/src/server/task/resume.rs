//! Resuming a task that no replica is at work on: its process died, or deferred it.

use super::Task;
use super::io::{Answer, CallerId, Effect, Recovery, SlotKind};
use super::state::{Admission, Await, PendingCancel, Resumable, Resume, State, Step, Write};
use crate::server::Report;
use crate::server::backend::{RunCause, StopReason};
use crate::server::shared::Phase;
use a2a::Message;

impl Task {
    pub(super) fn decide_recover(
        &mut self,
        caller: CallerId,
        is_cancelled: bool,
        found: Option<Resumable>,
    ) {
        let recovery = match (&self.state, found) {
            (State::Running(_), _) => Recovery::Skipped,
            _ if self.document.is_settled() => Recovery::Settled,
            (State::Idle(_), Some(found)) => {
                self.resume(Resume {
                    caller: Some(caller),
                    found,
                    is_cancelled,
                });
                return;
            }
            _ => Recovery::Skipped,
        };
        self.answer(caller, Answer::Recovery(recovery));
    }

    /// Starts a run for the last message of the client. Of several replicas that try, the one whose write is accepted does it.
    pub(super) fn resume(&mut self, resume: Resume) {
        if self.phase == Phase::Open {
            self.perform(
                Effect::ReserveSlot(SlotKind::Recovering),
                Await::Slot(Admission::Resume(resume)),
            );
        } else {
            self.answer_resume(&resume, Recovery::Skipped);
        }
    }

    /// Counts the attempt. Work that was started is never given up here: the agent continues it, or fails it.
    pub(super) fn resume_in_slot(&mut self, resume: Resume, is_reserved: bool) {
        if !is_reserved {
            self.answer_resume(&resume, Recovery::NoSlot);
            return;
        }
        let attempts_before = self.document.attempts;
        let is_allowed =
            attempts_before < self.max_attempts || resume.found == Resumable::Interrupted;
        let text = match self.document.last_user_message() {
            Some(message) if is_allowed => {
                let message = Box::new(message.clone());
                self.document.attempts = attempts_before.saturating_add(1);
                let write = Write::Resume {
                    resume,
                    message,
                    attempts_before,
                };
                self.perform(Effect::Store, Await::Stored(write));
                return;
            }
            Some(_) => format!(
                "it was taken up {} times, and each time the process ended before the work began",
                self.max_attempts
            ),
            None => "nothing is known of what was asked for".to_owned(),
        };
        self.effects.push(Effect::ReleaseSlot);
        if let Some(caller) = resume.caller {
            self.push([Step::AnswerRecovery {
                caller,
                recovery: Recovery::Settled,
            }]);
        }
        self.push([Step::Record {
            report: Report::Failed(text.into()),
            reporter: None,
        }]);
    }

    pub(super) fn resume_stored(&mut self, resume: &Resume, message: Message) {
        self.start(RunCause::Resumed, message);
        if resume.is_cancelled {
            self.stop_run(StopReason::Cancelled, Some(PendingCancel::default()));
        }
        self.answer_resume(resume, Recovery::Resumed);
    }

    /// Another replica resumed the task, or it cannot be stored now.
    pub(super) fn resume_lost(&mut self, resume: &Resume, attempts_before: u32) {
        self.document.attempts = attempts_before;
        self.effects.push(Effect::ReleaseSlot);
        self.answer_resume(resume, Recovery::Skipped);
    }

    fn answer_resume(&mut self, resume: &Resume, recovery: Recovery) {
        if let Some(caller) = resume.caller {
            self.answer(caller, Answer::Recovery(recovery));
        }
    }
}
