//! Where logs end, as far as this copy knows.

use lango_core::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many sessions' ends are remembered.
const REMEMBERED: usize = 4096;

/// The end of a log: the last `seq`, and its hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct End {
    pub seq: u64,
    pub hash: Vec<u8>,
}

/// Where logs are known to end.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<HashMap<SessionId, End>>);

impl Ends {
    pub(super) fn remember(&self, session: &SessionId, end: End) {
        let mut ends = self.ends();
        if ends.len() >= REMEMBERED {
            ends.clear();
        }
        ends.insert(session.clone(), end);
    }

    /// Where a log was said to end; whoever asks is about to change that.
    pub(super) fn take(&self, session: &SessionId) -> Option<End> {
        self.ends().remove(session)
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<SessionId, End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
