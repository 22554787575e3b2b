//! Handles messages: accepts or refuses them, recognises duplicates, queues them behind a run, and starts runs.

use super::io::{Effect, LoadError, Request, RunId, SlotKind, StoreFailure, TaskAnswer};
use super::state::{Admission, Await, Claim, PendingCancel, Run, State, Stop, Submission};
use super::{Task, TaskDocument};
use crate::server::backend::{RunCause, StopReason};
use crate::server::refusal::{Refusal, RefusalKind};
use crate::server::render::state_name;
use crate::server::shared::Phase;
use a2a::Message;
use lango_core::{TaskInsertOutcome, TaskPutOutcome};

/// How many times to try to store a follow-up while other replicas write the same task.
const MAX_RACES: usize = 4;

impl Task {
    pub(super) fn decide_submit(&mut self, submission: Submission) {
        let is_new = matches!(self.state, State::New { .. });
        if !is_new && self.document.has_message(&submission.message) {
            // A client that retries after a broken connection gets the answer that it missed.
            self.answer_snapshot(submission.caller, submission.view);
            return;
        }
        let is_waiting = self.document.is_settled() && !self.document.state().is_terminal();
        if let State::Running(run) = &mut self.state
            && is_waiting
            && run.queued.is_none()
        {
            run.queued = Some(submission);
            return;
        }
        let slot = if is_new {
            SlotKind::NewTask
        } else {
            SlotKind::FollowUp
        };
        match self.check_admission(&submission.message) {
            Ok(()) => self.perform(
                Effect::ReserveSlot(slot),
                Await::Slot(Admission::Submit(submission)),
            ),
            Err(refusal) => self.reject(&submission, refusal),
        }
    }

    /// Checks whether a message may start a run. Does not check the number of runs.
    fn check_admission(&self, message: &Message) -> Result<(), Refusal> {
        let document = &self.document;
        let context = message.context_id.as_ref();
        if context.is_some_and(|context| *context != document.task.context_id) {
            return Err(Refusal::field(
                "message.contextId",
                "is not the context of the task; leave it out, or send the context of the task",
            ));
        }
        if document.state().is_terminal() {
            let message = format!(
                "the task has ended as `{}` and accepts no messages; leave out `taskId` to start another task",
                state_name(document.state())
            );
            let refusal = Refusal::new(RefusalKind::UnsupportedOperation, message);
            return Err(refusal.about("taskId", self.id()));
        }
        if !matches!(self.state, State::New { .. }) {
            if matches!(self.state, State::Running(_)) || !document.is_settled() {
                return Err(Refusal::busy_task(self.id()));
            }
            if !document.has_room_for(message) {
                return Err(Refusal::field(
                    "message",
                    "does not fit into the task, which has nearly reached its size limit; start another task",
                ));
            }
        }
        if self.phase != Phase::Open {
            return Err(Refusal::stopping());
        }
        Ok(())
    }

    /// Refuses a message. If it was the first one of a new task, the task is not created.
    fn reject(&mut self, submission: &Submission, refusal: Refusal) {
        self.refuse(submission.caller, refusal);
        if let State::New { .. } = self.state {
            self.retire();
        }
    }

    pub(super) fn slot_reserved(&mut self, admission: Admission, reserved: Result<(), Refusal>) {
        let submission = match admission {
            Admission::Resume(resume) => return self.resume_in_slot(resume, reserved.is_ok()),
            Admission::Submit(submission) => submission,
        };
        if let Err(refusal) = reserved {
            self.reject(&submission, refusal);
        } else if let State::New { key } = &self.state {
            let key = key.clone();
            self.perform(Effect::StoreNew { key }, Await::Opened(submission));
        } else {
            let message = (*submission.message).clone();
            let update = self.document.add_message(message, self.now);
            let claim = Claim::FollowUp { submission, update };
            self.perform(Effect::Store, Await::Claimed(claim));
        }
    }

    /// Starts the first run of a new task, unless its message has already opened another task.
    pub(super) fn opened(
        &mut self,
        submission: Submission,
        opened: Result<TaskInsertOutcome, StoreFailure>,
    ) {
        match opened {
            Ok(TaskInsertOutcome::New) => {
                self.document.revision = 1;
                self.answer_and_start(submission, RunCause::NewTask);
            }
            Ok(TaskInsertOutcome::Known(id)) => {
                let known = id.to_string();
                let other = Some(known.clone());
                let awaiting = Await::KnownTask { submission, known };
                self.perform(Effect::Load { other }, awaiting);
            }
            Err(_) => {
                let answer = TaskAnswer::Refused(Refusal::store_failure());
                self.abandon_opening(&submission, answer);
            }
        }
    }

    /// Decides whether a message that has already opened a task is a retry, or must open another task.
    pub(super) fn known_loaded(
        &mut self,
        submission: &Submission,
        known: String,
        loaded: Result<Box<TaskDocument>, LoadError>,
    ) {
        let answer = match loaded {
            Ok(document) => match document.repetition(self.now) {
                Some(repetition) => TaskAnswer::OpenAgain(repetition),
                None => TaskAnswer::KnownTask(known),
            },
            Err(LoadError::Store(_)) => TaskAnswer::Refused(Refusal::store_failure()),
            Err(_) => TaskAnswer::KnownTask(known),
        };
        self.abandon_opening(submission, answer);
    }

    fn abandon_opening(&mut self, submission: &Submission, answer: TaskAnswer) {
        self.effects.push(Effect::ReleaseSlot);
        self.answer(submission.caller, answer);
        self.retire();
    }

    /// Starts the run for which a slot was reserved, if the store accepted this replica's write.
    pub(super) fn claimed(&mut self, claim: Claim, stored: Result<TaskPutOutcome, StoreFailure>) {
        if stored == Ok(TaskPutOutcome::Stored) {
            self.document.revision += 1;
            self.is_dirty = false;
            match claim {
                Claim::FollowUp { submission, update } => {
                    self.effects.push(Effect::Publish(update));
                    self.answer_and_start(submission, RunCause::FollowUp);
                }
                Claim::Resume { resume, message } => self.resume_claimed(&resume, *message),
            }
            return;
        }
        self.effects.push(Effect::ReleaseSlot);
        match claim {
            Claim::Resume { resume, .. } => self.resume_lost(&resume),
            // Another replica wrote the task first.
            Claim::FollowUp { submission, .. } if stored.is_ok() => {
                self.perform(Effect::Load { other: None }, Await::Reloaded(submission));
            }
            Claim::FollowUp { submission, .. } => {
                self.refuse(submission.caller, Refusal::store_failure());
                // The message is in memory, but possibly not in the store.
                self.retire();
            }
        }
    }

    /// Retries a follow-up on top of the write of another replica.
    pub(super) fn reloaded(
        &mut self,
        submission: Submission,
        loaded: Result<Box<TaskDocument>, LoadError>,
    ) {
        let Submission {
            caller,
            message,
            view,
        } = submission;
        match loaded {
            Ok(document) => self.adopt(*document),
            Err(error) => {
                let refusal = error.refusal(self.id());
                self.refuse(caller, refusal);
                // The message is in memory, but not in the store.
                self.retire();
                return;
            }
        }
        let State::Idle(idle) = &mut self.state else {
            return;
        };
        idle.lost_races += 1;
        if idle.lost_races < MAX_RACES {
            self.decide_after_sync(caller, Request::Submit { message, view });
        } else {
            let refusal = Refusal::busy_task(self.id());
            self.refuse(caller, refusal);
        }
    }

    /// Answers the caller with the task as it is before any report of the run, then starts the run.
    fn answer_and_start(&mut self, submission: Submission, cause: RunCause) {
        self.answer_snapshot(submission.caller, submission.view);
        self.start(cause, *submission.message);
    }

    /// Starts a run in the reserved slot. If a cancel is pending, stops the run immediately.
    pub(super) fn start(&mut self, cause: RunCause, message: Message) {
        self.runs += 1;
        let id = RunId(self.runs);
        let cancel = match &mut self.state {
            State::Idle(idle) => idle.cancel.take(),
            _ => None,
        };
        self.state = State::Running(Run {
            id,
            attempts: self.document.attempts,
            stop: Stop::NotRequested,
            unstored: None,
            queued: None,
            is_superseded: false,
        });
        self.effects.push(Effect::StartRun {
            run: id,
            cause,
            message: Box::new(message),
        });
        if cancel.is_some() {
            self.stop_run(StopReason::Cancelled, cancel);
        }
        if self.phase == Phase::Stopping {
            self.stop_run(StopReason::Shutdown, None);
        }
    }

    /// Signals the run to stop. If it has already been signalled, keeps the first reason, and only adds the callers of
    /// a cancel.
    pub(super) fn stop_run(&mut self, reason: StopReason, cancel: Option<PendingCancel>) {
        let State::Running(run) = &mut self.state else {
            return;
        };
        match &mut run.stop {
            Stop::NotRequested => {
                run.stop = Stop::Requested { reason, cancel };
                self.effects.push(Effect::StopRun(reason));
            }
            Stop::Requested {
                cancel: pending, ..
            } => {
                if let Some(cancel) = cancel {
                    let pending = pending.get_or_insert_default();
                    pending.callers.extend(cancel.callers);
                }
            }
        }
    }

    pub(super) fn enter_phase(&mut self, phase: Phase) {
        self.phase = phase;
        if phase == Phase::Stopping {
            self.stop_run(StopReason::Shutdown, None);
        }
    }
}
