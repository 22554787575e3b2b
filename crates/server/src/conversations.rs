//! Conversations whose last turn ended here, so that the next turn of a session need not read its log again.
//!
//! They are only hints: a turn that starts from one that is out of date is refused by the log, and reads it then.

use hashlink::LruCache;
use lango_core::SessionId;
use lango_engine::Conversation;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of conversations; the least recently used is dropped first.
const MAX_CONVERSATIONS: usize = 512;

/// Size of the history of one conversation. Longer ones are read again for each turn.
const MAX_HISTORY_BYTES: usize = 64 * 1024;

pub(crate) struct Conversations(Mutex<LruCache<SessionId, Conversation>>);

impl Default for Conversations {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_CONVERSATIONS)))
    }
}

impl Conversations {
    /// Removes and returns the conversation of a session.
    pub fn take(&self, session: &SessionId) -> Option<Conversation> {
        self.lock().remove(session)
    }

    /// Stores a conversation for the next turn, unless that would have to read the log anyway.
    pub fn put(&self, conversation: Conversation) {
        if conversation.is_current() && conversation.history_bytes() <= MAX_HISTORY_BYTES {
            let session = conversation.session().clone();
            self.lock().insert(session, conversation);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<SessionId, Conversation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
