//! Follows a task whose id is known: polls its status, subscribes to it if the server supports that, and polls again.

use super::call::{Call, CallFailure, CallProgress, CallResult};
use super::refusal::{Refusal, RefusalKind};
use super::wire::{Operation, Reply};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How many consecutive failures end a call.
const MAX_FAILURES: u32 = 7;

/// How many times to subscribe to a task. After that, lango only polls it.
const MAX_SUBSCRIPTIONS: u32 = 5;

/// The maximum wait that lango accepts from a server.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// How long to follow a task, if the caller sets no shorter limit.
const MAX_TASK_TIME: Duration = Duration::from_secs(24 * 60 * 60);

impl Call<'_> {
    /// Follows the task until it has ended, asks a question, or cannot be polled any more.
    pub(super) async fn follow(&mut self) -> CallResult {
        let started = Instant::now();
        let interval = self.agent.wire.timeouts.poll_interval;
        let mut wait = interval;
        let mut failures = 0;
        let mut subscriptions = 0;
        while started.elapsed() < MAX_TASK_TIME {
            match self.poll().await {
                Ok(CallProgress::Done(ended)) => return ended,
                Ok(CallProgress::Pending(_)) => {
                    failures = 0;
                    if self.agent.streams() && subscriptions < MAX_SUBSCRIPTIONS {
                        subscriptions += 1;
                        if let Some(ended) = self.subscribe().await {
                            return ended;
                        }
                    }
                    sleep(wait).await;
                    wait = (wait * 3 / 2).min(interval * 10);
                }
                Err(refusal) => {
                    failures += 1;
                    if failures >= MAX_FAILURES || !refusal.is_transient() {
                        return Err(unknown_outcome(refusal));
                    }
                    sleep(self.pause(&refusal, failures)).await;
                }
            }
        }
        Err(CallFailure {
            detail: "the task had not ended after a day".to_owned(),
            is_unknown: true,
        })
    }

    /// Asks the server for the current task.
    pub(super) async fn poll(&mut self) -> Result<CallProgress, Refusal> {
        let Some(task) = self.task.clone() else {
            return Err(Refusal::new(
                RefusalKind::NotFound,
                "it never gave the task an id",
            ));
        };
        let wire = &self.agent.wire;
        match wire
            .request(Operation::Get { task: &task }, wire.timeouts.idle)
            .await?
        {
            Reply::Whole(value) => match self.handle_item(&value, false).await {
                CallProgress::Pending(_) => Ok(self.check_end(true).await),
                done => Ok(done),
            },
            Reply::Stream(_) => Err(Refusal::new(
                RefusalKind::Refused,
                "it answered with a stream instead of a task",
            )),
        }
    }

    /// Subscribes to the task. Returns `None` if the task has not ended by the end of the stream.
    async fn subscribe(&mut self) -> Option<CallResult> {
        let task = self.task.clone()?;
        let wire = &self.agent.wire;
        let operation = Operation::Subscribe { task: &task };
        match wire.request(operation, wire.timeouts.idle).await {
            Ok(Reply::Stream(events)) => match self.listen(*events).await {
                CallProgress::Done(ended) => Some(ended),
                CallProgress::Pending(_) => None,
            },
            // The server does not support this, or the task has just ended: poll instead.
            Ok(Reply::Whole(_)) | Err(_) => None,
        }
    }

    fn pause(&self, refusal: &Refusal, failures: u32) -> Duration {
        if let RefusalKind::Busy { wait: Some(wait) } = refusal.kind {
            return wait.min(MAX_WAIT);
        }
        let interval = self.agent.wire.timeouts.poll_interval;
        (interval * 2u32.saturating_pow(failures)).min(interval * 40)
    }
}

fn unknown_outcome(refusal: Refusal) -> CallFailure {
    let detail = match refusal.kind {
        RefusalKind::NotFound => format!("it no longer knows the task ({})", refusal.detail),
        _ => format!(
            "the outcome of the task cannot be determined: {}",
            refusal.detail
        ),
    };
    CallFailure {
        detail,
        is_unknown: true,
    }
}
