//! The feed of one session: a task that reads new events once and sends them to all subscribers.

use super::draft::DraftUpdate;
use super::sse::frame;
use bytes::Bytes;
use lango_core::{Event, EventRange, SessionId, SessionStore, StoreError};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};

/// How many items a subscriber may lag behind before it reads the store again.
const MAX_PENDING: usize = 64;

/// How many events to read at a time. The number is small because an event can have megabytes, and each reader that
/// catches up holds a page.
pub(super) const PAGE: usize = 16;

/// The maximum time between two reads. It is limited because notifications from other processes can be lost.
const MAX_INTERVAL: Duration = Duration::from_secs(5);

/// An item that a feed sends.
#[derive(Debug, Clone)]
pub(super) enum FeedItem {
    /// A stored event, with its frame.
    Event { event: Arc<Event>, frame: Bytes },
    /// Output of a turn that is not stored.
    Update(Arc<DraftUpdate>),
    /// The session was deleted.
    Deleted,
}

pub(super) struct SessionFeed {
    pub session: SessionId,
    items: broadcast::Sender<FeedItem>,
    changed: Notify,
}

impl SessionFeed {
    /// Starts the feed after the event `last`. Its task ends when the last subscriber is gone.
    pub(super) fn start(store: Arc<dyn SessionStore>, session: SessionId, last: u64) -> Arc<Self> {
        let feed = Arc::new(Self {
            session,
            items: broadcast::Sender::new(MAX_PENDING),
            changed: Notify::new(),
        });
        // Events that were stored before the first notification.
        feed.wake();
        tokio::spawn(follow(Arc::downgrade(&feed), store, last));
        feed
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<FeedItem> {
        self.items.subscribe()
    }

    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    pub(super) fn send_update(&self, update: DraftUpdate) {
        self.send(FeedItem::Update(Arc::new(update)));
    }

    fn send(&self, item: FeedItem) {
        // This fails if there is no subscriber any more.
        let _ = self.items.send(item);
    }
}

async fn follow(feed: Weak<SessionFeed>, store: Arc<dyn SessionStore>, mut last: u64) {
    while let Some(feed) = feed.upgrade() {
        let notified = feed.changed.notified();
        let _is_notified = tokio::time::timeout(MAX_INTERVAL, notified).await.is_ok();
        loop {
            let page = EventRange {
                from: last.saturating_add(1),
                limit: PAGE,
            };
            let events = match store.read(&feed.session, page).await {
                Ok(events) => events,
                Err(StoreError::NotFound { .. }) => return feed.send(FeedItem::Deleted),
                // What cannot be read now is read after the next notification.
                Err(_) => break,
            };
            let is_complete = events.len() < PAGE;
            for event in events {
                last = event.seq;
                let frame = event_frame(&event);
                let event = Arc::new(event);
                feed.send(FeedItem::Event { event, frame });
            }
            if is_complete {
                break;
            }
        }
    }
}

/// Returns the frame of a stored event.
pub(super) fn event_frame(event: &Event) -> Bytes {
    frame("event", Some(event.seq), event)
}
