//! The steps of a turn that are under way.
//!
//! They go on whatever the turn waits for. A step that stood still while the turn stores events could keep a connection of the
//! store that the turn needs for it.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;

pub(super) struct UnderWay<F: Future> {
    steps: FuturesUnordered<F>,
    /// Results that came while the turn waited for something else.
    results: VecDeque<F::Output>,
}

impl<F: Future> UnderWay<F> {
    pub fn new() -> Self {
        Self {
            steps: FuturesUnordered::new(),
            results: VecDeque::new(),
        }
    }

    pub fn push(&mut self, step: F) {
        self.steps.push(step);
    }

    pub fn len(&self) -> usize {
        self.steps.len() + self.results.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the result of a step; returns `None` if there is none under way.
    pub async fn next(&mut self) -> Option<F::Output> {
        match self.results.pop_front() {
            Some(result) => Some(result),
            None => self.steps.next().await,
        }
    }

    /// Returns the results that are known already.
    pub fn take_results(&mut self) -> Vec<F::Output> {
        self.results.drain(..).collect()
    }

    /// Does other work while the steps go on.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
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
