//! Counts what a server sends unasked, and closes the connection with a reason when it is too much.

use crate::names::one_line;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The period for which notifications are counted together.
const WINDOW: Duration = Duration::from_secs(10);
/// Maximum number of notifications per period.
const MAX_UNASKED: u32 = 20_000;
/// Maximum number of a server's requests that wait for lango's answer.
const MAX_REQUESTS: u32 = 32;
/// Maximum number of lines that are not messages. Some programs print a greeting or log lines.
const MAX_GARBAGE: u32 = 1_000;

/// The counts for one connection.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    counts: Mutex<Counts>,
    /// How often the server announced that its tools changed.
    tool_list_changes: AtomicU64,
    closed: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    window: Option<Instant>,
    unasked: u32,
    requests: u32,
    garbage: u32,
    last_garbage: Option<String>,
    close_reason: Option<String>,
}

/// Whether to continue the connection or to close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrafficCheck {
    Continue,
    Close,
}

impl Traffic {
    pub(crate) fn count_notification(&self) -> TrafficCheck {
        let mut counts = self.counts();
        let now = Instant::now();
        if counts.window.is_none_or(|since| now - since > WINDOW) {
            counts.window = Some(now);
            counts.unasked = 0;
        }
        counts.unasked += 1;
        if counts.unasked <= MAX_UNASKED {
            return TrafficCheck::Continue;
        }
        counts.close(format!(
            "it sent more than {MAX_UNASKED} unsolicited messages in {} s",
            WINDOW.as_secs()
        ))
    }

    /// Counts a line that is not a message.
    pub(crate) fn count_garbage(&self, text: &[u8]) -> TrafficCheck {
        let mut counts = self.counts();
        counts.garbage += 1;
        let start = &text[..text.len().min(400)];
        counts.last_garbage = Some(one_line(&String::from_utf8_lossy(start), 100));
        if counts.garbage <= MAX_GARBAGE {
            return TrafficCheck::Continue;
        }
        counts.close(format!(
            "it printed more than {MAX_GARBAGE} lines that are not messages"
        ))
    }

    /// Counts a request, which lango must answer.
    pub(crate) fn count_request(&self) -> TrafficCheck {
        let mut counts = self.counts();
        counts.requests += 1;
        if counts.requests <= MAX_REQUESTS {
            return TrafficCheck::Continue;
        }
        counts.close(format!(
            "it sent more than {MAX_REQUESTS} requests without waiting for an answer"
        ))
    }

    /// Counts an answer to a request.
    pub(crate) fn count_answer(&self) {
        let mut counts = self.counts();
        counts.requests = counts.requests.saturating_sub(1);
    }

    /// Closes the connection. If it is already closed, keeps the first reason.
    pub(crate) fn close(&self, reason: String) -> TrafficCheck {
        let check = self.counts().close(reason);
        self.closed.notify_one();
        check
    }

    /// Waits until [`Self::close`] is called. A `count_` method that reports [`TrafficCheck::Close`] does not end the
    /// wait.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Returns why lango closed the connection, if it did.
    pub(crate) fn close_reason(&self) -> Option<String> {
        let counts = self.counts();
        let reason = counts.close_reason.clone()?;
        Some(match &counts.last_garbage {
            Some(garbage) if counts.garbage > MAX_GARBAGE => {
                format!("{reason}, for example `{garbage}`")
            }
            _ => reason,
        })
    }

    /// Returns a clause, to append to a sentence, with an example of a line that was not a message; empty if there was
    /// none.
    pub(crate) fn garbage_note(&self) -> String {
        match &self.counts().last_garbage {
            Some(garbage) => {
                format!(", and printed lines that are not messages, for example `{garbage}`")
            }
            None => String::new(),
        }
    }

    /// Counts a notification that the server's tools changed.
    pub(crate) fn count_tool_list_change(&self) {
        self.tool_list_changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often the server announced that its tools changed.
    pub(crate) fn tool_list_changes(&self) -> u64 {
        self.tool_list_changes.load(Ordering::Acquire)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn close(&mut self, reason: String) -> TrafficCheck {
        self.close_reason.get_or_insert(reason);
        TrafficCheck::Close
    }
}
