//! How a job ends: by itself, taken back by the client, told to stop with the server, or lost with the process.

use super::keeper::{Keeper, Reply, Watching};
use super::ledger::Ledger;
use super::refusal::{Kind, Refusal};
use super::shown::{View, word};
use super::{Report, StopReason};
use a2a::TaskState;
use std::sync::Arc;
use tokio::time::Instant;

impl Keeper {
    /// A job of before the last stop is gone. What the agent knows of it counts; if it knows nothing the task has failed.
    pub async fn recover(&mut self, ledger: &mut Ledger) -> Watching {
        if self.job.is_none() && !ledger.is_settled() {
            self.lost = Some(
                "the server was stopped while the agent was at work; nobody knows what of it was done",
            );
        }
        self.catch_up(ledger).await;
        self.watching(ledger, View::default())
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

    /// Has the agent take back a task without a job, marks it as cancelled and tells those who asked for it. If the agent
    /// cannot, the task stands as it did.
    async fn end_cancelled(&mut self, ledger: &mut Ledger) {
        let mut obstacle = None;
        // An end that could not be kept yet is an end.
        if !ledger.state().is_terminal() && self.unkept.is_none() {
            let behind = Arc::clone(&self.shared.behind);
            let patience = self.shared.settings.limits.stop_wait;
            let told = tokio::time::timeout(patience, behind.cancel(&self.key.0, &ledger.task));
            let late = |_| Err("the agent did not answer in time; try again".to_owned());
            match told.await.unwrap_or_else(late) {
                Ok(()) => {
                    let report = Report::Cancelled("the client cancelled the task".into());
                    let _ = self.record(ledger, report).await;
                }
                Err(reason) => obstacle = Some(reason),
            }
        }
        for reply in std::mem::take(&mut self.cancels) {
            let answer = match (ledger.state(), &obstacle) {
                (TaskState::Canceled, _) => Ok(self.watching(ledger, View::default())),
                (state, _) if state.is_terminal() => Err(self.not_cancelable(ledger)),
                (_, Some(reason)) => Err(Refusal::new(
                    Kind::TaskNotCancelable,
                    format!("the task cannot be taken back: {reason}"),
                )
                .about("taskId", self.key.1.clone())),
                (_, None) => Err(Refusal::new(
                    Kind::Internal,
                    "how the task ended could not be kept; try again",
                )),
            };
            let _ = reply.send(answer);
        }
    }

    fn not_cancelable(&self, ledger: &Ledger) -> Refusal {
        let message = format!("the task has ended as `{}`", word(ledger.state()));
        Refusal::new(Kind::TaskNotCancelable, message).about("taskId", self.key.1.clone())
    }

    /// A job has returned. If it has not said how the task stands, the agent is asked before the task is given up: the work
    /// may have been done and only the saying of it have failed. A job that stops with the server is left to the next start.
    pub async fn job_ended(&mut self, ledger: &mut Ledger, has_panicked: bool) {
        let reason = self.job.take().and_then(|job| job.finish(&self.shared));
        if self.unsaved.is_some() {
            let _ = self.save(ledger).await;
        }
        if !ledger.is_settled() && reason != Some(StopReason::ServerStops) {
            self.lost = Some(if has_panicked {
                "the agent broke off; nobody knows what of it was done"
            } else {
                "the agent ended without saying how; nobody knows what of it was done"
            });
        }
        if self.unkept.is_some() || (self.lost.is_some() && self.cancels.is_empty()) {
            self.catch_up(ledger).await;
        }
        if !self.cancels.is_empty() {
            self.end_cancelled(ledger).await;
            if self.lost.is_some() {
                self.catch_up(ledger).await;
            }
        }
        if let Some(begin) = self.waiting.take() {
            self.begin(ledger, begin).await;
        }
    }

    pub fn stop_job(&mut self, reason: StopReason) {
        let deadline = Instant::now() + self.shared.settings.limits.stop_wait;
        if let Some(job) = &mut self.job {
            job.stop(reason, deadline);
        }
    }
}
