//! What running calls have printed, in case they are stopped: then it is all that is known of them, and becomes part of
//! their result.

use crate::turn::{PrintedOutput, end_of_lines};
use lango_core::{CallId, EventBatch, EventBody};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much of the output of one call is kept.
const KEPT_BYTES: usize = 16 * 1024;

/// Stands for the states of a line that a carriage return started again, as in the results of commands.
const LEFT_OUT: &str = "…␍";

/// The output of the calls whose results are not stored yet.
#[derive(Debug, Default)]
pub(super) struct PrintedOutputs(Mutex<Vec<OutputTail>>);

#[derive(Debug)]
struct OutputTail {
    call: CallId,
    text: String,
    /// Where the last line starts.
    line: usize,
    /// Whether what follows starts the last line again.
    is_returned: bool,
    is_cut: bool,
}

impl PrintedOutputs {
    /// Adds output of a call. `has_gap` says that output before it was dropped.
    pub(super) fn push(&self, call: &CallId, text: &str, has_gap: bool) {
        let mut tails = self.lock();
        let at = tails.iter().position(|tail| tail.call == *call);
        let at = at.unwrap_or_else(|| {
            tails.push(OutputTail::new(call));
            tails.len() - 1
        });
        let tail = &mut tails[at];
        if has_gap {
            *tail = OutputTail::new(call);
            tail.is_cut = true;
        }
        tail.push(text);
    }

    /// Returns what the running calls have printed until now.
    pub(super) fn all(&self) -> Vec<PrintedOutput> {
        self.lock().iter().filter_map(OutputTail::output).collect()
    }

    /// Forgets the calls whose results these events contain.
    pub(super) fn stored(&self, batch: &EventBatch) {
        let is_returned = |tail: &OutputTail| {
            batch.iter().any(|event| {
                matches!(&event.body, EventBody::ToolReturned { call, .. } if *call == tail.call)
            })
        };
        self.lock().retain(|tail| !is_returned(tail));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OutputTail>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputTail {
    fn new(call: &CallId) -> Self {
        Self {
            call: call.clone(),
            text: String::new(),
            line: 0,
            is_returned: false,
            is_cut: false,
        }
    }

    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let letters = piece.trim_end_matches(['\n', '\r']);
            if !letters.is_empty()
                && std::mem::take(&mut self.is_returned)
                && self.line < self.text.len()
            {
                self.text.truncate(self.line);
                self.text.push_str(LEFT_OUT);
            }
            self.text.push_str(letters);
            self.is_returned |= piece.ends_with('\r');
            if piece.ends_with('\n') {
                self.is_returned = false;
                self.text.push('\n');
                self.line = self.text.len();
            }
        }
        // Not every time: moving the text for every line of a long output would be slow.
        if self.text.len() > 2 * KEPT_BYTES {
            let excess = self.text.len() - end_of_lines(&self.text, KEPT_BYTES).len();
            self.text.drain(..excess);
            self.line = self.line.saturating_sub(excess);
            self.is_cut = true;
        }
    }

    /// Returns the output without the line break at the end, if there is any.
    fn output(&self) -> Option<PrintedOutput> {
        let end = end_of_lines(&self.text, KEPT_BYTES);
        let is_cut = self.is_cut || end.len() < self.text.len();
        let text = end.trim_end();
        (!text.is_empty()).then(|| PrintedOutput {
            call: self.call.clone(),
            text: text.to_owned(),
            is_cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(pieces: &[&str]) -> Option<(String, bool)> {
        let outputs = PrintedOutputs::default();
        for piece in pieces {
            outputs.push(&CallId::from("c_1"), piece, false);
        }
        let all = outputs.all().pop();
        all.map(|output| (output.text, output.is_cut))
    }

    #[test]
    fn lines_stay_and_a_progress_bar_takes_one() {
        for (pieces, text) in [
            (&["1\n2", "2\n", "3"][..], "1\n22\n3"),
            (&["a 1%\r", "a 2%", "\ra 3%\n", "end\n"], "…␍a 3%\nend"),
            (&["a 1%\r"], "a 1%"),
            (&["one\r\ntwo\r", "\n"], "one\ntwo"),
        ] {
            assert_eq!(
                printed(pieces),
                Some((text.to_owned(), false)),
                "{pieces:?}"
            );
        }
        assert_eq!(printed(&["\n", " "]), None);
    }

    #[test]
    fn only_the_end_of_a_flood_is_kept_and_starts_with_a_whole_line() {
        let lines: Vec<String> = (0..20_000).map(|line| format!("é line {line}\n")).collect();
        let pieces: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (text, is_cut) = printed(&pieces).unwrap();
        assert!(is_cut && text.len() <= KEPT_BYTES && text.len() > KEPT_BYTES - 100);
        assert!(text.starts_with("é line ") && text.ends_with("\né line 19999"));
        let (text, is_cut) = printed(&["é".repeat(100_000).as_str()]).unwrap();
        assert!(is_cut && text.len() == KEPT_BYTES);
    }

    #[test]
    fn what_precedes_a_gap_is_not_kept() {
        let outputs = PrintedOutputs::default();
        let call = CallId::from("c_1");
        outputs.push(&call, "before\n", false);
        outputs.push(&call, "after\n", true);
        let all = outputs.all();
        assert_eq!((all[0].text.as_str(), all[0].is_cut), ("after", true));
    }
}
