//! A clock that only moves when a test sets it, and ids that count up.

use lango_core::{Clock, IdGenerator, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that shows the time it was last set to.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicU64,
}

impl ManualClock {
    pub fn set(&self, now: Timestamp) {
        self.now.store(now.0, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Relaxed))
    }
}

/// A source of ids that counts up over all prefixes: `s_1`, `t_2`, …
#[derive(Debug, Default)]
pub struct CountingIds {
    last: AtomicU64,
}

impl IdGenerator for CountingIds {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
