//! Live events. Each watched session has one feed, which reads new events from the store once and shares them among all
//! subscribers. A subscriber has a cursor: it reads the store until it has caught up, then follows the feed. If it
//! falls behind, or the feed skips something, it reads the store again. So every subscriber sees each event once and in
//! order.
//!
//! Drafts come only from turns of this process. A subscriber that arrives in the middle of a draft gets the text so
//! far.

mod draft;
mod session;
mod sse;
mod subscription;
mod user;

pub use draft::{DraftNotice, DraftText, DraftUpdate};
pub(crate) use sse::{comment, frame};
pub use subscription::{SessionSubscription, SubscriptionItem};
pub(crate) use user::UserSubscription;

use draft::Draft;
use futures_util::StreamExt as _;
use lango_core::{
    ChangeFeed, SessionCatalog, SessionId, SessionStore, StoreChange, TurnId, UserId,
};
use lango_engine::TurnUpdate;
use session::SessionFeed;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use user::UserFeed;

/// The feeds of a server.
pub struct Feeds {
    sessions: Arc<dyn SessionStore>,
    catalog: Arc<dyn SessionCatalog>,
    changes: Arc<dyn ChangeFeed>,
    active: Mutex<Active>,
    subscribers: Arc<AtomicUsize>,
}

/// Feeds with subscribers, and drafts of turns that run here.
#[derive(Default)]
struct Active {
    sessions: HashMap<SessionId, Weak<SessionFeed>>,
    users: HashMap<Vec<UserId>, Weak<UserFeed>>,
    drafts: HashMap<SessionId, Draft>,
    /// Whether a task forwards changes of the store to the feeds.
    is_listening: bool,
}

impl Feeds {
    /// Creates the feeds over a store. Nothing runs until there is a subscriber.
    pub fn new(
        sessions: Arc<dyn SessionStore>,
        catalog: Arc<dyn SessionCatalog>,
        changes: Arc<dyn ChangeFeed>,
    ) -> Arc<Self> {
        Arc::new(Self {
            sessions,
            catalog,
            changes,
            active: Mutex::default(),
            subscribers: Arc::default(),
        })
    }

    /// Subscribes to the events of a session after the event `after`. `last` is the `seq` of the last known event in
    /// its log.
    pub fn subscribe(
        self: &Arc<Self>,
        session: &SessionId,
        after: u64,
        last: u64,
    ) -> SessionSubscription {
        let feed = {
            let mut active = self.lock();
            let known = active.sessions.get(session).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let feed = SessionFeed::start(Arc::clone(&self.sessions), session.clone(), last);
                let weak = Arc::downgrade(&feed);
                active.sessions.insert(session.clone(), weak);
                feed
            })
        };
        self.listen();
        let draft = self.lock().drafts.get(session).map(Draft::snapshot);
        SessionSubscription::new(feed, Arc::clone(&self.sessions), after, draft, self.count())
    }

    /// Subscribes to the lists of sessions and approvals of these users.
    pub(crate) fn subscribe_users(self: &Arc<Self>, users: Vec<UserId>) -> UserSubscription {
        let feed = {
            let mut active = self.lock();
            let known = active.users.get(&users).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let feed = UserFeed::start(Arc::clone(&self.catalog), users.clone());
                active.users.insert(users, Arc::downgrade(&feed));
                feed
            })
        };
        self.listen();
        UserSubscription::new(feed, self.count())
    }

    /// Returns the number of subscriptions.
    pub fn subscribers(&self) -> usize {
        self.subscribers.load(Ordering::Relaxed)
    }

    /// Publishes output of a turn of this process that is not stored. Stored events reach the feeds through the store.
    pub fn publish(&self, session: &SessionId, turn: &TurnId, shown: &TurnUpdate) {
        let mut active = self.lock();
        Draft::note(&mut active.drafts, session, turn, shown);
        let feed = active.sessions.get(session).and_then(Weak::upgrade);
        drop(active);
        if let Some(feed) = feed
            && let Some(update) = DraftUpdate::of(turn, shown)
        {
            feed.send_update(update);
        }
    }

    /// Starts to forward changes of the store to the feeds, until no feed has subscribers.
    fn listen(self: &Arc<Self>) {
        let mut active = self.lock();
        if std::mem::replace(&mut active.is_listening, true) {
            return;
        }
        drop(active);
        let (feeds, mut changes) = (Arc::clone(self), self.changes.subscribe());
        tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                if !feeds.pass_on(&change) {
                    return;
                }
            }
        });
    }

    /// Forwards a change to the feeds. Returns whether any feed still has subscribers.
    fn pass_on(&self, change: &StoreChange) -> bool {
        let mut active = self.lock();
        match change {
            StoreChange::Session(session) => {
                if let Some(feed) = active.sessions.get(session).and_then(Weak::upgrade) {
                    feed.wake();
                }
                for feed in active.users.values().filter_map(Weak::upgrade) {
                    feed.session_changed(session);
                }
            }
            StoreChange::Anything => {
                active.sessions.retain(|_, feed| feed.strong_count() > 0);
                active.users.retain(|_, feed| feed.strong_count() > 0);
                for feed in active.sessions.values().filter_map(Weak::upgrade) {
                    feed.wake();
                }
                for feed in active.users.values().filter_map(Weak::upgrade) {
                    feed.anything_changed();
                }
            }
            StoreChange::Task(_) => {}
        }
        let is_used = active.sessions.values().any(|feed| feed.strong_count() > 0)
            || active.users.values().any(|feed| feed.strong_count() > 0);
        if !is_used {
            active.sessions.clear();
            active.users.clear();
            active.is_listening = false;
        }
        is_used
    }

    fn count(&self) -> Count {
        self.subscribers.fetch_add(1, Ordering::Relaxed);
        Count(Arc::clone(&self.subscribers))
    }

    fn lock(&self) -> MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that counts one subscription.
pub(crate) struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
