//! A clock that stands still unless told, and names that count.

use lango_core::{Clock, Ids, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the time it was set to.
#[derive(Debug, Default)]
pub struct SetClock {
    now: AtomicU64,
}

impl SetClock {
    /// Sets the time.
    pub fn set(&self, now: Timestamp) {
        self.now.store(now.0, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Relaxed))
    }
}

/// Counts: `s_1`, `t_2`, …
#[derive(Debug, Default)]
pub struct CountingIds {
    last: AtomicU64,
}

impl Ids for CountingIds {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
