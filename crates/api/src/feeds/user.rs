//! The feed of some users: their lists of sessions and of pending approvals, as they change.

use super::Count;
use super::sse::frame;
use crate::model::{PendingList, SessionItem};
use bytes::Bytes;
use lango_core::{
    SessionCatalog, SessionId, SessionQuery, SessionStatus, SessionSummary, StoreError, UserId,
};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{Notify, watch};

/// How long to collect changes, so that a busy session is read a few times a second instead of after each event.
const GATHERING: Duration = Duration::from_millis(200);

/// The maximum time between two reads. It is limited because notifications from other processes can be lost.
const MAX_INTERVAL: Duration = Duration::from_secs(10);

/// How many of the latest sessions to compare if it is unknown which have changed.
const RECENT: usize = 100;

/// The maximum number of sessions whose last state is remembered.
const MAX_KNOWN: usize = 10_000;

const MAX_PENDING: usize = 256;

pub(super) struct UserFeed {
    users: Vec<UserId>,
    items: broadcast::Sender<Bytes>,
    approvals: watch::Sender<Bytes>,
    changed: Mutex<SessionChangeItem>,
    wake: Notify,
}

#[derive(Default)]
struct SessionChangeItem {
    sessions: HashSet<SessionId>,
    anything: bool,
}

impl UserFeed {
    /// Starts the feed. Its task ends when the last subscriber is gone.
    pub(super) fn start(catalog: Arc<dyn SessionCatalog>, users: Vec<UserId>) -> Arc<Self> {
        let feed = Arc::new(Self {
            users,
            items: broadcast::Sender::new(MAX_PENDING),
            approvals: watch::Sender::new(Bytes::new()),
            changed: Mutex::default(),
            wake: Notify::new(),
        });
        let watcher = Watcher {
            catalog,
            known: HashMap::new(),
            recent: HashSet::new(),
        };
        tokio::spawn(follow(Arc::downgrade(&feed), watcher));
        feed
    }

    pub(super) fn session_changed(&self, session: &SessionId) {
        self.lock().sessions.insert(session.clone());
        self.wake.notify_one();
    }

    pub(super) fn anything_changed(&self) {
        self.lock().anything = true;
        self.wake.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SessionChangeItem> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, frame: Bytes) {
        // This fails if there is no subscriber any more.
        let _ = self.items.send(frame);
    }
}

/// The known state of the sessions and approvals of some users.
struct Watcher {
    catalog: Arc<dyn SessionCatalog>,
    known: HashMap<SessionId, SessionSummary>,
    /// The most recent sessions at the time of the last comparison.
    recent: HashSet<SessionId>,
}

async fn follow(feed: Weak<UserFeed>, mut watcher: Watcher) {
    let mut is_first = true;
    while let Some(feed) = feed.upgrade() {
        let changed = std::mem::take(&mut *feed.lock());
        let is_unknown = is_first || changed.anything;
        // What cannot be read now is compared next time.
        if watcher.read_changed(&feed, changed.sessions).await.is_err()
            || is_unknown && watcher.compare_recent(&feed, is_first).await.is_err()
        {
            feed.lock().anything = true;
        } else {
            is_first = false;
        }
        if tokio::time::timeout(MAX_INTERVAL, feed.wake.notified())
            .await
            .is_err()
        {
            feed.lock().anything = true;
        }
        tokio::time::sleep(GATHERING).await;
    }
}

impl Watcher {
    async fn compare_recent(&mut self, feed: &UserFeed, is_first: bool) -> Result<(), StoreError> {
        let mut recent = HashSet::new();
        for user in &feed.users {
            let query = SessionQuery::recent(RECENT);
            for summary in self.catalog.list(user, query).await? {
                recent.insert(summary.id.clone());
                self.note(feed, summary, is_first);
            }
        }
        // Those that are not recent any more may have been deleted by another process.
        let before = std::mem::replace(&mut self.recent, recent);
        let gone: HashSet<SessionId> = before.difference(&self.recent).cloned().collect();
        self.read_changed(feed, gone).await?;
        // Approvals can also change in sessions that are not recent.
        self.send_approvals(feed).await
    }

    async fn read_changed(
        &mut self,
        feed: &UserFeed,
        sessions: HashSet<SessionId>,
    ) -> Result<(), StoreError> {
        let mut concerns_approvals = false;
        for session in sessions {
            match self.find(feed, &session).await? {
                Some(summary) => concerns_approvals |= self.note(feed, summary, false),
                None => {
                    if let Some(known) = self.known.remove(&session) {
                        concerns_approvals |= known.status == SessionStatus::Waiting;
                        feed.send(frame("deleted", None, &json!({ "id": session })));
                    }
                }
            }
        }
        if concerns_approvals {
            self.send_approvals(feed).await?;
        }
        Ok(())
    }

    async fn find(
        &self,
        feed: &UserFeed,
        session: &SessionId,
    ) -> Result<Option<SessionSummary>, StoreError> {
        for user in &feed.users {
            let found = self.catalog.find(user, session.as_str(), 1).await?;
            if let Some(summary) = found.into_iter().find(|found| found.id == *session) {
                return Ok(Some(summary));
            }
        }
        Ok(None)
    }

    /// Sends a session if it has changed. Returns whether its approvals may have changed.
    fn note(&mut self, feed: &UserFeed, summary: SessionSummary, is_first: bool) -> bool {
        let known = self.known.get(&summary.id);
        if known == Some(&summary) {
            return false;
        }
        let was_waiting = known.is_none_or(|known| known.status == SessionStatus::Waiting);
        let concerns_approvals = was_waiting || summary.status == SessionStatus::Waiting;
        if !is_first {
            feed.send(frame("session", None, &SessionItem::from(summary.clone())));
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(summary.id.clone(), summary);
        concerns_approvals
    }

    async fn send_approvals(&self, feed: &UserFeed) -> Result<(), StoreError> {
        let mut waiting = Vec::new();
        for user in &feed.users {
            let approvals = self.catalog.approvals(user).await?;
            let user = |waiting| (user.clone(), waiting);
            waiting.extend(approvals.waiting.into_iter().map(user));
        }
        let frame = frame("approvals", None, &PendingList::of(waiting));
        feed.approvals.send_if_modified(|known| {
            let is_new = *known != frame;
            *known = frame;
            is_new
        });
        Ok(())
    }
}

/// A subscriber of the lists of some users.
pub(crate) struct UserSubscription {
    _feed: Arc<UserFeed>,
    items: broadcast::Receiver<Bytes>,
    approvals: watch::Receiver<Bytes>,
    _count: Count,
}

impl UserSubscription {
    pub(super) fn new(feed: Arc<UserFeed>, count: Count) -> Self {
        // The feed must know the sessions that the subscriber reads now, so that it can report their deletion.
        feed.anything_changed();
        let mut approvals = feed.approvals.subscribe();
        approvals.mark_changed();
        Self {
            items: feed.items.subscribe(),
            approvals,
            _feed: feed,
            _count: count,
        }
    }

    /// Waits for the next frame. A reader that missed frames gets `reset`, and must read the lists again.
    pub(crate) async fn next(&mut self) -> Bytes {
        loop {
            tokio::select! {
                biased;
                changed = self.approvals.changed() => {
                    let frame = self.approvals.borrow_and_update().clone();
                    if changed.is_ok() && !frame.is_empty() {
                        return frame;
                    }
                }
                item = self.items.recv() => match item {
                    Ok(frame) => return frame,
                    Err(RecvError::Lagged(_)) => return frame("reset", None, &json!({})),
                    // The feed lives as long as its subscribers.
                    Err(RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }
}
