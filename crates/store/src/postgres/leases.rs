//! The leases and tickets of this replica, as far as it knows: the state that turns, appends and the renewer share.
//!
//! A lease expires here by a clock that also counts while the machine is suspended, starting before the request was sent to the
//! database. So it expires here before it expires there, and no other replica can own the session while this one still does.

use super::identity::Identity;
use super::renewer::LEASES;
use crate::queue::QueuePlace;
use lango_core::{BoxFuture, Change, SessionId, SessionLease};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};

/// Number of notifications that can be queued to be sent, or to be received by a listener. Beyond that they are replaced by
/// [`Change::Anything`].
const NOTIFICATIONS: usize = 1024;

/// Time since the machine was started, including the time that it was suspended.
pub(super) type Moment = Duration;

/// The clock that also counts while the machine is suspended. On other systems, such as macOS, the monotonic clock does.
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
    /// When it expires; `None` once another replica owns the session.
    end: watch::Sender<Option<Moment>>,
    /// Whether the lease is already released in the database, although its owner has not dropped it yet.
    is_released: AtomicBool,
}

impl Lease {
    /// Returns whether it ended because it was not renewed in time, and not because another replica owns the session.
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

    /// Renews a valid lease, or ends it (`None`) because another replica owns the session. A lease that ended stays as it is,
    /// even if the database renewed it in time: its owner may have been notified.
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

/// A session that this replica owns. Dropping it releases the lease, and then the place in the queue of this replica.
pub(super) struct OwnedLease {
    pub lease: Arc<Lease>,
    pub leases: Arc<LeaseTable>,
    pub _place: QueuePlace,
}

impl SessionLease for OwnedLease {
    fn is_valid(&self) -> bool {
        self.lease.end.borrow().is_some_and(|end| now() < end)
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        let mut seen = self.lease.end.subscribe();
        Box::pin(async move {
            loop {
                let end = *seen.borrow_and_update();
                let left = end.map_or(Duration::ZERO, |end| end.saturating_sub(now()));
                if left.is_zero() {
                    return;
                }
                // Checked again after a renewal and after the timeout.
                let _ = tokio::time::timeout(left, seen.changed()).await;
            }
        })
    }
}

impl Drop for OwnedLease {
    fn drop(&mut self) {
        self.leases.end(&self.lease);
    }
}

/// A place in the queue of a session over all replicas. Dropping it leaves the queue.
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

/// A lease or a ticket that was released here, but not yet in the database as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    pub session: SessionId,
    pub fence: Option<i64>,
    pub ticket: Option<i64>,
}

pub(super) struct LeaseTable {
    /// The name of a replica without an identity.
    pub random_name: String,
    /// Set if this replica is a server; the identity is missing if another process uses the name in the folder.
    pub server: OnceLock<Option<Identity>>,
    pub length: Duration,
    state: Mutex<State>,
    pub wake: Notify,
    /// The process id of the renewer's connection on the server, which also delivers notifications to their sender.
    pub connection: AtomicI32,
    /// Whether the store is being dropped.
    pub closing: watch::Sender<bool>,
    /// Sessions that other replicas released.
    pub released: broadcast::Sender<SessionId>,
    /// Sessions and tasks that other replicas changed.
    pub changed: broadcast::Sender<Change>,
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

    /// Returns the lease of a session, valid or not, that was not released.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<Lease>> {
        self.state().owned.get(session).cloned()
    }

    /// Adds a lease that was requested at `asked`, to be renewed.
    pub(super) fn add(&self, session: SessionId, fence: i64, asked: Moment) -> Arc<Lease> {
        let lease = Arc::new(Lease {
            session: session.clone(),
            fence,
            end: watch::Sender::new(Some(asked + self.length)),
            is_released: AtomicBool::new(false),
        });
        self.update(|state| {
            state.owned.insert(session, Arc::clone(&lease));
            state.is_renewal_due |= now().saturating_sub(asked) > self.length / 3;
        });
        lease
    }

    /// Returns the tickets of a session that were released here, and that the database may still have.
    pub(super) fn released_tickets(&self, session: &SessionId) -> Vec<i64> {
        let state = self.state();
        let releases = state.releases.iter();
        let releases = releases.filter(|release| release.session == *session);
        releases.filter_map(|release| release.ticket).collect()
    }

    /// Queues a notification of other replicas.
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

    /// Forgets a lease, and has the renewer release it, unless the database has released it.
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

    /// Returns whether the store is being dropped and the database knows of all releases.
    pub(super) fn is_done(&self) -> bool {
        let state = self.state();
        *self.closing.borrow() && state.releases.is_empty() && state.notifications.is_empty()
    }
}
