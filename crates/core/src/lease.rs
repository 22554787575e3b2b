//! Session leases: while a turn owns the lease of its session, no other turn appends to that session.

use crate::BoxFuture;

/// An owned lease. Dropping it admits the next waiter.
pub type BoxLease = Box<dyn SessionLease>;

/// The lease of a session (PostgreSQL), or its lock (SQLite).
///
/// Where replicas share a database, the lease is renewed in the background and expires if renewing fails for too long.
/// After that, the store rejects appends by the former owner (fencing).
pub trait SessionLease: Send + Sync {
    /// Whether this replica still owns the session, as far as it knows. Callers check it right before an external effect.
    fn is_valid(&self) -> bool;

    /// Resolves when the lease is lost. Never resolves for a lock, which cannot be lost.
    fn lost(&self) -> BoxFuture<'_, ()>;
}

/// What to do if a session already has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyPolicy {
    /// Fail immediately with [`StoreError::Busy`](crate::StoreError::Busy).
    Refuse,
    /// Wait in order of arrival.
    Wait {
        /// The maximum number of waiters; further ones fail with [`StoreError::Busy`](crate::StoreError::Busy).
        max_waiters: usize,
    },
}
