//! The running steps of a turn.
//!
//! They are polled while the turn stores events. Otherwise a step could hold the database connection that the turn is
//! waiting for.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;

pub(super) struct RunningSteps<F: Future> {
    steps: FuturesUnordered<F>,
    /// Results of steps that finished while the turn was storing events.
    results: VecDeque<F::Output>,
}

impl<F: Future> RunningSteps<F> {
    pub(crate) fn new() -> Self {
        Self {
            steps: FuturesUnordered::new(),
            results: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, step: F) {
        self.steps.push(step);
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len() + self.results.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the result of a step. Returns `None` if no step is running.
    pub(crate) async fn next(&mut self) -> Option<F::Output> {
        match self.results.pop_front() {
            Some(result) => Some(result),
            None => self.steps.next().await,
        }
    }

    /// Removes and returns the results of finished steps.
    pub(crate) fn take_results(&mut self) -> Vec<F::Output> {
        self.results.drain(..).collect()
    }

    /// Awaits other work while polling the steps.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(result) = self.steps.next() => self.results.push_back(result),
            }
        }
    }
}
