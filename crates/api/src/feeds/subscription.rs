//! One subscriber of a session: a cursor in its log.

use super::Count;
use super::draft::{DraftText, DraftUpdate};
use super::session::{FeedItem, PAGE, SessionFeed, event_frame};
use super::sse::frame;
use bytes::Bytes;
use lango_core::{Event, EventRange, SessionStore, StoreError};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// A subscriber of a session.
pub struct SessionSubscription {
    feed: Arc<SessionFeed>,
    store: Arc<dyn SessionStore>,
    items: broadcast::Receiver<FeedItem>,
    /// The `seq` of the last event that was returned.
    cursor: u64,
    /// Events that were read from the store but not returned yet.
    read: VecDeque<Event>,
    is_behind: bool,
    draft: Option<DraftText>,
    _count: Count,
}

/// An item that a subscriber receives.
#[derive(Debug, Clone)]
pub enum SubscriptionItem {
    /// A stored event.
    Event(Arc<Event>, Bytes),
    /// Output of a turn that is not stored.
    Update(Arc<DraftUpdate>),
}

impl SubscriptionItem {
    /// Returns the item as a frame of server-sent events.
    pub fn frame(&self) -> Bytes {
        match self {
            Self::Event(_, frame) => frame.clone(),
            Self::Update(update) => match &**update {
                DraftUpdate::Text(text) => frame("draft", None, text),
                DraftUpdate::Withdrawn(turn) => frame("withdrawn", None, &json!({ "turn": turn })),
                DraftUpdate::Notice(notice) => frame("notice", None, notice),
            },
        }
    }
}

impl SessionSubscription {
    pub(super) fn new(
        feed: Arc<SessionFeed>,
        store: Arc<dyn SessionStore>,
        after: u64,
        draft: Option<DraftText>,
        count: Count,
    ) -> Self {
        Self {
            items: feed.subscribe(),
            feed,
            store,
            cursor: after,
            read: VecDeque::new(),
            is_behind: true,
            draft,
            _count: count,
        }
    }

    /// Waits for the next item. Fails if the session was deleted, or if the store cannot be read; in the second case,
    /// the next call tries again.
    pub async fn next(&mut self) -> Result<SubscriptionItem, StoreError> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.cursor = event.seq;
                let frame = event_frame(&event);
                return Ok(SubscriptionItem::Event(Arc::new(event), frame));
            }
            if self.is_behind {
                self.catch_up().await?;
                continue;
            }
            if let Some(draft) = self.draft.take() {
                return Ok(SubscriptionItem::Update(Arc::new(DraftUpdate::Text(draft))));
            }
            match self.items.recv().await {
                Ok(FeedItem::Event { event, .. }) if event.seq <= self.cursor => {}
                Ok(FeedItem::Event { event, frame })
                    if self.cursor.checked_add(1) == Some(event.seq) =>
                {
                    self.cursor = event.seq;
                    return Ok(SubscriptionItem::Event(event, frame));
                }
                Ok(FeedItem::Update(update)) => return Ok(SubscriptionItem::Update(update)),
                Ok(FeedItem::Deleted) => {
                    let id = self.feed.session.clone();
                    return Err(StoreError::NotFound { id });
                }
                Ok(FeedItem::Event { .. }) | Err(RecvError::Lagged(_)) => self.is_behind = true,
                // The feed lives as long as its subscribers.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let page = EventRange {
            from: self.cursor.saturating_add(1),
            limit: PAGE,
        };
        let events = self.store.read(&self.feed.session, page).await?;
        self.is_behind = events.len() == PAGE;
        self.read = events.into();
        Ok(())
    }
}
