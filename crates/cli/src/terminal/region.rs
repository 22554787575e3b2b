//! The live region: the last rows of the terminal, which are redrawn in place. Everything else is printed above it once
//! and stays in the scrollback.
//!
//! A process has one terminal, so there is one region. Any code that prints while the region is shown goes through
//! [`Region::print`], which moves the region down. A redraw writes only the rows that changed, inside a synchronized
//! update, so the screen does not flicker.

mod output;

use super::raw_mode::SilentMode;
use super::text::{fit, only_attributes, width};
use crate::screen::window;
pub use output::Output;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the size has to stay the same before the region is drawn again. tmux tells a program about the second of two
/// changes after 250 ms; rows that are drawn before have a wrong width.
pub(super) const RESIZE_PAUSE: Duration = Duration::from_millis(300);

/// The content of the region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveFrame {
    /// Rows from top to bottom. Longer rows are cut at the width of the terminal, and those that do not fit its height are
    /// dropped.
    pub rows: Vec<String>,
    /// The row and column of the cursor; hidden if `None`.
    pub cursor: Option<(usize, usize)>,
}

impl LiveFrame {
    /// Drops the rows for which a window of this height has no room: first those above the cursor, then those below it. One
    /// row stays free, because a program that prints there would scroll the window.
    fn clipped(mut self, window_rows: usize) -> Self {
        let height = window_rows.saturating_sub(1).max(1);
        let surplus = self.rows.len().saturating_sub(height);
        let above = self.cursor.map_or(surplus, |(row, _)| surplus.min(row));
        self.rows.drain(..above);
        self.rows.truncate(height);
        self.cursor = self.cursor.map(|(row, column)| (row - above, column));
        self
    }
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
    /// Text to print when the alternate screen is left, with its outputs; `None` while it is not shown.
    covered: Option<Vec<(Output, String)>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

const BEGIN_UPDATE: &str = "\u{1b}[?2026h";
const END_UPDATE: &str = "\u{1b}[?2026l";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
const CURSOR_HOME: &str = "\u{1b}[H";
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
            covered: None,
        });
    }

    /// Removes the region from the screen and shows the cursor.
    pub fn close() {
        let state = lock().take();
        if let Some(mut state) = state {
            let mut text = state.erase();
            text.push_str(SHOW_CURSOR);
            let _ = state.output.write(&text);
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
                state.output.write(&erased)?;
                state.draw(&frame)
            }
            None => Ok(()),
        }
    }

    /// Clears the screen, and draws the region at its top. What was on the screen moves into the scrollback.
    pub fn clear() -> io::Result<()> {
        match &mut *lock() {
            Some(state) => {
                let frame = state.shown.clone();
                let scroll = "\n".repeat(state.rows);
                let mut update = [BEGIN_UPDATE, &state.erase(), &scroll, CURSOR_HOME].concat();
                state.append_rows(&mut update, &frame);
                update.push_str(END_UPDATE);
                state.output.write(&update)
            }
            None => Ok(()),
        }
    }

    /// Draws and prints nothing until [`uncover`](Self::uncover), because the alternate screen is shown.
    pub(super) fn cover() {
        if let Some(state) = &mut *lock() {
            state.covered = Some(Vec::new());
        }
    }

    /// Prints what was meant to be printed since [`cover`](Self::cover).
    pub(super) fn uncover() -> io::Result<()> {
        let covered = lock().as_mut().and_then(|state| state.covered.take());
        let mut printed = covered.into_iter().flatten();
        printed.try_for_each(|(output, text)| Self::print(output, &text))
    }

    /// Prints text that ends in a newline above the region, if there is one, otherwise as it is.
    pub fn print(output: Output, text: &str) -> io::Result<()> {
        match &mut *lock() {
            Some(State {
                covered: Some(covered),
                ..
            }) => {
                covered.push((output, text.to_owned()));
                Ok(())
            }
            Some(state) => {
                let frame = state.shown.clone();
                let erased = state.erase();
                let text = if output.is_terminal() {
                    Cow::Owned(only_attributes(text).replace('\n', output.newline()))
                } else {
                    Cow::Borrowed(text)
                };
                let mut redrawn = String::new();
                state.append_rows(&mut redrawn, &frame);
                if state.output == output {
                    let update = [BEGIN_UPDATE, &erased, &text, &redrawn, END_UPDATE];
                    return output.write(&update.concat());
                }
                state.output.write(&erased)?;
                output.write(&text)?;
                state.output.write(&redrawn)
            }
            None => output.write(text),
        }
    }

    /// Sends a control sequence, such as the title of the window, without changing the region.
    pub fn send(sequence: &str) {
        if let Some(state) = &*lock() {
            let _ = state.output.write(sequence);
        }
    }

    /// Whether a region is open.
    pub fn is_open() -> bool {
        lock().is_some()
    }
}

impl State {
    fn draw(&mut self, frame: &LiveFrame) -> io::Result<()> {
        if self.covered.is_some() {
            return Ok(());
        }
        // The terminal moves and wraps what is on the screen at each new size. While the user drags the window, nothing is
        // drawn that could be left over.
        if window() != (self.columns, self.rows) {
            (self.columns, self.rows) = window();
            self.resized = Some(Instant::now());
            let erased = self.erase();
            return self.output.write(&erased);
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
        }
        .clipped(crate::screen::rows());
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
        self.output.write(&update)
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
                update.push_str(self.output.newline());
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
                update.push_str(self.output.newline());
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

/// Adds a row. The width of some scripts (from Hebrew to Khmer, and from those of East Asia on) and of emoji is not certain.
fn push_row(update: &mut String, row: &str) {
    let is_uncertain = |character| matches!(character, '\u{590}'..='\u{1fff}' | '\u{2e80}'..);
    if row.contains(is_uncertain) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_too_high_keeps_the_row_of_the_cursor() {
        let clipped = |rows: usize, cursor| {
            let rows = (0..rows).map(|row| row.to_string()).collect();
            let frame = LiveFrame { rows, cursor }.clipped(5);
            (frame.rows.join(" "), frame.cursor)
        };
        assert_eq!(clipped(4, Some((1, 7))), ("0 1 2 3".into(), Some((1, 7))));
        assert_eq!(clipped(6, Some((3, 7))), ("2 3 4 5".into(), Some((1, 7))));
        assert_eq!(clipped(9, Some((2, 7))), ("2 3 4 5".into(), Some((0, 7))));
        assert_eq!(clipped(9, None), ("5 6 7 8".into(), None));
    }

    #[test]
    fn a_row_whose_width_is_not_certain_cannot_take_two() {
        for (row, is_certain) in [
            ("plain [1m row", true),
            ("سلام لا", false),
            ("⠋ · café", true),
            ("🦀", false),
        ] {
            let mut update = String::new();
            push_row(&mut update, row);
            assert_eq!(!update.contains(NO_WRAP), is_certain, "{row}");
        }
    }
}
