//! Resumes a task that no replica runs: its process died or deferred it.

use super::Task;
use super::io::{CallerId, Effect, Recovery, SlotKind, TaskAnswer};
use super::state::{Admission, Await, Claim, PendingCancel, Resumable, Resume, State, Step};
use crate::server::backend::{RunCause, StopReason};
use crate::server::shared::Phase;
use crate::server::{Report, StatusMessage};
use a2a::Message;

impl Task {
    pub(super) fn decide_recover(&mut self, caller: CallerId, is_cancelled: bool) {
        let recovery = match &self.state {
            State::Running(_) => Recovery::Skipped,
            _ if self.document.is_settled() => Recovery::Settled,
            State::Idle(idle) => match idle.resumable {
                Some(resumable) => {
                    self.resume(Resume {
                        caller: Some(caller),
                        resumable,
                        is_cancelled,
                    });
                    return;
                }
                None => Recovery::Skipped,
            },
            State::New { .. } | State::Orphaned(_) | State::Retired => Recovery::Skipped,
        };
        self.answer(caller, TaskAnswer::Recovery(recovery));
    }

    /// Starts a run for the client's last message. If several replicas try, the one whose write the store accepts
    /// starts it.
    pub(super) fn resume(&mut self, resume: Resume) {
        if self.phase == Phase::Open {
            self.perform(
                Effect::ReserveSlot(SlotKind::Resumed),
                Await::Slot(Admission::Resume(resume)),
            );
        } else {
            self.answer_resume(&resume, Recovery::Skipped);
        }
    }

    /// Counts the attempt, and stores it to claim the run. Fails the task after too many attempts, but only if the
    /// agent has not started the work: otherwise the agent itself resumes or fails it.
    pub(super) fn resume_in_slot(&mut self, resume: Resume, is_reserved: bool) {
        if !is_reserved {
            self.answer_resume(&resume, Recovery::NoSlot);
            return;
        }
        let attempts = self.document.attempts;
        let max_attempts = self.document.limits().max_attempts;
        let is_started = resume.resumable == Resumable::Interrupted;
        let is_allowed = attempts < max_attempts || is_started;
        let text = match self.document.last_user_message() {
            Some(message) if is_allowed => {
                let message = Box::new(message.clone());
                self.document.attempts = attempts.saturating_add(1);
                let claim = Claim::Resume { resume, message };
                self.perform(Effect::Store, Await::Claimed(claim));
                return;
            }
            Some(_) => format!(
                "the task was resumed {max_attempts} times, and each time the process ended before the work started"
            ),
            None => "the stored task has no message from the client".to_owned(),
        };
        self.effects.push(Effect::ReleaseSlot);
        if let Some(caller) = resume.caller {
            self.push([Step::AnswerRecovery {
                caller,
                recovery: Recovery::Settled,
            }]);
        }
        self.push([Step::Record {
            report: Report::Failed(if is_started {
                text.into()
            } else {
                StatusMessage::from(text).not_started()
            }),
            reporter: None,
        }]);
    }

    pub(super) fn resume_claimed(&mut self, resume: &Resume, message: Message) {
        self.start(RunCause::Resumed, message);
        if resume.is_cancelled {
            self.stop_run(StopReason::Cancelled, Some(PendingCancel::default()));
        }
        self.answer_resume(resume, Recovery::Resumed);
    }

    /// Undoes the attempt, because another replica resumed the task or the attempt cannot be stored now.
    pub(super) fn resume_lost(&mut self, resume: &Resume) {
        self.document.attempts = self.document.attempts.saturating_sub(1);
        self.answer_resume(resume, Recovery::Skipped);
    }

    fn answer_resume(&mut self, resume: &Resume, recovery: Recovery) {
        if let Some(caller) = resume.caller {
            self.answer(caller, TaskAnswer::Recovery(recovery));
        }
    }
}
