//! Storing a task. A status is stored, then published. Where another replica has written the task meanwhile, its write stands
//! if it is an end, or has a newer message of the client, or if nothing runs here. Only a run overwrites what another replica
//! wrote about the same message: the agent's lease decides which run reports.

use super::document::{Mark, TaskDocument, Update, is_settled};
use super::io::{Answer, CallerId, Effect, LoadError, StoreFailure};
use super::state::{Await, RunOutcome, State, Step, Write};
use super::{Task, submit::at_work};
use crate::server::backend::StopReason;
use crate::server::message_identity::MessageIdentity;
use crate::server::refusal::Refusal;
use crate::server::{Report, ReportError};
use lango_core::Put;

/// How often a task is written again that another replica wrote first.
const MAX_WRITES: usize = 4;

impl Task {
    /// Applies a report: stores it if it must be stored first, then publishes it.
    pub(super) fn record(&mut self, report: Report, reporter: Option<CallerId>) {
        let is_status = !matches!(report, Report::Artifact(_));
        let mark = is_status.then(|| (self.document.mark(), report.clone()));
        let update = match self.document.apply(report, self.now) {
            Ok(update) => update,
            Err(error) => {
                if matches!(error, ReportError::Over { .. }) {
                    self.forget_unstored();
                }
                self.answer_reporter(reporter, Err(error));
                return;
            }
        };
        let attempts = std::mem::take(&mut self.document.attempts);
        match mark {
            Some((mark, report)) if update.is_binding => {
                let write = Write::Status {
                    mark: Box::new(mark),
                    attempts,
                    report: Box::new(report),
                    update,
                    reporter,
                    tries: MAX_WRITES,
                };
                self.perform(Effect::Store, Await::Stored(write));
            }
            _ => {
                self.is_dirty = true;
                self.effects.push(Effect::Publish(update));
                self.reported_ok(reporter);
            }
        }
    }

    pub(super) fn flush(&mut self) {
        if self.is_dirty {
            let write = Write::Flush { tries: MAX_WRITES };
            self.perform(Effect::Store, Await::Stored(write));
        }
    }

    pub(super) fn stored(&mut self, write: Write, stored: Result<Put, StoreFailure>) {
        match (stored, write) {
            (Ok(Put::Kept), write) => {
                self.document.revision += 1;
                self.is_dirty = false;
                self.written(write);
            }
            (Ok(Put::Overtaken), Write::FollowUp { submit, tries, .. }) => {
                self.follow_up_lost(submit, tries);
            }
            (
                _,
                Write::Resume {
                    resume,
                    attempts_before,
                    ..
                },
            ) => self.resume_lost(&resume, attempts_before),
            (Ok(Put::Overtaken), write) => {
                self.perform(Effect::Load { other: None }, Await::Conflict(write));
            }
            (Err(failure), write) => self.write_failed(write, failure),
        }
    }

    fn written(&mut self, write: Write) {
        match write {
            Write::Status {
                update, reporter, ..
            } => {
                self.forget_unstored();
                self.effects.push(Effect::Publish(update));
                self.reported_ok(reporter);
            }
            Write::Flush { .. } => {}
            Write::FollowUp { submit, update, .. } => self.follow_up_stored(submit, update),
            Write::Resume {
                resume, message, ..
            } => self.resume_stored(&resume, *message),
        }
    }

    /// Decides whether to overwrite what another replica has written.
    pub(super) fn conflict_loaded(
        &mut self,
        mut write: Write,
        loaded: Result<Box<TaskDocument>, LoadError>,
    ) {
        let revision = match loaded {
            Ok(stored) if stored.state().is_terminal() => {
                self.ended_elsewhere(write, Some(*stored));
                return;
            }
            Ok(stored) if !self.may_overwrite(&stored) => {
                self.superseded(write, *stored);
                return;
            }
            Ok(stored) => stored.revision,
            Err(LoadError::Damaged { revision }) => revision,
            Err(LoadError::NotFound) => {
                self.ended_elsewhere(write, None);
                return;
            }
            Err(LoadError::Store(failure)) => {
                self.write_failed(write, failure);
                return;
            }
        };
        self.document.revision = revision;
        if write.use_try() {
            self.perform(Effect::Store, Await::Stored(write));
        } else {
            let detail = "other replicas write the task all the time".to_owned();
            self.write_failed(write, StoreFailure(detail));
        }
    }

    fn may_overwrite(&self, stored: &TaskDocument) -> bool {
        let identity = |document: &TaskDocument| {
            let message = document.last_user_message();
            message.map(MessageIdentity::of)
        };
        matches!(self.state, State::Running(_)) && identity(stored) == identity(&self.document)
    }

    /// Takes the task as another replica has written it. A run here is for an earlier message, and is left to that replica.
    fn superseded(&mut self, write: Write, stored: TaskDocument) {
        self.undo_write(write);
        self.adopt(stored);
        self.forget_unstored();
        self.stop_run(StopReason::Shutdown, None);
        // A cancel that could not be stored here is for the replica that has the task.
        if let Some(Step::AnswerCancels { .. }) = self.steps.last() {
            self.steps.pop();
            self.push([Step::RequestCancel]);
        }
    }

    fn write_failed(&mut self, write: Write, failure: StoreFailure) {
        match write {
            Write::Status {
                mark,
                attempts,
                report,
                update,
                reporter,
                ..
            } => {
                self.undo(*mark, attempts);
                self.is_dirty = true;
                self.remember_unstored(*report, &update);
                let error = ReportError::Store {
                    id: self.id().to_owned(),
                    detail: failure.0,
                };
                self.answer_reporter(reporter, Err(error));
            }
            Write::Flush { .. } => self.is_dirty = true,
            Write::FollowUp { submit, .. } => {
                self.effects.push(Effect::ReleaseSlot);
                self.refuse(submit.caller, Refusal::store_failure());
                // The message is in memory and maybe not in the store.
                self.retire();
            }
            Write::Resume {
                resume,
                attempts_before,
                ..
            } => self.resume_lost(&resume, attempts_before),
        }
    }

    fn undo(&mut self, mark: Mark, attempts: u32) {
        self.document.restore(mark);
        self.document.attempts = attempts;
    }

    /// The task has ended on another replica, or its record is gone: the run here stops.
    fn ended_elsewhere(&mut self, write: Write, stored: Option<TaskDocument>) {
        self.undo_write(write);
        match stored {
            Some(stored) => {
                self.adopt(stored);
                self.forget_unstored();
                self.stop_run(StopReason::Cancelled, None);
            }
            None => self.lose_record(),
        }
    }

    /// Undoes a status that will not be stored.
    fn undo_write(&mut self, write: Write) {
        if let Write::Status {
            mark,
            attempts,
            reporter,
            ..
        } = write
        {
            self.undo(*mark, attempts);
            let id = self.id().to_owned();
            self.answer_reporter(reporter, Err(ReportError::Over { id }));
        }
    }

    fn lose_record(&mut self) {
        self.stop_run(StopReason::Cancelled, None);
        let State::Running(run) = &mut self.state else {
            self.retire();
            return;
        };
        let id = run.id;
        let cancel = run.stop.take_cancel().unwrap_or_default();
        let queued = run.queued.take().map(|submit| submit.caller);
        let refusal = Refusal::no_task(&self.document.task.id);
        for caller in cancel.callers.into_iter().chain(queued) {
            self.refuse(caller, refusal.clone());
        }
        self.steps.clear();
        self.is_dirty = false;
        self.state = State::Orphaned(id);
    }

    /// Remembers a status that settles the task until it can be stored.
    fn remember_unstored(&mut self, report: Report, update: &Update) {
        if !is_settled(&update.state) {
            return;
        }
        match &mut self.state {
            State::Running(run) => run.unstored = Some(report),
            State::Idle(idle) => idle.outcome = RunOutcome::Unstored(report),
            State::New | State::Orphaned(_) | State::Retired => {}
        }
    }

    fn forget_unstored(&mut self) {
        let is_settled = self.document.is_settled();
        match &mut self.state {
            State::Running(run) => run.unstored = None,
            State::Idle(idle) if is_settled => idle.outcome = RunOutcome::Stored,
            State::Idle(idle) => {
                if let RunOutcome::Unstored(_) = idle.outcome {
                    idle.outcome = RunOutcome::Stored;
                }
            }
            State::New | State::Orphaned(_) | State::Retired => {}
        }
    }

    /// Answers a run. A message that waited for it to return is refused if it works on instead.
    fn reported_ok(&mut self, reporter: Option<CallerId>) {
        self.answer_reporter(reporter, Ok(()));
        if reporter.is_some()
            && !self.document.is_settled()
            && let State::Running(run) = &mut self.state
            && let Some(queued) = run.queued.take()
        {
            let refusal = at_work(self.id());
            self.refuse(queued.caller, refusal);
        }
    }

    fn answer_reporter(&mut self, reporter: Option<CallerId>, result: Result<(), ReportError>) {
        if let Some(caller) = reporter {
            self.answer(caller, Answer::Report(result));
        }
    }
}

impl Write {
    /// Uses one of the tries that are left, if there is one.
    fn use_try(&mut self) -> bool {
        match self {
            Self::Status { tries, .. } | Self::Flush { tries } => {
                *tries = tries.saturating_sub(1);
                *tries > 0
            }
            Self::FollowUp { .. } | Self::Resume { .. } => false,
        }
    }
}
