//! The running requests of a tab. The browser does not report the end of every request, so removing a frame, document
//! or worker also ends its requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of running requests to track per tab.
const MAX_REQUESTS: usize = 1000;
/// Timeout for a worker to start. Until then the request for its script counts as running. The timeout is needed
/// because the browser reports nothing about a worker that is terminated before it starts.
const WORKER_START_TIMEOUT: Duration = Duration::from_secs(2);

/// The running requests of a tab, by the browser's request ids.
#[derive(Debug, Default)]
pub(crate) struct Requests(HashMap<String, RequestSource>);

/// The origin of a request.
#[derive(Debug)]
pub(crate) struct RequestSource {
    /// The session that reported it.
    pub(crate) session: Arc<str>,
    /// The frame and the loader id of its document; `None` for requests of workers.
    pub(crate) frame: Option<Arc<str>>,
    pub(crate) loader: Option<Arc<str>>,
    /// When the request stops counting as running; `None` if the browser reports its end.
    pub(crate) deadline: Option<Instant>,
}

impl RequestSource {
    /// Returns the deadline of a worker's script request: if the worker has not started by then, the request no longer
    /// counts as running.
    pub(crate) fn script_deadline(now: Instant) -> Instant {
        now + WORKER_START_TIMEOUT
    }
}

impl Requests {
    pub(crate) fn start(&mut self, id: String, source: RequestSource) {
        if self.0.len() < MAX_REQUESTS {
            self.0.insert(id, source);
        }
    }

    /// Ends a request; returns `false` if it was not running.
    pub(crate) fn end(&mut self, id: &str) -> bool {
        self.0.remove(id).is_some()
    }

    /// Records that a worker has started; from now on its session reports the end of its script request.
    pub(crate) fn start_worker(&mut self, script: &str) {
        if let Some(source) = self.0.get_mut(script) {
            source.deadline = None;
        }
    }

    /// Ends the requests of a removed frame.
    pub(crate) fn end_frame(&mut self, frame: &str) {
        self.0
            .retain(|_, source| source.frame.as_deref() != Some(frame));
    }

    /// Ends the requests of a frame's earlier documents.
    pub(crate) fn end_earlier_documents(&mut self, frame: &str, loader: &str) {
        self.0.retain(|_, source| {
            source.frame.as_deref() != Some(frame) || source.loader.as_deref() == Some(loader)
        });
    }

    /// Ends the requests of a frame's process, or of a worker, that no longer exists.
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
