//! The leases and tickets of this replica: the state that turns, appends and the renewer share.
//!
//! This replica times a lease from the moment before it sends the request to the database, with a clock that also runs
//! while the machine is suspended. So the lease expires here before it expires in the database. While this replica
//! believes that it owns a session, no other replica can own it.

use super::identity::Identity;
use super::renewer::LEASES;
use crate::queue::QueueFront;
use lango_core::{BoxFuture, SessionId, SessionLease, StoreChange};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};

/// Maximum number of notifications that are queued for sending, or for a subscriber. Further ones are replaced by
/// [`StoreChange::Anything`].
const NOTIFICATIONS: usize = 1024;

/// Time since the machine was booted, including the time that it was suspended.
pub(super) type Moment = Duration;

/// The clock for leases. It also runs while the machine is suspended, except on systems such as macOS, where the
/// monotonic clock is used.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "openbsd"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
const CLOCK: ClockId = ClockId::Monotonic;

pub(super) fn now() -> Moment {
    clock_gettime(CLOCK).try_into().unwrap_or_default()
}

#[derive(Debug)]
pub(crate) struct Lease {
    pub session: SessionId,
    /// The fencing token, unique to this lease.
    pub fence: i64,
    /// When the lease expires, or `None` if another replica owns the session.
    end: watch::Sender<Option<Moment>>,
    /// Whether the lease is already released in the database, although its owner has not dropped it yet.
    is_released: AtomicBool,
}

impl Lease {
    /// Returns whether the lease ended because it was not renewed in time, rather than because another replica owns the
    /// session.
    pub(super) fn has_expired(&self) -> bool {
        self.end.borrow().is_some_and(|end| now() >= end)
    }

    /// Marks the lease as already released in the database by the last append. The renewer then neither renews nor releases it.
    pub(crate) fn note_release(&self) {
        self.is_released.store(true, Ordering::Relaxed);
    }

    fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Relaxed)
    }

    /// Extends a valid lease, or ends it (`None`) because another replica owns the session. A lease that has ended stays ended,
    /// even if the database renewed it in time, because its owner may already have been notified.
    pub(super) fn set_end(&self, end: Option<Moment>) {
        self.end.send_if_modified(|current| {
            let is_valid = current.is_some_and(|end| now() < end);
            if is_valid {
                *current = end;
            }
            is_valid
        });
    }
}

/// A lease that this replica owns. Dropping it releases the lease, and then the place in this replica's queue.
pub(super) struct OwnedLease {
    pub lease: Arc<Lease>,
    pub leases: Arc<LeaseTable>,
    pub _place: QueueFront,
}

impl SessionLease for OwnedLease {
    fn is_valid(&self) -> bool {
        self.lease.end.borrow().is_some_and(|end| now() < end)
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        let mut renewed = self.lease.end.subscribe();
        Box::pin(async move {
            loop {
                let end = *renewed.borrow_and_update();
                let left = end.map_or(Duration::ZERO, |end| end.saturating_sub(now()));
                if left.is_zero() {
                    return;
                }
                // The loop checks again after a renewal and after the timeout.
                let _ = tokio::time::timeout(left, renewed.changed()).await;
            }
        })
    }
}

impl Drop for OwnedLease {
    fn drop(&mut self) {
        self.leases.end(&self.lease);
    }
}

/// A ticket in a session's queue, which all replicas share. Dropping it leaves the queue.
pub(super) struct Ticket {
    pub number: i64,
    pub session: SessionId,
    pub leases: Arc<LeaseTable>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let is_unused = self.leases.state().tickets.remove(&self.number);
        if is_unused {
            self.leases.update(|state| {
                state.releases.push(Release {
                    session: self.session.clone(),
                    fence: None,
                    ticket: Some(self.number),
                });
            });
        }
    }
}

/// A lease or ticket that was released here, but perhaps not yet in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    pub session: SessionId,
    pub fence: Option<i64>,
    pub ticket: Option<i64>,
}

pub(super) struct LeaseTable {
    /// The name of this replica if it has no identity.
    pub random_name: String,
    /// Set if this replica is a server. The identity is `None` if another process uses the name in the folder.
    pub server: OnceLock<Option<Identity>>,
    pub length: Duration,
    state: Mutex<State>,
    pub wake: Notify,
    /// The process id of the renewer's connection on the server. It identifies this replica's own notifications, which the server
    /// also delivers to their sender.
    pub connection: AtomicI32,
    /// Whether the store is being dropped.
    pub closing: watch::Sender<bool>,
    /// Sessions that other replicas released.
    pub released: broadcast::Sender<SessionId>,
    /// Sessions and tasks that other replicas changed.
    pub changed: broadcast::Sender<StoreChange>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    owned: HashMap<SessionId, Arc<Lease>>,
    /// The tickets to renew.
    pub tickets: HashSet<i64>,
    pub releases: Vec<Release>,
    /// Notifications to send: the channel, and the session or task that changed.
    pub notifications: HashSet<(&'static str, String)>,
    /// Whether to renew now instead of waiting for the next interval.
    pub is_renewal_due: bool,
}

impl LeaseTable {
    pub(super) fn new(replica: String, length: Duration) -> Self {
        Self {
            random_name: replica,
            server: OnceLock::new(),
            length,
            state: Mutex::default(),
            wake: Notify::new(),
            connection: AtomicI32::default(),
            closing: watch::Sender::new(false),
            released: broadcast::channel(NOTIFICATIONS).0,
            changed: broadcast::channel(NOTIFICATIONS).0,
        }
    }

    pub(super) fn is_server(&self) -> bool {
        self.server.get().is_some()
    }

    pub(super) fn replica(&self) -> &str {
        let identity = self.server.get().and_then(Option::as_ref);
        identity.map_or(&self.random_name, |identity| &identity.name)
    }

    /// Returns the lease of a session, unless it was released. The lease may have expired.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<Lease>> {
        self.state().owned.get(session).cloned()
    }

    /// Adds a lease that was requested at `requested`, and schedules its renewal.
    pub(super) fn add(&self, session: SessionId, fence: i64, requested: Moment) -> Arc<Lease> {
        let lease = Arc::new(Lease {
            session: session.clone(),
            fence,
            end: watch::Sender::new(Some(requested + self.length)),
            is_released: AtomicBool::new(false),
        });
        self.update(|state| {
            state.owned.insert(session, Arc::clone(&lease));
            state.is_renewal_due |= now().saturating_sub(requested) > self.length / 3;
        });
        lease
    }

    /// Returns the tickets of a session that were released here but may still be in the database.
    pub(super) fn released_tickets(&self, session: &SessionId) -> Vec<i64> {
        let state = self.state();
        let releases = state.releases.iter();
        let releases = releases.filter(|release| release.session == *session);
        releases.filter_map(|release| release.ticket).collect()
    }

    /// Queues a notification for other replicas.
    pub(super) fn notify(&self, channel: &'static str, subject: &str) {
        self.update(|state| {
            // An empty subject means that anything may have changed.
            let fits = state.notifications.len() < NOTIFICATIONS
                && subject.len() < 1000
                && !subject.contains('\0');
            let subject = if fits { subject } else { "" };
            state.notifications.insert((channel, subject.to_owned()))
        });
    }

    /// Removes a lease and lets the renewer release it, unless the database has already released it.
    fn end(&self, lease: &Lease) {
        let Lease { session, fence, .. } = lease;
        self.update(|state| {
            let owned = state.owned.get(session);
            if owned.is_some_and(|owned| owned.fence == *fence) {
                state.owned.remove(session);
            }
            if !lease.is_released() {
                state.releases.push(Release {
                    session: session.clone(),
                    fence: Some(*fence),
                    ticket: None,
                });
            }
        });
        if lease.is_released() {
            self.notify(LEASES, session.as_str());
        }
    }

    /// Changes the state and wakes the renewer.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) {
        change(&mut self.state());
        self.wake.notify_one();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn to_renew(&self) -> (Vec<Arc<Lease>>, Vec<i64>) {
        let mut state = self.state();
        state.is_renewal_due = false;
        let owned = state.owned.values().filter(|lease| !lease.is_released());
        let owned = owned.cloned().collect();
        (owned, state.tickets.iter().copied().collect())
    }

    /// Returns whether the store is being dropped and all releases and notifications have been sent.
    pub(super) fn is_done(&self) -> bool {
        let state = self.state();
        *self.closing.borrow() && state.releases.is_empty() && state.notifications.is_empty()
    }
}
