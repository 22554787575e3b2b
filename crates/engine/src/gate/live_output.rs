//! The output of a running tool on its way to the user interface, and to the result of a call that is stopped.
//!
//! A tool pushes text at any rate, and it is published at most every [`INTERVAL`]. In between, only the end of it is kept, so
//! a tool that prints without end costs neither memory nor time. Text is masked as one stream, and the end of the stream
//! is held back as long as it may be the start of a secret; its complete lines only for a moment, so that the last line
//! before a pause is shown. If text in between was dropped, a secret may have been cut in
//! two there, so what follows the gap is not shown until that is impossible.

use crate::runner::UpdateSender;
use lango_core::{CallId, OutputSink};
use lango_secrets::{MaskTextStream, Masks};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The minimum time between two updates of one call.
const INTERVAL: Duration = Duration::from_millis(50);

/// How long complete lines are held back.
const LINE_TIME: Duration = Duration::from_millis(150);

/// How much output is kept for the next update, besides what is hidden after a gap.
const KEPT_BYTES: usize = 16 * 1024;

/// The output of one running call. Once it is dropped, its sinks discard everything.
pub(super) struct LiveOutput {
    masks: Masks,
    unpublished: Mutex<Unpublished>,
    is_changed: Notify,
    is_ended: Notify,
}

#[derive(Default)]
struct Unpublished {
    text: String,
    /// Whether text before this was dropped.
    has_gap: bool,
}

impl LiveOutput {
    pub(super) fn new(masks: Masks) -> Arc<Self> {
        Arc::new(Self {
            masks,
            unpublished: Mutex::default(),
            is_changed: Notify::new(),
            is_ended: Notify::new(),
        })
    }

    /// Returns a sink for the tool.
    pub(super) fn sink(self: &Arc<Self>) -> OutputSink {
        let output = Arc::downgrade(self);
        OutputSink::new(move |text| {
            if let Some(output) = output.upgrade() {
                output.push(text);
            }
        })
    }

    fn push(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let kept = KEPT_BYTES + self.masks.max_echo_bytes();
        let mut unpublished = self.unpublished();
        let start = text.ceil_char_boundary(text.len().saturating_sub(kept));
        if start > 0 {
            unpublished.text.clear();
            unpublished.has_gap = true;
        }
        unpublished.text.push_str(&text[start..]);
        // Not every time: moving the text for every line of a long output would be slow.
        if unpublished.text.len() > 2 * kept {
            let excess = unpublished.text.len() - kept;
            let excess = unpublished.text.ceil_char_boundary(excess);
            unpublished.text.drain(..excess);
            unpublished.has_gap = true;
        }
        drop(unpublished);
        self.is_changed.notify_one();
    }

    /// Ends [`Self::publish`] after what was pushed before.
    pub(super) fn end(&self) {
        self.is_ended.notify_one();
    }

    /// Publishes the output until it ends. Must not start before all masks are loaded. What is held back at the end is not
    /// published: the result of the call follows.
    pub(super) async fn publish(&self, call: &CallId, updates: &UpdateSender) {
        let mut stream = self.masks.text_stream();
        let mut holds_lines = false;
        loop {
            let mut is_over = tokio::select! {
                biased;
                () = self.is_ended.notified() => true,
                () = self.is_changed.notified() => false,
                () = tokio::time::sleep(LINE_TIME), if holds_lines => {
                    holds_lines = false;
                    updates.send_output(call, &stream.end_lines(), false);
                    continue;
                }
            };
            holds_lines = true;
            self.publish_next(&mut stream, call, updates);
            if !is_over {
                is_over = timeout(INTERVAL, self.is_ended.notified()).await.is_ok();
                if is_over {
                    self.publish_next(&mut stream, call, updates);
                }
            }
            if is_over {
                return;
            }
        }
    }

    fn publish_next(&self, stream: &mut MaskTextStream, call: &CallId, updates: &UpdateSender) {
        let Unpublished { text, has_gap } = std::mem::take(&mut *self.unpublished());
        stream.update(&self.masks);
        let mut shown = text.as_str();
        if has_gap {
            let hidden = text.ceil_char_boundary(self.masks.max_echo_bytes());
            let (hidden, rest) = text.split_at(hidden);
            stream.restart(hidden);
            shown = rest;
        }
        updates.send_output(call, &stream.push(shown), has_gap);
    }

    fn unpublished(&self) -> MutexGuard<'_, Unpublished> {
        let unpublished = self.unpublished.lock();
        unpublished.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
