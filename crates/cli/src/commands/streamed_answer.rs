//! The answer while it arrives: settled lines are printed once, the open block is redrawn.

use crate::screen;
use crate::terminal::{Output, Region};
use lango_markdown::{Stream, Style};
use std::io;
use std::time::{Duration, Instant};

/// How long one frame renders, so that keys are read in between. The bytes say little about the time: a line of a table
/// can take a hundred times as long as a line of text.
const MAX_RENDER_TIME: Duration = Duration::from_millis(20);

/// The maximum number of bytes that are rendered without a look at the time.
const MAX_PIECE: usize = 1024;

/// The streamed answer and how much of it is on the screen.
pub(super) struct StreamedAnswer {
    style: Style,
    width: usize,
    live_rows: usize,
    stream: Stream,
    written: String,
    /// The end of what was written, which is rendered with the next frame.
    unrendered: String,
    /// Whether the draft turned out not to be the answer.
    is_withdrawn: bool,
    /// Whether a line of this draft was printed.
    has_printed: bool,
}

impl StreamedAnswer {
    pub(super) fn new(style: Style, width: usize, live_rows: usize) -> Self {
        Self {
            style,
            width,
            live_rows,
            stream: Stream::new(style, width, live_rows),
            written: String::new(),
            unrendered: String::new(),
            is_withdrawn: false,
            has_printed: false,
        }
    }

    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        if self.is_withdrawn {
            self.discard()?;
        }
        self.written.push_str(text);
        self.unrendered.push_str(text);
        Ok(())
    }

    /// Whether there is a draft that is not withdrawn.
    pub(super) fn is_shown(&self) -> bool {
        !self.written.is_empty() && !self.is_withdrawn
    }

    /// Renders what has arrived since the last time, and prints the lines that are settled. Tokens arrive more often
    /// than frames are drawn, and rendering each of them would be wasted. After a flood, the rest follows with the next
    /// frames.
    pub(super) fn render(&mut self) -> io::Result<()> {
        if self.is_withdrawn {
            return Ok(());
        }
        let settled = self.settle();
        self.print(&settled)
    }

    /// Renders for at most [`MAX_RENDER_TIME`], and returns the lines that are settled.
    fn settle(&mut self) -> Vec<String> {
        let started = Instant::now();
        let (mut settled, mut rest) = (Vec::new(), self.unrendered.as_str());
        while !rest.is_empty() && started.elapsed() < MAX_RENDER_TIME {
            let line = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let (piece, after) = rest.split_at(rest.floor_char_boundary(line.min(MAX_PIECE)));
            settled.extend(self.stream.push(piece));
            rest = after;
        }
        self.unrendered.drain(..self.unrendered.len() - rest.len());
        settled
    }

    /// Whether a part of what has arrived waits for the next frame.
    pub(super) fn is_behind(&self) -> bool {
        !self.unrendered.is_empty() && !self.is_withdrawn
    }

    /// Returns the rows of the part that may still change.
    pub(super) fn live_rows(&mut self) -> Vec<String> {
        if self.is_withdrawn {
            return Vec::new();
        }
        let mut rows = self.stream.live();
        if !rows.is_empty() && !self.has_printed {
            rows.insert(0, String::new());
        }
        rows
    }

    pub(super) fn resize(&mut self, width: usize) {
        self.width = width;
        self.stream.resize(width);
    }

    /// Ends the draft, because another event has to be shown below it.
    pub(super) fn interrupt(&mut self) -> io::Result<()> {
        if self.written.is_empty() {
            Ok(())
        } else {
            self.discard()
        }
    }

    /// Hides the draft, because it is not the answer. It may still be what an agent said before its calls.
    pub(super) fn withdraw(&mut self) {
        self.is_withdrawn = true;
    }

    /// Shows what an agent said before its calls.
    pub(super) fn said(&mut self, text: &str) -> io::Result<()> {
        self.complete_with(text)
    }

    /// Shows the answer, or removes the draft if there is none.
    pub(super) fn finish(&mut self, answer: Option<&str>) -> io::Result<()> {
        match answer {
            Some(answer) => self.complete_with(answer),
            None => self.interrupt(),
        }
    }

    /// Completes the output: if the text starts with the draft, the rest is shown; otherwise the draft is withdrawn and
    /// the text is shown.
    fn complete_with(&mut self, text: &str) -> io::Result<()> {
        match rest_after(&self.written, text) {
            Some(rest) => {
                self.is_withdrawn = false;
                self.push(rest)?;
            }
            None => {
                self.interrupt()?;
                self.push(text)?;
            }
        }
        self.complete()
    }

    fn complete(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.unrendered);
        let rows = self.start_again().finish(&rest);
        self.print(&rows)?;
        self.has_printed = false;
        Ok(())
    }

    /// Removes the draft. Lines that were already printed are marked as withdrawn.
    fn discard(&mut self) -> io::Result<()> {
        self.start_again();
        if std::mem::take(&mut self.has_printed) {
            screen::write_line("  (the text above was a draft and has been withdrawn)")?;
        }
        Ok(())
    }

    fn start_again(&mut self) -> Stream {
        self.written.clear();
        self.unrendered.clear();
        self.is_withdrawn = false;
        let fresh = Stream::new(self.style, self.width, self.live_rows);
        std::mem::replace(&mut self.stream, fresh)
    }

    fn print(&mut self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let gap = if std::mem::replace(&mut self.has_printed, true) {
            ""
        } else {
            "\n"
        };
        Region::print(Output::Stdout, &format!("{gap}{}\n", lines.join("\n")))
    }
}

/// Returns what follows a draft in the text that was stored, if that text starts with it. The space around them may differ.
fn rest_after<'a>(draft: &str, text: &'a str) -> Option<&'a str> {
    if draft.trim() == text.trim() {
        return Some("");
    }
    text.trim_start().strip_prefix(draft.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_starts_with_the_draft_goes_on_after_it() {
        for (draft, text, rest) in [
            ("", "all", Some("all")),
            ("\nfirst ", "first part", Some("part")),
            ("first\n\n", "first", Some("")),
            ("other", "first", None),
            ("first part", "first", None),
        ] {
            assert_eq!(rest_after(draft, text), rest, "{draft:?}");
        }
    }

    #[test]
    fn a_flood_that_takes_long_is_rendered_in_several_frames() {
        let table = format!("{}\n{}\n", "|a".repeat(400), "|-".repeat(400));
        let mut answer = StreamedAnswer::new(Style::Coloured, 80, 20);
        answer.push(&(table + &"x\n".repeat(300))).unwrap();
        let (mut rows, mut frames) = (0, 0);
        while answer.is_behind() {
            rows += answer.settle().len();
            frames += 1;
        }
        assert!(frames > 1);
        assert_eq!(rows + answer.stream.finish("").len(), 300 + 299);
    }
}
