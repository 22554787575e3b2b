//! How a job ends: by itself, taken back by the client here or elsewhere, told to stop with the server, or put off.

use super::job::Returned;
use super::keeper::{Keeper, Reply};
use super::ledger::Ledger;
use super::refusal::{Kind, Refusal};
use super::shown::{View, word};
use super::{Ended, Report, Standing, StopReason};
use a2a::TaskState;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl Keeper {
    /// How much longer than for a job here is waited for one that another copy has to stop.
    const ELSEWHERE: Duration = Duration::from_secs(10);

    pub async fn cancel(&mut self, ledger: &mut Ledger, reply: Reply) {
        if let Err(refusal) = self.refresh(ledger).await {
            let _ = reply.send(Err(refusal));
            return;
        }
        let standing = self.catch_up(ledger).await;
        if ledger.state().is_terminal() {
            let _ = reply.send(Err(self.not_cancelable(ledger)));
        } else if self.job.is_some() {
            self.cancels.push(reply);
            self.stop_job(StopReason::Cancelled);
        } else if ledger.is_settled() || self.unkept.is_some() {
            self.cancels.push(reply);
            self.end_cancelled(ledger).await;
        } else {
            self.cancel_elsewhere(ledger, standing, reply).await;
        }
    }

    /// Asks whoever is at work on the task to stop. If nobody is, it is taken up to be stopped here.
    async fn cancel_elsewhere(
        &mut self,
        ledger: &mut Ledger,
        standing: Option<Standing>,
        reply: Reply,
    ) {
        self.cancels.push(reply);
        self.ask_others_to_cancel().await;
        match standing {
            Some(standing @ (Standing::Unknown | Standing::Unfinished)) => {
                self.take_up_again(ledger, &standing, true).await;
            }
            // It may have come to its end while it was asked about.
            _ => self.see_to_cancels(ledger).await,
        }
    }

    async fn ask_others_to_cancel(&mut self) {
        let (user, id) = &self.key;
        if let Err(error) = self.shared.tasks.ask_to_cancel(user, id).await {
            for reply in self.take_cancels() {
                let _ = reply.send(Err(Refusal::store(&error)));
            }
            return;
        }
        let patience = self.shared.settings.limits.stop_wait + Self::ELSEWHERE;
        self.cancel_until = Some(Instant::now() + patience);
    }

    /// Answers those who wait for another copy to stop, when it has or when they have waited long enough.
    pub async fn see_to_cancels(&mut self, ledger: &mut Ledger) {
        let Some(until) = self.cancel_until.filter(|_| self.job.is_none()) else {
            return;
        };
        if ledger.is_settled() {
            self.end_cancelled(ledger).await;
        } else if until <= Instant::now() {
            // It was told, and will stop; how it stands is all that can be said now.
            for reply in self.take_cancels() {
                let _ = reply.send(Ok(self.watching(ledger, View::default())));
            }
        }
    }

    fn take_cancels(&mut self) -> Vec<Reply> {
        self.cancel_until = None;
        self.is_cancelled_elsewhere = false;
        std::mem::take(&mut self.cancels)
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
        for reply in self.take_cancels() {
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
    /// may have been done and only the saying of it have failed. A job that is put off, or that stops with the server, is
    /// left to whoever takes it up again.
    pub async fn job_ended(&mut self, ledger: &mut Ledger, returned: Returned) {
        let attempts = self.job.as_ref().map_or(0, |job| job.attempts);
        let reason = self.job.take().and_then(|job| job.finish());
        let is_put_off =
            returned == Returned::As(Ended::Later) || reason == Some(StopReason::ServerStops);
        let attempts = match returned {
            // It was left in order.
            _ if is_put_off => 0,
            Returned::Panicked => attempts,
            _ => ledger.attempts,
        };
        if self.unsaved.is_some() || ledger.attempts != attempts {
            ledger.attempts = attempts;
            self.save_shown(ledger).await;
        }
        let most = self.shared.settings.limits.attempts;
        if returned == Returned::Panicked && attempts >= most && !ledger.is_settled() {
            let words = format!("the agent broke off {attempts} times and more; look at its log");
            // If it cannot be kept now, it is tried again.
            let _ = self.record(ledger, Report::Failed(words.into())).await;
        }
        if !ledger.is_settled() && !is_put_off {
            self.lost = Some(match returned {
                Returned::Panicked => "the agent broke off; nobody knows what of it was done",
                _ => "the agent ended without saying how; nobody knows what of it was done",
            });
        }
        let is_cancelled = !self.cancels.is_empty() || self.is_cancelled_elsewhere;
        if self.unkept.is_some() || (self.lost.is_some() && !is_cancelled) {
            self.catch_up(ledger).await;
        }
        if is_cancelled && !is_put_off {
            self.end_cancelled(ledger).await;
            if self.lost.is_some() {
                self.catch_up(ledger).await;
            }
        } else if is_cancelled {
            self.ask_others_to_cancel().await;
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
