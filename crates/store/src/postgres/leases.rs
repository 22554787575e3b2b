//! What this copy holds and waits for, as far as it knows: the state that turns, appends and the keeper share.
//!
//! A lease ends here when its time is over by a clock that goes on while the machine sleeps, counted from before the
//! database was asked. So it ends here before it ends there, and nobody else can have it while we believe that we do.

use crate::line::Place;
use lango_core::{BoxFuture, Change, Held, SessionId};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};

/// How many things can wait to be told; beyond that it is said that anything may have changed.
const NEWS: usize = 1024;

/// How much a listener can be behind.
const BEHIND: usize = 1024;

/// A moment since the machine was started, with the time that it slept.
pub(super) type Moment = Duration;

/// The clock that goes on while the machine sleeps. On other systems, macOS among them, it is the only steady one.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "openbsd"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// What it is now.
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
    /// The number that only this hold has.
    pub fence: i64,
    end: watch::Sender<End>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    At(Moment),
    Lost,
}

impl Lease {
    /// Whether it is still ours.
    pub(super) fn is_had(&self) -> bool {
        matches!(*self.end.borrow(), End::At(end) if now() < end)
    }

    /// Whether it ended because it was not renewed in time, and not because the database said so.
    pub(super) fn has_run_out(&self) -> bool {
        matches!(*self.end.borrow(), End::At(end) if now() >= end)
    }

    /// Resolves when it is not.
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
            // One that ended stays so, even if the database renewed it in time: somebody may have been told.
            End::At(end) if now() < *end => {
                *end = until;
                true
            }
            _ => false,
        });
    }

    fn lose(&self) {
        self.end.send_if_modified(|end| match end {
            // What ran out is known to have.
            End::At(end) if now() >= *end => false,
            _ => {
                *end = End::Lost;
                true
            }
        });
    }
}

/// A session that is claimed. Dropping it lets go.
pub(super) struct Claim {
    pub lease: Arc<Lease>,
    pub leases: Arc<Leases>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.leases.let_go(&self.lease);
    }
}

/// A session that this copy holds.
pub(super) struct LeaseHold {
    // First the claim, then the place: whoever is next here finds it given up.
    pub claim: Claim,
    pub _place: Place,
}

impl Held for LeaseHold {
    fn is_had(&self) -> bool {
        self.claim.lease.is_had()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.claim.lease.ended())
    }
}

/// A place in the line before a session. Dropping it leaves the line.
pub(super) struct Ticket {
    pub number: i64,
    pub session: SessionId,
    pub leases: Arc<Leases>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.leases.leave(&self.session, self.number);
    }
}

/// A hold or a ticket that was given up, and the database is not known to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    pub session: SessionId,
    pub fence: Option<i64>,
    pub ticket: Option<i64>,
    /// When it has ended by itself.
    until: Moment,
}

/// What is to be told to other copies: the channel and what about.
pub(super) type News = HashSet<(&'static str, String)>;

/// All leases of this copy.
pub(super) struct Leases {
    /// Who we are, among all copies.
    pub holder: String,
    /// How long a lease is.
    pub length: Duration,
    state: Mutex<State>,
    /// There is something for the keeper to do.
    pub wake: Notify,
    /// Whether nothing more will come.
    pub closing: watch::Sender<bool>,
    /// Sessions that somebody let go of.
    pub released: broadcast::Sender<SessionId>,
    /// What others changed.
    pub changed: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<SessionId, Arc<Lease>>,
    tickets: HashSet<i64>,
    gone: Vec<Gone>,
    news: News,
    is_renewal_due: bool,
}

impl Leases {
    /// None yet.
    pub(super) fn new(holder: String, length: Duration) -> Self {
        Self {
            holder,
            length,
            state: Mutex::default(),
            wake: Notify::new(),
            closing: watch::Sender::new(false),
            released: broadcast::channel(BEHIND).0,
            changed: broadcast::channel(BEHIND).0,
        }
    }

    /// The lease that this copy has on a session, or had and did not let go of.
    pub(super) fn of(&self, session: &SessionId) -> Option<Arc<Lease>> {
        self.state().held.get(session).cloned()
    }

    /// Takes a lease into the care of the keeper. It was asked for at `asked`.
    pub(super) fn take(&self, session: SessionId, fence: i64, asked: Moment) -> Arc<Lease> {
        let lease = Arc::new(Lease {
            session: session.clone(),
            fence,
            end: watch::Sender::new(End::At(asked + self.length)),
        });
        let mut state = self.state();
        state.held.insert(session, Arc::clone(&lease));
        if now().saturating_sub(asked) > self.length / 3 {
            state.is_renewal_due = true;
        }
        drop(state);
        self.wake.notify_one();
        lease
    }

    /// Takes a ticket into the care of the keeper.
    pub(super) fn wait_with(&self, ticket: i64) {
        self.state().tickets.insert(ticket);
        self.wake.notify_one();
    }

    /// Tickets of this session that were given up, and that the database may still have.
    pub(super) fn tickets_gone(&self, session: &SessionId) -> Vec<i64> {
        let state = self.state();
        let gone = state.gone.iter().filter(|gone| gone.session == *session);
        gone.filter_map(|gone| gone.ticket).collect()
    }

    /// Tells other copies about something, sooner or later.
    pub(super) fn tell(&self, channel: &'static str, what: &str) {
        let mut state = self.state();
        // What is too long or too much for a notification becomes a hint that anything may have changed.
        let is_room = state.news.len() < NEWS && what.len() < 1000 && !what.contains('\0');
        let what = if is_room { what } else { "" };
        state.news.insert((channel, what.to_owned()));
        drop(state);
        self.wake.notify_one();
    }

    fn let_go(&self, lease: &Lease) {
        let mut state = self.state();
        let held = state.held.get(&lease.session);
        if held.is_some_and(|held| held.fence == lease.fence) {
            state.held.remove(&lease.session);
        }
        state.gone.push(Gone {
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
        state.gone.push(Gone {
            session: session.clone(),
            fence: None,
            ticket: Some(ticket),
            until: now() + self.length,
        });
        drop(state);
        self.wake.notify_one();
    }

    /// A ticket that was given back by the claim that it was for.
    pub(super) fn spend(&self, ticket: i64) {
        self.state().tickets.remove(&ticket);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keeper's side.
impl Leases {
    /// What was given up and is not known to have ended by itself.
    pub(super) fn gone(&self) -> Vec<Gone> {
        let mut state = self.state();
        state.gone.retain(|gone| now() < gone.until);
        state.gone.clone()
    }

    /// The database knows of these.
    pub(super) fn settle(&self, settled: &[Gone]) {
        self.state().gone.retain(|gone| !settled.contains(gone));
    }

    /// All that has to be renewed.
    pub(super) fn to_renew(&self) -> (Vec<Arc<Lease>>, Vec<i64>) {
        let mut state = self.state();
        state.is_renewal_due = false;
        let held = state.held.values().cloned().collect();
        (held, state.tickets.iter().copied().collect())
    }

    /// What came of it: those that are still ours, and whether they were renewed as of when that was asked for. Gives
    /// those that were not.
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

    /// Something is to be renewed before its time.
    pub(super) fn renew_soon(&self) {
        self.state().is_renewal_due = true;
    }

    /// What is to be told, which is then told or lost.
    pub(super) fn news(&self) -> News {
        std::mem::take(&mut self.state().news)
    }

    /// Whether something should be renewed before its time.
    pub(super) fn is_renewal_due(&self) -> bool {
        self.state().is_renewal_due
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
        self.wake.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Whether there is anything to see to.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.held.is_empty()
            && state.tickets.is_empty()
            && state.gone.is_empty()
            && state.news.is_empty()
            && self.changed.receiver_count() == 0
    }
}
