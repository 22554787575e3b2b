//! How far long work is, on stderr: one line that changes on a terminal, a line now and then elsewhere.

use crate::markdown::sanitize;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// One line on stderr that changes; nothing where stderr is no terminal.
pub struct Bar {
    is_shown: bool,
    width: AtomicUsize,
}

impl Bar {
    /// Nothing is shown yet.
    pub fn new() -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal(),
            width: AtomicUsize::new(0),
        }
    }

    /// Shows this in place of what is shown.
    pub fn show(&self, line: &str) {
        if self.is_shown {
            let width = line.chars().count();
            let before = self.width.swap(width, Ordering::Relaxed);
            let blank = " ".repeat(before.saturating_sub(width));
            let _ = write!(std::io::stderr().lock(), "\r{}{blank}", sanitize(line));
        }
    }

    /// Shows nothing any more.
    pub fn clear(&self) {
        let before = self.width.swap(0, Ordering::Relaxed);
        if before > 0 {
            let _ = write!(std::io::stderr().lock(), "\r{}\r", " ".repeat(before));
        }
    }
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

/// How often the line changes on a terminal, and how often there is another one elsewhere.
const REDRAWN_EVERY: Duration = Duration::from_millis(100);
const SAID_EVERY: Duration = Duration::from_secs(5);

/// A bar that also tells those who have no terminal, if it takes long.
pub struct Ticker {
    bar: Bar,
    shown: Instant,
}

impl Ticker {
    /// Nothing is shown yet.
    pub fn new() -> Self {
        Self {
            bar: Bar::new(),
            shown: Instant::now(),
        }
    }

    /// Shows what `line` gives, if it is time to.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        let pause = match self.bar.is_shown {
            true => REDRAWN_EVERY,
            false => SAID_EVERY,
        };
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        match self.bar.is_shown {
            true => self.bar.show(&line()),
            false => super::say(&line()),
        }
    }

    /// Shows nothing any more.
    pub fn clear(&self) {
        self.bar.clear();
    }
}

impl Default for Ticker {
    fn default() -> Self {
        Self::new()
    }
}

/// `████░░░░ 3/8`: a part of a whole.
pub fn share(done: u64, total: u64) -> String {
    const WIDTH: u64 = 20;
    let full = (done.saturating_mul(WIDTH))
        .checked_div(total)
        .map_or(WIDTH, |full| full.min(WIDTH)) as usize;
    let rest = WIDTH as usize - full;
    format!("{}{} {done}/{total}", "█".repeat(full), "░".repeat(rest))
}
