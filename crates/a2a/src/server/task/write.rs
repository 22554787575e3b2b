//! Stores a task. A status is stored first, then published. If another replica has written the task in the meantime,
//! this replica accepts that write if it ends the task, if it has a newer message from the client, or if nothing runs
//! here. Only a run overwrites what another replica wrote about the same message: the agent's lease ensures that only
//! one run reports.

use super::Task;
use super::document::{TaskDocument, Update};
use super::io::{Effect, LoadError, ReportCaller, StoreFailure, TaskAnswer};
use super::state::{Await, RunOutcome, State, StatusWrite, Write};
use crate::server::backend::StopReason;
use crate::server::message_identity::MessageIdentity;
use crate::server::refusal::Refusal;
use crate::server::{Report, ReportError};
use lango_core::TaskPutOutcome;

/// How many times to try a write while other replicas write the same task.
const MAX_WRITES: usize = 4;

impl Task {
    /// Applies a report: stores it if it must be stored first, then publishes it.
    pub(super) fn record(&mut self, report: Report, reporter: Option<ReportCaller>) {
        let is_status = !matches!(report, Report::Artifact(_));
        let before = is_status.then(|| (self.document.checkpoint(&report), report.clone()));
        let updates = match self.document.apply(report, self.now) {
            Ok(updates) => updates,
            Err(error) => {
                if matches!(error, ReportError::Over { .. }) {
                    self.forget_unstored();
                }
                self.answer_reporter(reporter, Err(error));
                return;
            }
        };
        self.document.attempts = 0;
        match before {
            Some((checkpoint, report)) if updates.iter().any(|update| update.is_binding) => {
                let status = StatusWrite {
                    checkpoint,
                    report,
                    updates,
                    reporter,
                };
                self.write(Write::Status(Box::new(status)), MAX_WRITES);
            }
            _ => {
                self.is_dirty = true;
                self.publish(updates);
                self.reported_ok(reporter);
            }
        }
    }

    pub(super) fn flush(&mut self) {
        if self.is_dirty {
            self.write(Write::Flush, MAX_WRITES);
        }
    }

    fn write(&mut self, write: Write, tries: usize) {
        self.perform(Effect::Store, Await::Stored { write, tries });
    }

    pub(super) fn stored(
        &mut self,
        write: Write,
        tries: usize,
        stored: Result<TaskPutOutcome, StoreFailure>,
    ) {
        match stored {
            Ok(TaskPutOutcome::Stored) => {
                self.document.revision += 1;
                self.is_dirty = false;
                if let Write::Status(status) = write {
                    self.forget_unstored();
                    self.publish(status.updates);
                    self.reported_ok(status.reporter);
                }
            }
            Ok(TaskPutOutcome::Outdated) => {
                let awaiting = Await::Conflict { write, tries };
                self.perform(Effect::Load { other: None }, awaiting);
            }
            Err(failure) => self.write_failed(write, failure),
        }
    }

    /// Decides whether to overwrite what another replica has written.
    pub(super) fn conflict_loaded(
        &mut self,
        write: Write,
        tries: usize,
        loaded: Result<Box<TaskDocument>, LoadError>,
    ) {
        let revision = match loaded {
            Ok(stored) if stored.state().is_terminal() || !self.may_overwrite(&stored) => {
                self.accept_other_write(write, *stored);
                return;
            }
            Ok(stored) => stored.revision,
            Err(LoadError::Damaged { revision }) => revision,
            Err(LoadError::NotFound) => {
                self.undo(write);
                self.handle_deleted_record();
                return;
            }
            Err(LoadError::Store(failure)) => {
                self.write_failed(write, failure);
                return;
            }
        };
        self.document.revision = revision;
        if tries > 1 {
            self.write(write, tries - 1);
        } else {
            let detail = "other replicas keep writing the task".to_owned();
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

    /// Accepts the task as another replica has written it, and stops any run here.
    fn accept_other_write(&mut self, write: Write, stored: TaskDocument) {
        self.undo(write);
        let reason = if stored.state().is_terminal() {
            StopReason::Cancelled
        } else {
            StopReason::Shutdown
        };
        self.adopt(stored);
        self.forget_unstored();
        self.stop_run(reason, None);
        if let State::Running(run) = &mut self.state {
            run.is_superseded = true;
        }
    }

    fn write_failed(&mut self, write: Write, failure: StoreFailure) {
        self.is_dirty = true;
        if let Write::Status(status) = write {
            self.document.restore(status.checkpoint);
            // If a joint write fails, nothing of it has happened, so there is nothing to store later.
            if status.reporter.is_none_or(|reporter| !reporter.is_joint) {
                self.remember_unstored(status.report);
            }
            let error = ReportError::Store {
                id: self.id().to_owned(),
                detail: failure.0,
            };
            self.answer_reporter(status.reporter, Err(error));
        }
    }

    /// Reverts the document when a pending status write is dropped, and answers the reporter that the task has ended.
    fn undo(&mut self, write: Write) {
        if let Write::Status(status) = write {
            self.document.restore(status.checkpoint);
            let id = self.id().to_owned();
            self.answer_reporter(status.reporter, Err(ReportError::Over { id }));
        }
    }

    /// Stops the run of a task whose record was deleted, and refuses its callers.
    fn handle_deleted_record(&mut self) {
        self.stop_run(StopReason::Cancelled, None);
        let State::Running(run) = &mut self.state else {
            self.retire();
            return;
        };
        let id = run.id;
        let cancel = run.stop.take_cancel().unwrap_or_default();
        let queued = run.queued.take().map(|queued| queued.caller);
        let refusal = Refusal::no_task(&self.document.task.id);
        for caller in cancel.callers.into_iter().chain(queued) {
            self.refuse(caller, refusal.clone());
        }
        self.steps.clear();
        self.is_dirty = false;
        self.state = State::Orphaned(id);
    }

    /// Remembers a status that settles the task, so that it is stored as soon as possible.
    fn remember_unstored(&mut self, report: Report) {
        if let Report::Working(_) | Report::Artifact(_) = report {
            return;
        }
        match &mut self.state {
            State::Running(run) => run.unstored = Some(report),
            State::Idle(idle) => idle.outcome = RunOutcome::Unstored(report),
            State::New { .. } | State::Orphaned(_) | State::Retired => {}
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
            State::New { .. } | State::Orphaned(_) | State::Retired => {}
        }
    }

    /// Confirms a report to the run. If the run continues to work, refuses a message that waited for it to return.
    fn reported_ok(&mut self, reporter: Option<ReportCaller>) {
        self.answer_reporter(reporter, Ok(()));
        if reporter.is_some()
            && !self.document.is_settled()
            && let State::Running(run) = &mut self.state
            && let Some(queued) = run.queued.take()
        {
            let refusal = Refusal::busy_task(self.id());
            self.refuse(queued.caller, refusal);
        }
    }

    fn answer_reporter(&mut self, reporter: Option<ReportCaller>, result: Result<(), ReportError>) {
        if let Some(reporter) = reporter {
            self.answer(reporter.id, TaskAnswer::Report(result));
        }
    }

    fn publish(&mut self, updates: Vec<Update>) {
        self.effects
            .extend(updates.into_iter().map(Effect::Publish));
    }
}
