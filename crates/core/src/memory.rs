//! The interface to memory: what lango remembers of earlier conversations.

use crate::{BoxFuture, SessionId, Text, Trust, UserId};

/// Supplies the part of a turn's prompt that comes from memory.
pub trait MemoryProvider: Send + Sync {
    /// Returns what the next turn of this session should know, limited in size. Returns `None` if memory is empty or
    /// cannot be read; the turn then runs without it.
    fn recall(&self, user: &UserId, session: &SessionId) -> BoxFuture<'_, Option<MemoryContext>>;
}

/// The part of a turn's prompt that comes from memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryContext {
    /// The text for the prompt.
    pub text: Text,
    /// The lowest trust label of the entries in the text.
    pub trust: Trust,
}
