//! Follows a turn on behalf of its caller.

use crate::Api;
use crate::access::Caller;
use crate::problem::{Problem, Result};
use crate::turns::TurnHandle;
use lango_core::{ApprovalAnswer, EventBody, PendingApproval, Usage};
use lango_engine::{TurnEnd, TurnUpdate};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Keep-alive interval. The token is checked again at the same interval.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Progress of a followed turn.
#[derive(Debug)]
pub(crate) enum Update {
    /// It produced output.
    Turn(TurnUpdate),
    /// Nothing happened for a while.
    KeepAlive,
    /// It ended or waits for approvals.
    Ended(Result<TurnEnd>),
    /// The token was revoked. The turn continues, but the caller gets no more updates.
    SignedOut,
}

/// Follows a turn until it ends, or until only a person can continue it. Dropping it does not stop the turn.
pub(crate) struct TurnFollower {
    api: Api,
    caller: Caller,
    handle: TurnHandle,
    /// Other pending approvals of the turn, with their answers.
    answers: VecDeque<(PendingApproval, ApprovalAnswer)>,
    keep_alive: Instant,
    usage: Usage,
}

impl TurnFollower {
    /// Follows a turn.
    pub(crate) fn new(api: Api, caller: Caller, handle: TurnHandle) -> Self {
        Self {
            api,
            caller,
            handle,
            answers: VecDeque::new(),
            keep_alive: Instant::now() + KEEP_ALIVE,
            usage: Usage::default(),
        }
    }

    /// Also answers these approvals, one after the other, whenever the turn waits.
    pub(crate) fn with_answers(
        mut self,
        answers: VecDeque<(PendingApproval, ApprovalAnswer)>,
    ) -> Self {
        self.answers = answers;
        self
    }

    /// Returns the usage of the model calls that were shown so far.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Waits for the next update.
    pub(crate) async fn next(&mut self) -> Update {
        tokio::select! {
            biased;
            () = sleep_until(self.keep_alive) => return self.stay_alive().await,
            shown = self.handle.shown.recv() => if let Some(shown) = shown {
                self.count(&shown);
                return Update::Turn(shown);
            },
        }
        // Nothing more is shown: the turn ends.
        tokio::select! {
            biased;
            () = sleep_until(self.keep_alive) => self.stay_alive().await,
            end = &mut self.handle.end => match end {
                Ok(Ok(TurnEnd::Waiting(_))) if !self.answers.is_empty() => self.answer_next().await,
                Ok(Ok(end)) => Update::Ended(Ok(end)),
                Ok(Err(error)) => Update::Ended(Err(error.into())),
                // Its task panicked.
                Err(_) => Update::Ended(Err(Problem::internal())),
            },
        }
    }

    /// Waits until the turn ends.
    pub(crate) async fn end(&mut self) -> Result<TurnEnd> {
        loop {
            match self.next().await {
                Update::Ended(end) => return end,
                Update::SignedOut => return Err(Problem::unauthorized()),
                Update::Turn(_) | Update::KeepAlive => {}
            }
        }
    }

    async fn answer_next(&mut self) -> Update {
        let Some((waiting, answer)) = self.answers.pop_front() else {
            return Update::KeepAlive;
        };
        match self.api.turns.resume(&waiting, answer).await {
            Ok(handle) => {
                self.handle = handle;
                Update::KeepAlive
            }
            Err(problem) => Update::Ended(Err(problem)),
        }
    }

    async fn stay_alive(&mut self) -> Update {
        self.keep_alive = Instant::now() + KEEP_ALIVE;
        match self.api.store_token(self.caller.digest).await {
            Ok(None) => Update::SignedOut,
            // A store that does not answer now says nothing about the token.
            Ok(Some(_)) | Err(_) => Update::KeepAlive,
        }
    }

    fn count(&mut self, shown: &TurnUpdate) {
        let TurnUpdate::Stored(batch) = shown else {
            return;
        };
        for event in batch.iter() {
            if let EventBody::AgentMessage { usage, .. } = &event.body {
                self.usage += *usage;
            }
        }
    }
}
