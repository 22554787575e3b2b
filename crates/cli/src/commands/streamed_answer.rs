//! The answer while it arrives: settled lines are printed once, the open block is redrawn.

use crate::screen;
use crate::terminal::{Output, Region};
use lango_markdown::{Stream, Style};
use std::io;

/// The streamed answer and how much of it is on the screen.
pub(super) struct StreamedAnswer {
    style: Style,
    width: usize,
    live_rows: usize,
    stream: Stream,
    written: String,
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
            has_printed: false,
        }
    }

    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        self.written.push_str(text);
        let settled = self.stream.push(text);
        self.print(&settled)
    }

    /// Returns the rows of the part that may still change.
    pub(super) fn live_rows(&mut self) -> Vec<String> {
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
            self.withdraw()
        }
    }

    /// Removes the draft. Lines that were already printed are marked as withdrawn.
    pub(super) fn withdraw(&mut self) -> io::Result<()> {
        self.stream = Stream::new(self.style, self.width, self.live_rows);
        self.written.clear();
        if std::mem::take(&mut self.has_printed) {
            screen::write_line("  (the text above was a draft and has been withdrawn)")?;
        }
        Ok(())
    }

    /// Completes the output: a draft that equals the answer is finished; otherwise the draft is withdrawn and the
    /// answer is shown.
    pub(super) fn finish(&mut self, answer: Option<&str>) -> io::Result<()> {
        match answer {
            Some(answer) if answer == self.written => {}
            Some(answer) => {
                self.interrupt()?;
                self.push(answer)?;
            }
            None => return self.interrupt(),
        }
        let fresh = Stream::new(self.style, self.width, self.live_rows);
        let rest = std::mem::replace(&mut self.stream, fresh).finish();
        self.written.clear();
        self.print(&rest)?;
        self.has_printed = false;
        Ok(())
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
