//! The state of one tab: its document, frames and requests.

use crate::dialogs::Dialogs;
use crate::handles::Handles;
use crate::tabs::TabId;
use crate::tabs::requests::{RequestSource, Requests};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of frames to track per tab.
const MAX_FRAMES: usize = 1000;
/// Maximum number of workers to track per tab.
const MAX_WORKERS: usize = 1000;

/// The browser context of a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextKind {
    /// Web pages, loaded through the guarded proxy.
    Web,
    /// Workspace files, without network access.
    Workspace,
}

#[derive(Debug)]
pub(crate) struct Tab {
    pub(crate) target: Arc<str>,
    pub(crate) session: Arc<str>,
    pub(crate) context: ContextKind,
    pub(crate) is_ready: bool,
    pub(crate) is_crashed: bool,
    /// The id of the main frame; initially the target's id.
    pub(crate) main_frame: Arc<str>,
    pub(crate) url: Arc<str>,
    /// The loader id of the current document.
    pub(crate) loader: Arc<str>,
    pub(crate) is_loaded: bool,
    /// The HTTP status of the current document.
    pub(crate) status: Option<u16>,
    /// The loader id and the HTTP status of a document that is still loading.
    pub(crate) pending_status: Option<(Arc<str>, u16)>,
    /// The tab that opened this one during the running call.
    pub(crate) opener: Option<TabId>,
    /// The ids of all frames except the main one.
    child_frames: HashSet<Arc<str>>,
    /// Out-of-process frames, by session.
    pub(crate) frames: HashMap<Arc<str>, FrameSession>,
    /// The targets of the tab's workers, by session.
    workers: HashMap<Arc<str>, Arc<str>>,
    requests: Requests,
    last_request: Option<Instant>,
    pub(crate) dialogs: Dialogs,
    pub(crate) handles: Handles,
    /// The frame and the node of the file input whose chooser the page opened.
    pub(crate) file_chooser: Option<(Arc<str>, i64)>,
}

/// An out-of-process frame with its own session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameSession {
    pub(crate) frame: Arc<str>,
    pub(crate) parent: Option<Arc<str>>,
    pub(crate) is_ready: bool,
}

impl Tab {
    pub(crate) fn new(
        target: Arc<str>,
        session: Arc<str>,
        url: Arc<str>,
        context: ContextKind,
    ) -> Self {
        Self {
            main_frame: Arc::clone(&target),
            target,
            session,
            context,
            is_ready: false,
            is_crashed: false,
            url,
            loader: "".into(),
            is_loaded: true,
            status: None,
            pending_status: None,
            opener: None,
            child_frames: HashSet::new(),
            frames: HashMap::new(),
            workers: HashMap::new(),
            requests: Requests::default(),
            last_request: None,
            dialogs: Dialogs::default(),
            handles: Handles::default(),
            file_chooser: None,
        }
    }

    pub(crate) fn has_session(&self, session: &str) -> bool {
        &*self.session == session
            || self.frames.contains_key(session)
            || self.workers.contains_key(session)
    }

    /// Returns whether a frame belongs to this tab.
    pub(crate) fn has_frame(&self, frame: &str) -> bool {
        *self.main_frame == *frame || self.child_frames.contains(frame)
    }

    pub(crate) fn add_frame(&mut self, frame: Arc<str>) {
        if self.child_frames.len() < MAX_FRAMES {
            self.child_frames.insert(frame);
        }
    }

    pub(crate) fn remove_frame(&mut self, frame: &str) {
        self.child_frames.remove(frame);
        self.requests.end_frame(frame);
    }

    pub(crate) fn add_worker(&mut self, session: Arc<str>, target: Arc<str>) {
        if self.workers.len() < MAX_WORKERS {
            self.requests.start_worker(&target);
            self.workers.insert(session, target);
        } else {
            self.requests.end(&target);
        }
    }

    /// Removes the session of a frame or worker, and ends its requests.
    pub(crate) fn remove_session(&mut self, session: &str) {
        self.frames.remove(session);
        if let Some(target) = self.workers.remove(session) {
            // The page's session reported the request for the worker's script under this id.
            self.requests.end(&target);
        }
        self.requests.end_session(session);
    }

    /// Records that a child frame has loaded a new document.
    pub(crate) fn start_child_document(&mut self, frame: &str, loader: &str) {
        self.requests.end_earlier_documents(frame, loader);
    }

    /// Records that the process of a frame, or of the page itself, has exited.
    pub(crate) fn end_requests_of(&mut self, session: &str) {
        self.requests.end_session(session);
    }

    /// Replaces the current document by a new one.
    pub(crate) fn start_document(&mut self, frame: Arc<str>, loader: Arc<str>, url: Arc<str>) {
        self.status = match self.pending_status.take() {
            Some((coming, status)) if coming == loader => Some(status),
            _ => None,
        };
        self.main_frame = frame;
        self.loader = loader;
        self.url = url;
        self.is_loaded = false;
        self.is_crashed = false;
        self.requests.clear();
        self.child_frames.clear();
        self.handles = Handles::default();
        self.file_chooser = None;
    }

    pub(crate) fn start_request(&mut self, id: String, source: RequestSource, now: Instant) {
        self.requests.start(id, source);
        self.last_request = Some(now);
    }

    pub(crate) fn end_request(&mut self, id: &str, now: Instant) {
        if self.requests.end(id) {
            self.last_request = Some(now);
        }
    }

    /// Returns how much longer the network must stay quiet to have been quiet for `quiet` in total; `None` while the
    /// page or one of its requests is loading.
    pub(crate) fn time_until_quiet(&self, quiet: Duration, now: Instant) -> Option<Duration> {
        if !self.is_loaded || self.requests.count(now) > 0 {
            return None;
        }
        let since = self
            .last_request
            .map(|last| now.saturating_duration_since(last));
        Some(since.map_or(Duration::ZERO, |since| quiet.saturating_sub(since)))
    }

    /// Describes what keeps the page from settling.
    pub(crate) fn pending(&self, now: Instant) -> Option<String> {
        match (self.is_loaded, self.requests.count(now)) {
            (true, 0) => None,
            (true, 1) => Some("a request is still running".to_owned()),
            (true, count) => Some(format!("{count} requests are still running")),
            (false, _) => Some("the page is still loading".to_owned()),
        }
    }
}
