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
    // Let go of first: then it can be seen that nobody waits.
    _held: OwnedMutexGuard<()>,
    _in_line: InLine<'a>,
}

/// Somebody in a line, at its front or not. The last to leave takes the line away.
struct InLine<'a> {
    lines: &'a Lines,
    session: SessionId,
}

impl Lines {
    /// Waits in line.
    pub async fn wait(&self, session: &SessionId) -> Place<'_> {
        let in_line = self.join(session);
        let held = self.turnstile(session).lock_owned().await;
        Place {
            _held: held,
            _in_line: in_line,
        }
    }

    /// Goes to the front if nobody is there.
    pub fn try_take(&self, session: &SessionId) -> Option<Place<'_>> {
        let in_line = self.join(session);
        let held = self.turnstile(session).try_lock_owned().ok()?;
        Some(Place {
            _held: held,
            _in_line: in_line,
        })
    }

    fn join(&self, session: &SessionId) -> InLine<'_> {
        InLine {
            lines: self,
            session: session.clone(),
        }
    }

    fn turnstile(&self, session: &SessionId) -> Arc<Turnstile<()>> {
        Arc::clone(self.sessions().entry(session.clone()).or_default())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Turnstile<()>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut sessions = self.lines.sessions();
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
    use std::time::Duration;

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
        let impatient = tokio::time::timeout(Duration::ZERO, lines.wait(&one));
        assert!(impatient.await.is_err());
        drop(second);
        assert!(lines.sessions().is_empty());
    }

    #[tokio::test]
    async fn somebody_who_gives_up_waiting_leaves_no_line_behind() {
        let lines = Lines::default();
        let session = SessionId::from("s_1");
        let first = lines.wait(&session).await;
        let mut second = Box::pin(lines.wait(&session));
        let gives_up = tokio::time::timeout(Duration::ZERO, &mut second);
        assert!(gives_up.await.is_err());
        // Its turn comes, and it is gone before it takes it.
        drop(first);
        drop(second);
        assert!(lines.sessions().is_empty());
    }
}
