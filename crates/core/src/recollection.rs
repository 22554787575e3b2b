//! The seam to what is remembered of earlier conversations.

use crate::{BoxFuture, SessionId, Text, Trust, UserId};

/// What is remembered, for the beginning of a turn.
pub trait Recollection: Send + Sync {
    /// What the next turn of this session is told, within bounds; none if there is nothing. A memory that cannot be read is
    /// no reason to stop a turn.
    fn recall(&self, user: &UserId, session: &SessionId) -> BoxFuture<'_, Option<MemoryContext>>;
}

/// The part of a turn's prompt that comes from memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryContext {
    /// The text for the prompt.
    pub text: Text,
    /// The lowest label of the entries in it.
    pub trust: Trust,
}
