//! Where logs end, as far as this replica knows: an append to PostgreSQL need not ask for it then.

use super::batch::End;
use lango_core::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of sessions whose ends are remembered.
const REMEMBERED: usize = 4096;

/// The remembered ends.
#[derive(Debug, Default)]
pub(crate) struct Ends(Mutex<HashMap<SessionId, End>>);

impl Ends {
    pub(super) fn remember(&self, session: &SessionId, end: End) {
        let mut ends = self.ends();
        if ends.len() >= REMEMBERED {
            ends.clear();
        }
        ends.insert(session.clone(), end);
    }

    /// Takes the end of a log that is about to change.
    pub(super) fn take(&self, session: &SessionId) -> Option<End> {
        self.ends().remove(session)
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<SessionId, End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
