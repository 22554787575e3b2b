//! The live region: the last rows of the terminal, which are redrawn in place. Everything else is printed above it once
//! and stays in the scrollback.
//!
//! A process has one terminal, so there is one region. Any code that prints while the region is shown goes through
//! [`Region::print`], which moves the region down. A redraw writes only the rows that changed, inside a synchronized
//! update, so the screen does not flicker.

use super::raw_mode::SilentMode;
use super::text::{fit, only_attributes, width};
use crate::screen::window;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the size has to stay the same before the region is drawn again. tmux tells a program about the second of two
/// changes after 250 ms; rows that are drawn before have a wrong width.
pub(super) const RESIZE_PAUSE: Duration = Duration::from_millis(300);

/// Where the region is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Stdout,
    Stderr,
}

impl Output {
    /// Whether this output is a terminal.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }

    /// Writes to the terminal, whichever output that is.
    pub(super) fn write_to_terminal(text: &str) -> io::Result<()> {
        let output = if Self::Stderr.is_terminal() {
            Self::Stderr
        } else {
            Self::Stdout
        };
        write(output, text)
    }
}

/// The content of the region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveFrame {
    /// Rows from top to bottom. Longer rows are cut at the width of the terminal.
    pub rows: Vec<String>,
    /// The row and column of the cursor; hidden if `None`.
    pub cursor: Option<(usize, usize)>,
}

/// The live region of this process. Dropping this value closes it.
#[derive(Debug)]
pub struct Region;

impl Drop for Region {
    fn drop(&mut self) {
        Self::close();
    }
}

#[derive(Debug)]
struct State {
    output: Output,
    /// Keeps keys off the region that nobody reads now.
    _silent: Option<SilentMode>,
    columns: usize,
    rows: usize,
    /// When the size changed last, until the region is drawn again.
    resized: Option<Instant>,
    shown: LiveFrame,
    /// The row and the column of the region in which the cursor is.
    cursor_row: usize,
    cursor_column: usize,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

const BEGIN_UPDATE: &str = "\u{1b}[?2026h";
const END_UPDATE: &str = "\u{1b}[?2026l";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
/// Terminals disagree about the width of some characters. Without wrapping, a row with them never takes two. Other rows are
/// wrapped, so that a row which was drawn just after the window became narrower takes as many as one that was drawn before.
const NO_WRAP: &str = "\u{1b}[?7l";
const WRAP: &str = "\u{1b}[?7h";
const CLEAR_LINE: &str = "\u{1b}[K";
/// Clears the row of the cursor and those below. Some terminals save what is cleared from the first row of the screen on in
/// their scrollback, so the first row is cleared separately.
const CLEAR_BELOW: &str = "\u{1b}[K\u{1b}7\u{1b}[B\u{1b}[J\u{1b}8";

impl Region {
    /// Opens an empty region. Until [`close`](Self::close), printed lines appear above it.
    pub fn open(output: Output) {
        let (columns, rows) = window();
        *lock() = Some(State {
            output,
            _silent: SilentMode::enter(),
            columns,
            rows,
            resized: None,
            shown: LiveFrame::default(),
            cursor_row: 0,
            cursor_column: 0,
        });
    }

    /// Removes the region from the screen and shows the cursor.
    pub fn close() {
        let state = lock().take();
        if let Some(mut state) = state {
            let mut text = state.erase();
            text.push_str(SHOW_CURSOR);
            let _ = write(state.output, &text);
        }
    }

    /// Shows this frame instead of the current one.
    pub fn draw(frame: &LiveFrame) -> io::Result<()> {
        match &mut *lock() {
            Some(state) => state.draw(frame),
            None => Ok(()),
        }
    }

    /// Draws everything again, because the size of the terminal has changed or something else has used the screen.
    pub fn redraw() -> io::Result<()> {
        match &mut *lock() {
            Some(state) => {
                let frame = state.shown.clone();
                let erased = state.erase();
                write(state.output, &erased)?;
                state.draw(&frame)
            }
            None => Ok(()),
        }
    }

    /// Prints text that ends in a newline above the region, if there is one, otherwise as it is.
    pub fn print(output: Output, text: &str) -> io::Result<()> {
        match &mut *lock() {
            Some(state) => {
                let frame = state.shown.clone();
                let erased = state.erase();
                let text = only_attributes(text).replace('\n', newline());
                let mut redrawn = String::new();
                state.append_rows(&mut redrawn, &frame);
                if state.output == output {
                    let update = [BEGIN_UPDATE, &erased, &text, &redrawn, END_UPDATE];
                    return write(output, &update.concat());
                }
                write(state.output, &erased)?;
                write(output, &text)?;
                write(state.output, &redrawn)
            }
            None => write(output, text),
        }
    }

    /// Sends a control sequence, such as the title of the window, without changing the region.
    pub fn send(sequence: &str) {
        if let Some(state) = &*lock() {
            let _ = write(state.output, sequence);
        }
    }

    /// Whether a region is open.
    pub fn is_open() -> bool {
        lock().is_some()
    }
}

impl State {
    fn draw(&mut self, frame: &LiveFrame) -> io::Result<()> {
        // The terminal moves and wraps what is on the screen at each new size. While the user drags the window, nothing is
        // drawn that could be left over.
        if window() != (self.columns, self.rows) {
            (self.columns, self.rows) = window();
            self.resized = Some(Instant::now());
            let erased = self.erase();
            return write(self.output, &erased);
        }
        if self.resized.is_some_and(|at| at.elapsed() < RESIZE_PAUSE) {
            return Ok(());
        }
        self.resized = None;
        let frame = LiveFrame {
            rows: frame
                .rows
                .iter()
                .map(|row| fit(&only_attributes(row), self.columns).into_owned())
                .collect(),
            cursor: frame.cursor,
        };
        if frame == self.shown {
            return Ok(());
        }
        let mut update = format!("{BEGIN_UPDATE}{HIDE_CURSOR}");
        if frame.rows.len() < self.shown.rows.len() || self.shown.rows.is_empty() {
            update.push_str(&self.erase());
            self.append_rows(&mut update, &frame);
        } else {
            self.rewrite_rows(&mut update, &frame);
        }
        update.push_str(END_UPDATE);
        write(self.output, &update)
    }

    /// Clears the region and leaves the cursor in its first row and column.
    fn erase(&mut self) -> String {
        let mut text = String::new();
        // After the terminal became narrower, a row of the region may occupy several rows of the screen.
        let now = window().0.max(1);
        let rows_above = self.shown.rows.iter().take(self.cursor_row);
        let above: usize = rows_above.map(|row| width(row).div_ceil(now).max(1)).sum();
        let above = above + self.cursor_column / now;
        if above > 0 {
            let _ = write!(text, "\u{1b}[{above}A");
        }
        text.push('\r');
        text.push_str(CLEAR_BELOW);
        self.shown = LiveFrame::default();
        self.cursor_row = 0;
        self.cursor_column = 0;
        text
    }

    /// Writes all rows; the cursor is in the first one.
    fn append_rows(&mut self, update: &mut String, frame: &LiveFrame) {
        for (index, row) in frame.rows.iter().enumerate() {
            if index > 0 {
                update.push_str(newline());
            }
            push_row(update, row);
        }
        self.cursor_row = frame.rows.len().saturating_sub(1);
        self.cursor_column = self.column_after(frame.rows.last());
        self.place_cursor(update, frame);
    }

    /// Writes the rows that differ from those on the screen.
    fn rewrite_rows(&mut self, update: &mut String, frame: &LiveFrame) {
        if self.cursor_row > 0 {
            let _ = write!(update, "\u{1b}[{}A", self.cursor_row);
        }
        update.push('\r');
        for (index, row) in frame.rows.iter().enumerate() {
            if index > 0 {
                update.push_str(newline());
            }
            self.cursor_column = 0;
            if self.shown.rows.get(index) != Some(row) {
                update.push_str(CLEAR_LINE);
                push_row(update, row);
                self.cursor_column = self.column_after(Some(row));
            }
        }
        self.cursor_row = frame.rows.len().saturating_sub(1);
        self.place_cursor(update, frame);
    }

    fn place_cursor(&mut self, update: &mut String, frame: &LiveFrame) {
        if let Some((row, column)) = frame.cursor {
            let up = self.cursor_row.saturating_sub(row);
            if up > 0 {
                let _ = write!(update, "\u{1b}[{up}A");
            }
            update.push('\r');
            if column > 0 {
                let _ = write!(update, "\u{1b}[{column}C");
            }
            update.push_str(SHOW_CURSOR);
            self.cursor_row = row.min(self.cursor_row);
            // The cursor cannot leave the row.
            self.cursor_column = column.min(self.columns.saturating_sub(1));
        }
        self.shown = frame.clone();
    }

    /// Returns the column of the cursor after a row was written. After the last column it waits there.
    fn column_after(&self, row: Option<&String>) -> usize {
        let written = row.map_or(0, |row| width(row));
        written.min(self.columns.saturating_sub(1))
    }
}

/// Adds a row. From the first characters of East Asian scripts on, and for emoji, its width is not certain.
fn push_row(update: &mut String, row: &str) {
    if row.chars().any(|character| character >= '\u{2e80}') {
        update.push_str(NO_WRAP);
        update.push_str(row);
        update.push_str(WRAP);
    } else {
        update.push_str(row);
    }
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what moves to the start of the next row. In raw mode a newline does not return to the first column.
fn newline() -> &'static str {
    if super::raw_mode::is_raw() {
        "\r\n"
    } else {
        "\n"
    }
}

/// Writes a text at once. The buffer of standard output would split it at its last line break, and a terminal that
/// draws in between shows half of a frame.
fn write(output: Output, text: &str) -> io::Result<()> {
    match output {
        Output::Stdout => {
            let _lock = io::stdout().lock();
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                match rustix::io::write(io::stdout(), rest) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(written) => rest = &rest[written..],
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        let out = io::stdout();
                        let ready = &mut [PollFd::new(&out, PollFlags::OUT)];
                        poll(ready, None)?;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        }
        Output::Stderr => io::stderr().lock().write_all(text.as_bytes()),
    }
}
