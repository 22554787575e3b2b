//! What a server sends unasked, counted: what is too much ends the connection, with a reason that can be read later.

use crate::names::line;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long messages are counted together.
const WINDOW: Duration = Duration::from_secs(10);
/// How many notifications a server may send in that time.
const MOST_UNASKED: u32 = 20_000;
/// How many requests of a server may wait for our answer.
const MOST_REQUESTS: u32 = 32;
/// How many lines that are no messages are overlooked. Some programs greet, or print what they do.
const MOST_GARBAGE: u32 = 1_000;

/// What came so far.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    counts: Mutex<Counts>,
    /// How often the server said that its tools are others now.
    new_tools: AtomicU64,
    cut: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    window: Option<Instant>,
    unasked: u32,
    requests: u32,
    garbage: u32,
    last_garbage: Option<String>,
    cut: Option<String>,
}

/// Whether the connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoesOn,
    IsCut,
}

impl Traffic {
    /// A notification came.
    pub(crate) fn unasked(&self) -> Verdict {
        let mut counts = self.counts();
        let now = Instant::now();
        if counts.window.is_none_or(|since| now - since > WINDOW) {
            counts.window = Some(now);
            counts.unasked = 0;
        }
        counts.unasked += 1;
        match counts.unasked > MOST_UNASKED {
            true => counts.cut(format!(
                "it sent more than {MOST_UNASKED} messages in {} s that nobody had asked for",
                WINDOW.as_secs()
            )),
            false => Verdict::GoesOn,
        }
    }

    /// A line came that is no message.
    pub(crate) fn garbage(&self, text: &[u8]) -> Verdict {
        let mut counts = self.counts();
        counts.garbage += 1;
        let beginning = &text[..text.len().min(400)];
        counts.last_garbage = Some(line(&String::from_utf8_lossy(beginning), 100));
        match counts.garbage > MOST_GARBAGE {
            true => counts.cut(format!(
                "it printed more than {MOST_GARBAGE} lines that are no messages"
            )),
            false => Verdict::GoesOn,
        }
    }

    /// A request came, which has to be answered.
    pub(crate) fn asked(&self) -> Verdict {
        let mut counts = self.counts();
        counts.requests += 1;
        match counts.requests > MOST_REQUESTS {
            true => counts.cut(format!(
                "it asked more than {MOST_REQUESTS} questions without waiting for an answer"
            )),
            false => Verdict::GoesOn,
        }
    }

    /// A request was answered.
    pub(crate) fn answered(&self) {
        let mut counts = self.counts();
        counts.requests = counts.requests.saturating_sub(1);
    }

    /// Ends the connection; the first reason stays.
    pub(crate) fn cut(&self, reason: String) -> Verdict {
        let verdict = self.counts().cut(reason);
        self.cut.notify_one();
        verdict
    }

    /// Comes to an end when the connection was ended from here, elsewhere than where messages are read.
    pub(crate) async fn cut_off(&self) {
        self.cut.notified().await;
    }

    /// Why the connection was ended from here, if it was.
    pub(crate) fn reason(&self) -> Option<String> {
        let counts = self.counts();
        let reason = counts.cut.clone()?;
        Some(match &counts.last_garbage {
            Some(garbage) if counts.garbage > MOST_GARBAGE => {
                format!("{reason}, such as `{garbage}`")
            }
            _ => reason,
        })
    }

    /// What it printed in place of messages, with its own comma.
    pub(crate) fn seen(&self) -> String {
        match &self.counts().last_garbage {
            Some(garbage) => format!(", and printed what is no message, such as `{garbage}`"),
            None => String::new(),
        }
    }

    /// The server says that its tools are others now.
    pub(crate) fn note_new_tools(&self) {
        self.new_tools.fetch_add(1, Ordering::AcqRel);
    }

    /// How often it said so.
    pub(crate) fn new_tools(&self) -> u64 {
        self.new_tools.load(Ordering::Acquire)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn cut(&mut self, reason: String) -> Verdict {
        self.cut.get_or_insert(reason);
        Verdict::IsCut
    }
}
