//! Detects when an agent goes in circles: the same calls with the same results, several times. Calls whose results
//! change, such as polling a running command, do not count.

use lango_core::{Text, ToolName};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most recent calls of one frame, with their results.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Repetition {
    window: VecDeque<CallRecord>,
    pub found: bool,
}

#[derive(Debug, PartialEq)]
struct CallRecord {
    tool: ToolName,
    arguments: Arc<Value>,
    output: Text,
}

impl Repetition {
    /// The circles A-A-A, A-B-A-B and A-B-C-A-B-C, as pairs of their length and the number of repetitions.
    const CIRCLES: [(usize, usize); 3] = [(1, 3), (2, 2), (3, 2)];
    const WINDOW: usize = 6;

    pub(crate) fn push(&mut self, tool: ToolName, arguments: Arc<Value>, output: Text) {
        if self.window.len() == Self::WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(CallRecord {
            tool,
            arguments,
            output,
        });
    }

    pub(crate) fn is_circle(&self) -> bool {
        Self::CIRCLES
            .iter()
            .any(|&(length, times)| self.ends_with_circle(length, times))
    }

    fn ends_with_circle(&self, length: usize, times: usize) -> bool {
        let span = length * times;
        let Some(first) = self.window.len().checked_sub(span) else {
            return false;
        };
        (first + length..self.window.len()).all(|at| self.window[at] == self.window[at - length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(calls: &[&str]) -> bool {
        let mut repetition = Repetition::default();
        for call in calls {
            let (tool, output) = call.split_once(':').unwrap_or((call, ""));
            repetition.push(tool.into(), Arc::new(Value::Null), output.into());
        }
        repetition.is_circle()
    }

    #[test]
    fn the_same_calls_with_the_same_results_are_a_circle() {
        assert!(circle(&["a", "a", "a"]));
        assert!(circle(&["x", "a", "b", "a", "b"]));
        assert!(circle(&["a", "b", "c", "a", "b", "c"]));
    }

    #[test]
    fn progress_is_not_a_circle() {
        assert!(!circle(&["a", "a"]));
        assert!(!circle(&["a", "b", "a"]));
        assert!(!circle(&["a:running", "a:running", "a:done"]));
        assert!(!circle(&["a", "b", "a", "c"]));
    }
}
