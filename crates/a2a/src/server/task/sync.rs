//! Brings a task up to date: with the store, which another replica may have written, and with the agent, which may have
//! a newer status than the store.

use super::Task;
use super::document::TaskDocument;
use super::io::{Effect, LoadError, RunEnd};
use super::state::{Await, Resumable, RunOutcome, State, Step};
use crate::server::backend::AgentStatus;
use crate::server::{Report, StatusMessage, diff};

impl Task {
    /// Reloads a task that does not run here. Does nothing if the task has ended, or if its latest status has yet to be
    /// stored.
    pub(super) fn refresh(&mut self, is_required: bool) {
        let State::Idle(idle) = &mut self.state else {
            return;
        };
        let is_fresh = std::mem::take(&mut idle.is_fresh);
        if !is_fresh && !idle.is_unstored() && !self.document.state().is_terminal() {
            self.perform(
                Effect::Load { other: None },
                Await::Refreshed { is_required },
            );
        }
    }

    pub(super) fn refreshed(
        &mut self,
        is_required: bool,
        loaded: Result<Box<TaskDocument>, LoadError>,
    ) {
        match loaded {
            Ok(document) if document.revision != self.document.revision => self.adopt(*document),
            Ok(_) => {}
            Err(error) if is_required => self.fail_request(&error),
            // The next timer reads the store again.
            Err(_) => {}
        }
    }

    /// Refuses the request that needed the store.
    fn fail_request(&mut self, error: &LoadError) {
        let refusal = error.refusal(self.id());
        while let Some(step) = self.steps.pop() {
            if let Step::Decide { caller, .. } = step {
                self.refuse(caller, refusal);
                return;
            }
        }
    }

    /// Replaces the document with the one that another replica has written, and publishes the difference.
    pub(super) fn adopt(&mut self, stored: TaskDocument) {
        for update in diff::between(&self.document.task, &stored.task) {
            self.effects.push(Effect::Publish(update));
        }
        self.document = stored;
        self.is_dirty = false;
        match &mut self.state {
            State::Running(run) => run.unstored = None,
            State::Idle(idle) => idle.resumable = None,
            State::New { .. } | State::Orphaned(_) | State::Retired => {}
        }
    }

    /// Asks the agent for the status of a task that does not run here.
    pub(super) fn sync(&mut self) {
        let State::Idle(idle) = &mut self.state else {
            return;
        };
        idle.resumable = None;
        if self.document.state().is_terminal() {
            return;
        }
        if let RunOutcome::Unstored(report) = &idle.outcome {
            // If it cannot be stored now either, it stays unstored.
            let report = report.clone();
            self.push([Step::Record {
                report,
                reporter: None,
            }]);
        } else {
            self.perform(Effect::QueryAgent, Await::AgentStatus);
        }
    }

    pub(super) fn synced(&mut self, status: AgentStatus) {
        let State::Idle(idle) = &mut self.state else {
            return;
        };
        let is_settled = self.document.is_settled();
        match (status, &idle.outcome) {
            (AgentStatus::Unknown, RunOutcome::Unreported(end)) if !is_settled => {
                let text = match end {
                    RunEnd::Panicked => "the agent crashed; what it did before is unknown",
                    _ => "the agent returned without a result; what it did is unknown",
                };
                self.push([Step::Record {
                    report: Report::Failed(text.into()),
                    reporter: None,
                }]);
            }
            (AgentStatus::Interrupted, _) if is_settled => {
                // The task received its input, and the process that resumed it has died.
                self.push([Step::Record {
                    report: Report::Working(StatusMessage::empty()),
                    reporter: None,
                }]);
            }
            (AgentStatus::Changed(reports), _) => {
                self.push([Step::Flush]);
                let records = reports.into_iter().rev().map(|report| Step::Record {
                    report,
                    reporter: None,
                });
                self.steps.extend(records);
            }
            (status, _) => idle.resumable = Resumable::of(&status),
        }
    }
}
