//! The network budget of a turn: requests and bytes, counted across all tools of the turn.

use crate::error::{Refusal, RefusalReason};
use crate::limits::EgressLimits;
use lango_core::{SessionId, TurnId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of sessions with a stored budget. The least recently used one is evicted first.
const MAX_SESSIONS: usize = 1024;

/// The budget of one turn. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    requests: AtomicU64,
    bytes: AtomicU64,
    max_requests: u64,
    max_bytes: u64,
}

/// The used part of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUsage {
    /// The number of requests and tunnels.
    pub requests: u64,
    /// The number of bytes received and sent.
    pub bytes: u64,
}

impl Budget {
    /// Creates a budget for requests that belong to no turn.
    pub fn new(limits: &EgressLimits) -> Self {
        Self(Arc::new(Counters {
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            max_requests: limits.requests,
            max_bytes: limits.total_bytes,
        }))
    }

    pub fn usage(&self) -> BudgetUsage {
        BudgetUsage {
            requests: self.0.requests.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        }
    }

    /// Counts a request. Fails if the requests or the bytes of the turn are used up. Callers whose requests bypass the
    /// guard, because the user configured the address, must call this themselves.
    pub fn take_request(&self, destination: &str) -> Result<(), Refusal> {
        let counters = &*self.0;
        if counters.bytes.load(Ordering::Relaxed) >= counters.max_bytes {
            return Err(self.out_of_bytes(destination));
        }
        let taken = counters
            .requests
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < counters.max_requests).then_some(used + 1)
            });
        taken.map(drop).map_err(|_| {
            Refusal::new(
                destination,
                RefusalReason::OutOfRequests {
                    limit: counters.max_requests,
                },
            )
        })
    }

    /// Counts bytes that were received or are about to be sent. Fails if they exceed the budget, but counts them
    /// anyway.
    pub fn take_bytes(&self, count: usize, destination: &str) -> Result<(), Refusal> {
        let count = count as u64;
        let before = self.0.bytes.fetch_add(count, Ordering::Relaxed);
        if before.saturating_add(count) > self.0.max_bytes {
            Err(self.out_of_bytes(destination))
        } else {
            Ok(())
        }
    }

    fn out_of_bytes(&self, destination: &str) -> Refusal {
        let limit = self.0.max_bytes;
        Refusal::new(destination, RefusalReason::OutOfBytes { limit })
    }
}

/// The budgets of all sessions. Clones share them.
#[derive(Debug, Clone)]
pub struct Budgets {
    limits: EgressLimits,
    sessions: Arc<Mutex<Sessions>>,
}

#[derive(Debug, Default)]
struct Sessions {
    by_session: HashMap<SessionId, SessionBudget>,
    /// Counts lookups, to order the entries by their last use.
    lookups: u64,
}

#[derive(Debug)]
struct SessionBudget {
    turn: TurnId,
    budget: Budget,
    used_at: u64,
}

impl Budgets {
    /// Creates an empty collection whose budgets have these limits.
    pub fn new(limits: EgressLimits) -> Self {
        Self {
            limits,
            sessions: Arc::default(),
        }
    }

    /// Returns the budget of a turn. The first call for another turn of the same session starts a new budget.
    pub fn of(&self, session: &SessionId, turn: &TurnId) -> Budget {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.lookups += 1;
        let used_at = sessions.lookups;
        if let Some(latest) = sessions.by_session.get_mut(session)
            && latest.turn == *turn
        {
            latest.used_at = used_at;
            return latest.budget.clone();
        }
        let budget = Budget::new(&self.limits);
        let latest = SessionBudget {
            turn: turn.clone(),
            budget: budget.clone(),
            used_at,
        };
        sessions.by_session.insert(session.clone(), latest);
        if sessions.by_session.len() > MAX_SESSIONS {
            sessions.evict_oldest();
        }
        budget
    }
}

impl Sessions {
    /// Removes the least recently used session, preferably one whose budget is no longer in use.
    fn evict_oldest(&mut self) {
        let order =
            |latest: &SessionBudget| (Arc::strong_count(&latest.budget.0) > 1, latest.used_at);
        let oldest = self
            .by_session
            .iter()
            .min_by_key(|(_, latest)| order(latest))
            .map(|(session, _)| session.clone());
        if let Some(oldest) = oldest {
            self.by_session.remove(&oldest);
        }
    }
}
