//! The parts of a conversation's state: its unfinished turn, and whether the session in memory is current.

use lango_core::{PendingApproval, StoreError};

/// The unfinished turn of a session. Its events are replayed when it continues.
pub(super) struct ResumableTurn {
    pub first_seq: u64,
    /// The pending approvals.
    pub waiting: Vec<PendingApproval>,
    /// Whether only an approval can continue the turn.
    pub is_parked: bool,
}

/// Whether the state in memory matches the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheState {
    /// The session is not stored yet.
    Unsaved,
    /// The state here equals the stored one.
    Current,
    /// A turn failed to finish here; the session must be read again.
    Stale,
}

/// Whether a session was just created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionOrigin {
    /// It was just created and has no turns.
    New,
    Stored,
}

/// Who chose the id of a new turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnIdSource {
    /// The id was generated for this turn.
    Fresh,
    /// The caller chose it, so another process may have run the turn.
    Caller,
}

impl TurnIdSource {
    /// Whether a turn can be retried from the current log after its first append failed with this error. A deleted
    /// session is recreated for a client of the server, but not for a user who has it open.
    pub(crate) fn allows_retry(self, error: &StoreError) -> bool {
        match error {
            StoreError::Conflict { .. } => true,
            StoreError::NotFound { .. } => self == Self::Caller,
            _ => false,
        }
    }
}
