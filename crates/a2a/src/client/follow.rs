//! Staying with a task that is known by name: ask how it stands, listen in if the server lets us, and ask again.

use super::call::{Call, Ended, Failure, Step};
use super::refusal::{Kind, Refusal};
use super::wire::{Ask, Reply};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The most failures in a row before a task is given up.
const FAILURES: u32 = 7;

/// The most times a stream is joined; after that, the task is asked for.
const SUBSCRIPTIONS: u32 = 5;

/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The longest that a task is followed, if nobody else sets a bound.
const LONGEST_TASK: Duration = Duration::from_secs(24 * 60 * 60);

impl Call<'_> {
    /// Stays with the task until it is over, waits for words, or cannot be asked for any more.
    pub async fn follow(&mut self) -> Ended {
        let began = Instant::now();
        let pace = self.agent.wire.patience.pace;
        let mut wait = pace;
        let mut failures = 0;
        let mut subscriptions = 0;
        while began.elapsed() < LONGEST_TASK {
            match self.look().await {
                Ok(Step::Over(ended)) => return ended,
                Ok(Step::Open(_)) => {
                    failures = 0;
                    if self.agent.streams() && subscriptions < SUBSCRIPTIONS {
                        subscriptions += 1;
                        if let Some(ended) = self.join().await {
                            return ended;
                        }
                    }
                    sleep(wait).await;
                    wait = (wait * 3 / 2).min(pace * 10);
                }
                Err(refusal) => {
                    failures += 1;
                    if failures >= FAILURES || !refusal.may_pass() {
                        return Err(out_of_reach(refusal));
                    }
                    sleep(self.pause(&refusal, failures)).await;
                }
            }
        }
        Err(Failure {
            detail: "the task was not over after a day".to_owned(),
            is_unknown: true,
        })
    }

    /// Asks how the task stands.
    pub async fn look(&mut self) -> Result<Step, Refusal> {
        let Some(task) = self.task.clone() else {
            return Err(Refusal::new(Kind::NotFound, "it never named the task"));
        };
        let wire = &self.agent.wire;
        match wire
            .ask(Ask::Look { task: &task }, wire.patience.idle)
            .await?
        {
            Reply::Whole(value) => match self.hear(&value, false).await {
                Step::Open(_) => Ok(self.judged(true).await),
                over => Ok(over),
            },
            Reply::Stream(_) => Err(Refusal::new(Kind::Refused, "it streams what was no stream")),
        }
    }

    /// Listens in on the task; nothing if that did not bring its end.
    async fn join(&mut self) -> Option<Ended> {
        let task = self.task.clone()?;
        let wire = &self.agent.wire;
        let ask = Ask::Subscribe { task: &task };
        match wire.ask(ask, wire.patience.idle).await {
            Ok(Reply::Stream(events)) => match self.listen(*events).await {
                Step::Over(ended) => Some(ended),
                Step::Open(_) => None,
            },
            // A server without this, or one whose task has just ended, is asked again instead.
            Ok(Reply::Whole(_)) | Err(_) => None,
        }
    }

    fn pause(&self, refusal: &Refusal, failures: u32) -> Duration {
        if let Kind::Busy { wait: Some(wait) } = refusal.kind {
            return wait.min(LONGEST_WAIT);
        }
        let pace = self.agent.wire.patience.pace;
        (pace * 2u32.saturating_pow(failures)).min(pace * 40)
    }
}

fn out_of_reach(refusal: Refusal) -> Failure {
    let detail = match refusal.kind {
        Kind::NotFound => format!("it does not know the task any more ({})", refusal.detail),
        _ => format!(
            "what became of the task cannot be learnt: {}",
            refusal.detail
        ),
    };
    Failure {
        detail,
        is_unknown: true,
    }
}
