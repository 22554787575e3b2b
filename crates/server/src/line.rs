//! One turn at a time in a session: whoever comes second waits in line, in the order of coming.

use lango_core::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as Turnstile, OwnedMutexGuard};

/// The lines before the sessions that somebody is at.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    sessions: Mutex<HashMap<SessionId, Arc<Turnstile<()>>>>,
}

/// Somebody's turn at a session.
pub(crate) struct Place<'a> {
    lines: &'a Lines,
    session: SessionId,
    held: Option<OwnedMutexGuard<()>>,
}

impl Lines {
    /// Waits in line.
    pub async fn wait(&self, session: &SessionId) -> Place<'_> {
        let turnstile = self.turnstile(session);
        let held = turnstile.lock_owned().await;
        self.place(session, held)
    }

    /// Goes to the front if nobody is there.
    pub fn try_take(&self, session: &SessionId) -> Option<Place<'_>> {
        let held = self.turnstile(session).try_lock_owned().ok()?;
        Some(self.place(session, held))
    }

    fn place(&self, session: &SessionId, held: OwnedMutexGuard<()>) -> Place<'_> {
        Place {
            lines: self,
            session: session.clone(),
            held: Some(held),
        }
    }

    fn turnstile(&self, session: &SessionId) -> Arc<Turnstile<()>> {
        Arc::clone(self.sessions().entry(session.clone()).or_default())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Turnstile<()>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut sessions = self.lines.sessions();
        drop(self.held.take());
        // Nobody else has it: nobody waits.
        let is_idle = |turnstile: &Arc<Turnstile<()>>| Arc::strong_count(turnstile) == 1;
        if sessions.get(&self.session).is_some_and(is_idle) {
            sessions.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_is_at_a_session_and_nothing_is_left_behind() {
        let lines = Lines::default();
        let (one, other) = (SessionId::from("s_1"), SessionId::from("s_2"));
        let first = lines.wait(&one).await;
        assert!(lines.try_take(&one).is_none());
        assert!(lines.try_take(&other).is_some());
        let second = async {
            let second = lines.wait(&one).await;
            assert!(lines.try_take(&one).is_none());
            second
        };
        let (second, ()) = tokio::join!(second, async { drop(first) });
        assert!(lines.try_take(&one).is_none());
        drop(second);
        assert!(lines.sessions().is_empty());
    }
}
