//! The seam to what is remembered of earlier conversations.

use crate::{BoxFuture, SessionId, Text, UserId};

/// What is remembered, for the beginning of a turn.
pub trait Recollection: Send + Sync {
    /// What the next turn of this session is told, within bounds; none if there is nothing. A memory that cannot be read is
    /// no reason to stop a turn.
    fn recall(&self, user: &UserId, session: &SessionId) -> BoxFuture<'_, Option<Text>>;
}
