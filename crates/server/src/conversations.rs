//! A cache of conversations whose last turn ran in this process, so that the next turn of a session need not read its
//! log.
//!
//! An entry may be stale. The log then rejects the first append of a turn, and the conversation reads the log again.

use hashlink::LruCache;
use lango_core::SessionId;
use lango_engine::Conversation;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many conversations to cache. The least recently used one is evicted first.
const MAX_CONVERSATIONS: usize = 512;

/// The maximum size of a cached history, in bytes. Sessions with a longer history are read for each turn.
const MAX_HISTORY_BYTES: usize = 64 * 1024;

pub(crate) struct Conversations(Mutex<LruCache<SessionId, Conversation>>);

impl Default for Conversations {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_CONVERSATIONS)))
    }
}

impl Conversations {
    /// Removes and returns the conversation of a session.
    pub(crate) fn take(&self, session: &SessionId) -> Option<Conversation> {
        self.lock().remove(session)
    }

    /// Caches a conversation, unless its history is too long or its next turn has to read the log anyway.
    pub(crate) fn put(&self, conversation: Conversation) {
        if conversation.is_current() && conversation.history_bytes() <= MAX_HISTORY_BYTES {
            let session = conversation.session().clone();
            self.lock().insert(session, conversation);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<SessionId, Conversation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
