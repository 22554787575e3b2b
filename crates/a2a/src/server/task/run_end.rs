//! Handles the reports of a run, and its end.

use super::Task;
use super::io::{Effect, ReportCaller, Request, RunEnd, RunId, TaskAnswer};
use super::state::{Await, Idle, PendingCancel, RunOutcome, State, Step, Stop};
use crate::server::backend::StopReason;
use crate::server::{Report, ReportError};

impl Task {
    pub(super) fn reported(&mut self, caller: ReportCaller, run: RunId, report: Report) {
        match &self.state {
            State::Running(running) if running.id == run && !running.is_superseded => {
                self.push([Step::Record {
                    report,
                    reporter: Some(caller),
                }]);
            }
            _ => {
                let id = self.id().to_owned();
                let answer = TaskAnswer::Report(Err(ReportError::Over { id }));
                self.answer(caller.id, answer);
            }
        }
    }

    /// Handles the end of a run. If the run did not report a final status, asks the agent before failing the task: the
    /// work may be done, and only the report may have failed. If the run was deferred, superseded, or stopped because of
    /// a shutdown, leaves the task to the replica that resumes it.
    pub(super) fn run_ended(&mut self, run: RunId, end: RunEnd) {
        match &self.state {
            State::Running(running) if running.id == run => {}
            State::Orphaned(orphan) if *orphan == run => {
                self.retire();
                return;
            }
            _ => return,
        }
        let State::Running(running) = std::mem::replace(&mut self.state, State::Retired) else {
            return;
        };
        let (reason, cancel) = match running.stop {
            Stop::NotRequested => (None, None),
            Stop::Requested { reason, cancel } => (Some(reason), cancel),
        };
        let is_deferred = end == RunEnd::Deferred
            || reason == Some(StopReason::Shutdown)
            || running.is_superseded;
        let attempts = match end {
            // A deferred run is no failed attempt.
            _ if is_deferred => 0,
            RunEnd::Panicked => running.attempts,
            _ => self.document.attempts,
        };
        // A settled task is already stored; do not write it again only for its attempts.
        if self.document.attempts != attempts && !self.document.is_settled() {
            self.document.attempts = attempts;
            self.is_dirty = true;
        }
        let outcome = match running.unstored {
            Some(report) => RunOutcome::Unstored(report),
            None => RunOutcome::Stored,
        };
        self.state = State::Idle(Idle::new(outcome, cancel));
        if let Some(queued) = running.queued {
            let (message, view) = (queued.message, queued.view);
            self.request(queued.caller, Request::Submit { message, view });
        }
        self.push([Step::Conclude { end, is_deferred }]);
        if end == RunEnd::Panicked {
            self.push([Step::LimitAttempts { attempts }]);
        }
        self.push([Step::Flush]);
    }

    pub(super) fn limit_attempts(&mut self, attempts: u32) {
        if attempts >= self.document.limits().max_attempts && !self.document.is_settled() {
            let text = format!(
                "the agent crashed in {attempts} attempts; the operator can look at its log"
            );
            self.push([Step::Record {
                report: Report::Failed(text.into()),
                reporter: None,
            }]);
        }
    }

    pub(super) fn conclude(&mut self, end: RunEnd, is_deferred: bool) {
        let is_settled = self.document.is_settled();
        let State::Idle(idle) = &mut self.state else {
            return;
        };
        let is_unreported = !is_settled && !is_deferred && idle.outcome == RunOutcome::Stored;
        if is_unreported {
            idle.outcome = RunOutcome::Unreported(end);
        }
        let is_unstored = idle.is_unstored();
        match (&idle.cancel, is_deferred) {
            (Some(_), true) => self.push([Step::RequestCancel]),
            (Some(_), false) => self.push([Step::EndCancelled, Step::Sync]),
            (None, _) if is_unreported => self.push([Step::Sync]),
            (None, _) => {}
        }
        if is_unstored {
            self.push([Step::Sync]);
        }
    }

    /// Stores the cancel for the replica that runs the task now or resumes it later.
    pub(super) fn request_cancel(&mut self) {
        self.perform(Effect::RequestCancel, Await::CancelStored);
    }
}

impl Stop {
    pub(super) fn take_cancel(&mut self) -> Option<PendingCancel> {
        match self {
            Self::NotRequested => None,
            Self::Requested { cancel, .. } => cancel.take(),
        }
    }
}
