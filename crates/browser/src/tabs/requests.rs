//! The running requests of a tab. The browser does not report the end of every request: those of a removed frame, document
//! or worker end with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of running requests to track per tab.
const MOST_REQUESTS: usize = 1000;
/// Time for a worker to start, during which its script counts as running. The browser reports nothing about a worker that is
/// terminated before.
const SCRIPT_TIME: Duration = Duration::from_secs(2);

/// The requests of a tab that run, by the browser's ids.
#[derive(Debug, Default)]
pub(crate) struct Requests(HashMap<String, RequestSource>);

/// What made a request.
#[derive(Debug)]
pub(crate) struct RequestSource {
    /// The session that reported it.
    pub(crate) session: Arc<str>,
    /// The frame and the load of its document; none for the requests of workers.
    pub(crate) frame: Option<Arc<str>>,
    pub(crate) loader: Option<Arc<str>>,
    /// When it stops counting as running; `None` if the browser reports its end.
    pub(crate) deadline: Option<Instant>,
}

impl RequestSource {
    /// Returns when the script of a worker that has not started stops counting.
    pub(crate) fn script_deadline(now: Instant) -> Instant {
        now + SCRIPT_TIME
    }
}

impl Requests {
    pub(crate) fn start(&mut self, id: String, source: RequestSource) {
        if self.0.len() < MOST_REQUESTS {
            self.0.insert(id, source);
        }
    }

    /// Ends one; `false` if it did not run.
    pub(crate) fn end(&mut self, id: &str) -> bool {
        self.0.remove(id).is_some()
    }

    /// Records that a worker has started: its session reports the end of its script.
    pub(crate) fn start_worker(&mut self, script: &str) {
        if let Some(source) = self.0.get_mut(script) {
            source.deadline = None;
        }
    }

    /// Ends those of a frame that is gone.
    pub(crate) fn end_frame(&mut self, frame: &str) {
        self.0
            .retain(|_, source| source.frame.as_deref() != Some(frame));
    }

    /// Ends those of the documents that a frame showed before this one.
    pub(crate) fn end_earlier_documents(&mut self, frame: &str, loader: &str) {
        self.0.retain(|_, source| {
            source.frame.as_deref() != Some(frame) || source.loader.as_deref() == Some(loader)
        });
    }

    /// Ends those of a frame's process or a worker that is gone.
    pub(crate) fn end_session(&mut self, session: &str) {
        self.0.retain(|_, source| &*source.session != session);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the number of running requests.
    pub(crate) fn count(&self, now: Instant) -> usize {
        let sources = self.0.values();
        sources
            .filter(|source| source.deadline.is_none_or(|deadline| now < deadline))
            .count()
    }
}
