//! The leases and tickets of this replica, as far as it knows: the state that turns, appends and the renewer share.
//!
//! A lease ends here when its time is over by a clock that goes on while the machine sleeps, counted from before the
//! database was asked. So it ends here before it ends there, and no other replica can own it while this one believes to.

use crate::queue::QueuePlace;
use lango_core::{BoxFuture, Change, SessionId, SessionLease};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};

/// Number of notifications that can wait; beyond that others are notified that anything may have changed.
const NOTIFICATIONS: usize = 1024;

/// Number of changes that a listener can be behind.
const BEHIND: usize = 1024;

/// A moment since the machine was started, with the time that it slept.
pub(super) type Moment = Duration;

/// The clock that goes on while the machine sleeps. On other systems, macOS among them, it is the only steady one.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "openbsd"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
const CLOCK: ClockId = ClockId::Monotonic;

pub(super) fn now() -> Moment {
    let now = clock_gettime(CLOCK);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}

/// A session's lease.
#[derive(Debug)]
pub(crate) struct Lease {
    pub session: SessionId,
    /// The number that only this lease has.
    pub fence: i64,
    end: watch::Sender<End>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    At(Moment),
    Lost,
}

impl Lease {
    /// Whether this replica still owns the session.
    pub(super) fn is_valid(&self) -> bool {
        matches!(*self.end.borrow(), End::At(end) if now() < end)
    }

    /// Whether it ended because it was not renewed in time, and not because the database said so.
    pub(super) fn has_run_out(&self) -> bool {
        matches!(*self.end.borrow(), End::At(end) if now() >= end)
    }

    /// Resolves when it has ended.
    async fn ended(&self) {
        let mut seen = self.end.subscribe();
        loop {
            let end = *seen.borrow_and_update();
            let End::At(end) = end else { return };
            let Some(left) = end.checked_sub(now()).filter(|left| !left.is_zero()) else {
                return;
            };
            // However it ends, the next look tells.
            let _ = tokio::time::timeout(left, seen.changed()).await;
        }
    }

    fn renew(&self, until: Moment) {
        self.end.send_if_modified(|end| match end {
            // One that ended stays so, even if the database renewed it in time: its owner may have been notified.
            End::At(end) if now() < *end => {
                *end = until;
                true
            }
            _ => false,
        });
    }

    fn lose(&self) {
        self.end.send_if_modified(|end| match end {
            // One that ran out is known to have.
            End::At(end) if now() >= *end => false,
            _ => {
                *end = End::Lost;
                true
            }
        });
    }
}

/// A lease until it is dropped, which releases it.
pub(super) struct LeaseGuard {
    pub lease: Arc<Lease>,
    pub leases: Arc<LeaseTable>,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.leases.release(&self.lease);
    }
}

/// A session that this replica owns.
pub(super) struct OwnedLease {
    // First the lease, then the place: the next waiter of this replica finds it released.
    pub guard: LeaseGuard,
    pub _place: QueuePlace,
}

impl SessionLease for OwnedLease {
    fn is_valid(&self) -> bool {
        self.guard.lease.is_valid()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.guard.lease.ended())
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
        self.leases.leave(&self.session, self.number);
    }
}

/// A lease or a ticket that was released here, and not yet in the database as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    pub session: SessionId,
    pub fence: Option<i64>,
    pub ticket: Option<i64>,
    /// When it ends by itself.
    until: Moment,
}

/// What other replicas are to be notified of: the channel and the subject.
pub(super) type Notifications = HashSet<(&'static str, String)>;

/// All leases of this replica.
pub(super) struct LeaseTable {
    /// The name of this replica.
    pub replica: String,
    /// Length of a lease.
    pub length: Duration,
    state: Mutex<State>,
    /// There is something for the renewer to do.
    pub wake: Notify,
    /// Whether the store is dropped.
    pub closing: watch::Sender<bool>,
    /// Sessions that were released.
    pub released: broadcast::Sender<SessionId>,
    /// What other replicas changed.
    pub changed: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
struct State {
    owned: HashMap<SessionId, Arc<Lease>>,
    tickets: HashSet<i64>,
    releases: Vec<Release>,
    notifications: Notifications,
    is_renewal_due: bool,
}

impl LeaseTable {
    pub(super) fn new(replica: String, length: Duration) -> Self {
        Self {
            replica,
            length,
            state: Mutex::default(),
            wake: Notify::new(),
            closing: watch::Sender::new(false),
            released: broadcast::channel(BEHIND).0,
            changed: broadcast::channel(BEHIND).0,
        }
    }

    /// The lease of a session, valid or not, that was not released.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<Lease>> {
        self.state().owned.get(session).cloned()
    }

    /// Adds a lease that was asked for at `asked`, to be renewed.
    pub(super) fn add(&self, session: SessionId, fence: i64, asked: Moment) -> Arc<Lease> {
        let lease = Arc::new(Lease {
            session: session.clone(),
            fence,
            end: watch::Sender::new(End::At(asked + self.length)),
        });
        let mut state = self.state();
        state.owned.insert(session, Arc::clone(&lease));
        if now().saturating_sub(asked) > self.length / 3 {
            state.is_renewal_due = true;
        }
        drop(state);
        self.wake.notify_one();
        lease
    }

    /// Adds a ticket, to be renewed.
    pub(super) fn add_ticket(&self, ticket: i64) {
        self.state().tickets.insert(ticket);
        self.wake.notify_one();
    }

    /// Tickets of a session that were released here, and that the database may still have.
    pub(super) fn released_tickets(&self, session: &SessionId) -> Vec<i64> {
        let state = self.state();
        let gone = state
            .releases
            .iter()
            .filter(|gone| gone.session == *session);
        gone.filter_map(|gone| gone.ticket).collect()
    }

    /// Notifies other replicas, sooner or later.
    pub(super) fn notify(&self, channel: &'static str, subject: &str) {
        let mut state = self.state();
        // What is too long or too much for a notification becomes a hint that anything may have changed.
        let is_room = state.notifications.len() < NOTIFICATIONS
            && subject.len() < 1000
            && !subject.contains('\0');
        let subject = if is_room { subject } else { "" };
        state.notifications.insert((channel, subject.to_owned()));
        drop(state);
        self.wake.notify_one();
    }

    fn release(&self, lease: &Lease) {
        let mut state = self.state();
        let owned = state.owned.get(&lease.session);
        if owned.is_some_and(|owned| owned.fence == lease.fence) {
            state.owned.remove(&lease.session);
        }
        state.releases.push(Release {
            session: lease.session.clone(),
            fence: Some(lease.fence),
            ticket: None,
            until: now() + self.length,
        });
        drop(state);
        self.wake.notify_one();
    }

    fn leave(&self, session: &SessionId, ticket: i64) {
        let mut state = self.state();
        if !state.tickets.remove(&ticket) {
            return;
        }
        state.releases.push(Release {
            session: session.clone(),
            fence: None,
            ticket: Some(ticket),
            until: now() + self.length,
        });
        drop(state);
        self.wake.notify_one();
    }

    /// Forgets a ticket that the claim it was for has deleted.
    pub(super) fn use_ticket(&self, ticket: i64) {
        self.state().tickets.remove(&ticket);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The renewer's side.
impl LeaseTable {
    /// What was released and has not ended by itself.
    pub(super) fn releases(&self) -> Vec<Release> {
        let mut state = self.state();
        state.releases.retain(|gone| now() < gone.until);
        state.releases.clone()
    }

    /// Forgets what the database has released.
    pub(super) fn settle(&self, settled: &[Release]) {
        self.state().releases.retain(|gone| !settled.contains(gone));
    }

    /// All that has to be renewed.
    pub(super) fn to_renew(&self) -> (Vec<Arc<Lease>>, Vec<i64>) {
        let mut state = self.state();
        state.is_renewal_due = false;
        let owned = state.owned.values().cloned().collect();
        (owned, state.tickets.iter().copied().collect())
    }

    /// Applies an answer, which has the fences that this replica still owns, and whether they were renewed. Gives those that
    /// were not renewed.
    pub(super) fn renewed(
        &self,
        mut leases: Vec<Arc<Lease>>,
        ours: &HashMap<i64, bool>,
        asked: Moment,
    ) -> Vec<Arc<Lease>> {
        leases.retain(|lease| match ours.get(&lease.fence) {
            Some(true) => {
                lease.renew(asked + self.length);
                false
            }
            Some(false) => true,
            None => {
                lease.lose();
                false
            }
        });
        leases
    }

    /// Asks for a renewal before its time.
    pub(super) fn renew_soon(&self) {
        self.state().is_renewal_due = true;
    }

    /// Takes all notifications, which are then sent or lost.
    pub(super) fn notifications(&self) -> Notifications {
        std::mem::take(&mut self.state().notifications)
    }

    /// Whether a renewal before its time was asked for.
    pub(super) fn is_renewal_due(&self) -> bool {
        self.state().is_renewal_due
    }

    /// Ends the renewer once everything is released.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
        self.wake.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Whether there is nothing to renew, release or notify of.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.owned.is_empty()
            && state.tickets.is_empty()
            && state.releases.is_empty()
            && state.notifications.is_empty()
            && self.changed.receiver_count() == 0
    }
}
