//! Progress of long operations on stderr: a line that changes on a terminal, otherwise a line at regular intervals.

use lango_core::text::sanitize;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A line on stderr that changes in place; shows nothing if stderr is not a terminal.
pub struct ProgressBar {
    is_shown: bool,
    width: AtomicUsize,
}

impl ProgressBar {
    /// Creates it without showing anything yet.
    pub fn new() -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal(),
            width: AtomicUsize::new(0),
        }
    }

    /// Replaces the line.
    pub fn show(&self, line: &str) {
        if self.is_shown {
            let width = line.chars().count();
            let before = self.width.swap(width, Ordering::Relaxed);
            let blank = " ".repeat(before.saturating_sub(width));
            let _ = write!(std::io::stderr().lock(), "\r{}{blank}", sanitize(line));
        }
    }

    /// Clears the line.
    pub fn clear(&self) {
        let before = self.width.swap(0, Ordering::Relaxed);
        if before > 0 {
            let _ = write!(std::io::stderr().lock(), "\r{}\r", " ".repeat(before));
        }
    }
}

impl Default for ProgressBar {
    fn default() -> Self {
        Self::new()
    }
}

/// The intervals between updates on a terminal, and between lines if there is no terminal.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// A progress bar. If stderr is not a terminal and the work takes long, it prints separate lines instead.
pub struct Ticker {
    bar: ProgressBar,
    last_shown: Instant,
}

impl Ticker {
    /// Creates it without showing anything yet.
    pub fn new() -> Self {
        Self {
            bar: ProgressBar::new(),
            last_shown: Instant::now(),
        }
    }

    /// Shows the result of `line`, if an update is due.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        let interval = if self.bar.is_shown {
            REDRAW_INTERVAL
        } else {
            LINE_INTERVAL
        };
        if self.last_shown.elapsed() < interval {
            return;
        }
        self.last_shown = Instant::now();
        if self.bar.is_shown {
            self.bar.show(&line());
        } else {
            super::say(&line());
        }
    }

    /// Clears the line.
    pub fn clear(&self) {
        self.bar.clear();
    }
}

impl Default for Ticker {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats a share of a total as a bar: `████░░░░ 3/8`.
pub fn progress_share(done: u64, total: u64) -> String {
    const WIDTH: u64 = 20;
    let full = (done.saturating_mul(WIDTH))
        .checked_div(total)
        .map_or(WIDTH, |full| full.min(WIDTH)) as usize;
    let rest = WIDTH as usize - full;
    format!("{}{} {done}/{total}", "█".repeat(full), "░".repeat(rest))
}
