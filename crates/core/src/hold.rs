//! Exclusive use of a session: a turn has the lease of its session, and no other turn appends to it meanwhile.

use crate::BoxFuture;

/// The lease of a session, or the lock of one in a file. Dropping it lets the next waiter in.
pub type Hold = Box<dyn SessionLease>;

/// What is behind a [`Hold`].
///
/// Where replicas share a database it is renewed as long as it lives, and lost when that fails for too long. After that the
/// store rejects appends from its former owner (fencing).
pub trait SessionLease: Send + Sync {
    /// Whether this replica still owns the session, as far as it knows. Checked right before an effect outside.
    fn is_valid(&self) -> bool;

    /// Resolves when it is lost. Where that cannot happen it never does.
    fn lost(&self) -> BoxFuture<'_, ()>;
}

/// What to do when somebody else holds the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Come back with an error at once.
    Refuse,
    /// Wait in line behind those who came before.
    Wait {
        /// How many may wait; one more is refused.
        most: usize,
    },
}
