//! Exclusive use of a session: a turn has the lease of its session, and no other turn appends to it meanwhile.

use crate::BoxFuture;

/// A lease that its owner drops to let the next waiter in.
pub type BoxLease = Box<dyn SessionLease>;

/// The lease of a session, or the lock of one in a file.
///
/// Where replicas share a database it is renewed as long as it lives, and lost when that fails for too long. After that the
/// store rejects appends from its former owner (fencing).
pub trait SessionLease: Send + Sync {
    /// Whether this replica still owns the session, as far as it knows. Checked right before an effect outside.
    fn is_valid(&self) -> bool;

    /// Resolves when the lease is lost; never for a lock, which cannot be lost.
    fn lost(&self) -> BoxFuture<'_, ()>;
}

/// What to do with a session that has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyPolicy {
    /// Fail with [`StoreError::Busy`](crate::StoreError::Busy) at once.
    Refuse,
    /// Wait in the order of arrival.
    Wait {
        /// How many may wait; one more is refused.
        max_waiters: usize,
    },
}
