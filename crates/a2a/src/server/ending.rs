//! How a job ends: by itself, taken back by the client, told to stop with the server, or lost with the process.

use super::keeper::{Keeper, Reply, Watching};
use super::ledger::Ledger;
use super::refusal::{Kind, Refusal};
use super::shown::{View, word};
use super::{Report, ReportError, StopReason};
use a2a::TaskState;
use std::sync::Arc;
use tokio::time::Instant;

impl Keeper {
    /// A job of before the last stop is gone. What the agent knows of it counts; otherwise the task has failed.
    pub async fn recover(&mut self, ledger: &mut Ledger) -> Result<Watching, Refusal> {
        self.catch_up(ledger).await;
        if self.job.is_none() && !ledger.is_settled() {
            let words =
                "the server was stopped while the agent was at work; send the message again";
            let failed = self.record(ledger, Report::Failed(words.into())).await;
            failed.map_err(|error| Refusal::new(Kind::Internal, error.to_string()))?;
        }
        Ok(self.watching(ledger, View::default()))
    }

    pub async fn cancel(&mut self, ledger: &mut Ledger, reply: Reply) {
        self.catch_up(ledger).await;
        if ledger.state().is_terminal() {
            let _ = reply.send(Err(self.not_cancelable(ledger)));
        } else if self.job.is_some() {
            self.cancels.push(reply);
            self.stop_job(StopReason::Cancelled);
        } else {
            self.cancels.push(reply);
            self.end_cancelled(ledger).await;
        }
    }

    /// Marks a task without a job as cancelled and tells those who asked for it.
    async fn end_cancelled(&mut self, ledger: &mut Ledger) {
        if !ledger.state().is_terminal() {
            let behind = Arc::clone(&self.shared.behind);
            let patience = self.shared.settings.limits.stop_wait;
            let told = behind.cancel(&self.key.0, &ledger.task);
            let _told = tokio::time::timeout(patience, told).await;
            let report = Report::Cancelled("the client cancelled the task".into());
            self.end(ledger, report).await;
        }
        for reply in std::mem::take(&mut self.cancels) {
            let answer = match ledger.state() {
                TaskState::Canceled => Ok(self.watching(ledger, View::default())),
                state if state.is_terminal() => Err(self.not_cancelable(ledger)),
                _ => Err(Refusal::new(
                    Kind::Internal,
                    "the task could not be kept as cancelled; try again",
                )),
            };
            let _ = reply.send(answer);
        }
    }

    fn not_cancelable(&self, ledger: &Ledger) -> Refusal {
        let message = format!("the task has ended as `{}`", word(ledger.state()));
        Refusal::new(Kind::TaskNotCancelable, message).about("taskId", self.key.1.clone())
    }

    pub async fn job_ended(&mut self, ledger: &mut Ledger, has_panicked: bool) {
        let reason = self.job.take().and_then(|job| job.finish(&self.shared));
        if self.unsaved.is_some() {
            let _ = self.save(ledger).await;
        }
        if !ledger.is_settled() && self.cancels.is_empty() && reason.is_none() {
            let words = if has_panicked {
                "the agent broke off; send the message again"
            } else {
                "the agent ended without a result; send the message again"
            };
            self.end(ledger, Report::Failed(words.into())).await;
        }
        if !self.cancels.is_empty() {
            self.end_cancelled(ledger).await;
        }
        if let Some(begin) = self.waiting.take() {
            self.begin(ledger, begin).await;
        }
    }

    /// Ends the task. An end that cannot be kept is not shown either: it is tried again at every look, and if nothing helps
    /// the next start finds the task at work, and sees to it.
    pub async fn end(&mut self, ledger: &mut Ledger, report: Report) {
        let result = self.record(ledger, report.clone()).await;
        if let Err(ReportError::Store { .. }) = result {
            self.unkept = Some(report);
        }
    }

    pub fn stop_job(&mut self, reason: StopReason) {
        let deadline = Instant::now() + self.shared.settings.limits.stop_wait;
        if let Some(job) = &mut self.job {
            job.stop(reason, deadline);
        }
    }
}
