//! Outputs that the user can read in full, because the screen shows one line of each.

use std::collections::VecDeque;

/// The number of results that are remembered.
const MAX_RESULTS: usize = 50;

/// The last results, and how far back the user has read.
#[derive(Debug, Default)]
pub(super) struct FullResults {
    results: VecDeque<FullResult>,
    /// How many results the user has read, from the newest on.
    read: usize,
}

/// A finished call, report or task with its full text.
#[derive(Debug)]
pub(super) struct FullResult {
    pub title: String,
    pub output: String,
}

impl FullResults {
    /// Adds a result; reading starts there again.
    pub(super) fn add(&mut self, title: String, output: &str) {
        if self.results.len() == MAX_RESULTS {
            self.results.pop_front();
        }
        let output = output.to_owned();
        self.results.push_back(FullResult { title, output });
        self.read = 0;
    }

    /// Returns the newest result, with each further call the one before it; after the oldest `None` once.
    pub(super) fn next_older(&mut self) -> Option<&FullResult> {
        let Some(index) = self.results.len().checked_sub(self.read + 1) else {
            self.read = 0;
            return None;
        };
        self.read += 1;
        self.results.get(index)
    }
}
