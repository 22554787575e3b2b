//! The last lines that a running command has printed.

use lango_core::text::sanitize;
use std::collections::VecDeque;

/// The number of lines that are shown.
const LINES: usize = 5;

/// The bytes of a line that are stored; no terminal shows more.
const MAX_LINE_BYTES: usize = 2000;

/// The end of a command's output, as a terminal would show it: a carriage return starts the line again, so that a
/// progress bar takes one line.
#[derive(Debug, Default)]
pub(super) struct OutputTail {
    ended: VecDeque<String>,
    /// The last line, which has not ended yet.
    open: String,
    /// Whether what follows replaces the open line.
    is_returned: bool,
}

impl OutputTail {
    pub(super) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let line = piece.trim_end_matches(['\n', '\r']);
            if !line.is_empty() {
                if std::mem::take(&mut self.is_returned) {
                    self.open.clear();
                }
                let room = MAX_LINE_BYTES.saturating_sub(self.open.len());
                self.open.push_str(&line[..line.floor_char_boundary(room)]);
            }
            if piece.ends_with('\r') {
                self.is_returned = true;
            } else if piece.ends_with('\n') {
                self.is_returned = false;
                self.ended.push_back(std::mem::take(&mut self.open));
                if self.ended.len() > LINES {
                    self.ended.pop_front();
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.open.is_empty()
    }

    /// Returns at most five lines, safe to show, with tabs as spaces.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let open = (!self.open.is_empty()).then_some(&self.open);
        let surplus = (self.ended.len() + usize::from(open.is_some())).saturating_sub(LINES);
        let lines = self.ended.iter().chain(open).skip(surplus);
        lines.map(|line| sanitize(line).replace('\t', "    "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str]) -> Vec<String> {
        let mut tail = OutputTail::default();
        pieces.iter().for_each(|piece| tail.push(piece));
        tail.lines().collect()
    }

    #[test]
    fn the_last_five_lines_are_shown_with_the_open_one() {
        assert_eq!(lines(&["1\n2\n3\n4\n5\n6\n"]), ["2", "3", "4", "5", "6"]);
        assert_eq!(lines(&["1\n2\n3\n4\n5\n", "6"]), ["2", "3", "4", "5", "6"]);
        assert_eq!(lines(&["a", "b\nc"]), ["ab", "c"]);
        assert!(OutputTail::default().is_empty());
    }

    #[test]
    fn a_progress_bar_takes_one_line_and_windows_line_ends_are_line_ends() {
        assert_eq!(lines(&["10 %\r", "20 %\r55 %"]), ["55 %"]);
        assert_eq!(lines(&["10 %\rdone\n", "next"]), ["done", "next"]);
        assert_eq!(lines(&["one\r\ntwo\r", "\nthree"]), ["one", "two", "three"]);
    }

    #[test]
    fn a_line_without_end_is_bounded_and_cannot_move_the_cursor() {
        let mut tail = OutputTail::default();
        for _ in 0..1000 {
            tail.push("äöü\t\u{1b}[2J");
        }
        assert!(tail.open.len() <= MAX_LINE_BYTES);
        let shown = tail.lines().next().unwrap();
        assert!(!shown.contains(['\u{1b}', '\t']), "{shown:?}");
    }
}
