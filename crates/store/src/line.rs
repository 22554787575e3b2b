//! One at a time at a session within this process: whoever comes second waits in line, in the order of coming, or is sent
//! away.

use lango_core::{Patience, SessionId, StoreError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as Turnstile, OwnedMutexGuard};

/// The lines before the sessions that somebody is at.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    sessions: Mutex<HashMap<SessionId, Line>>,
}

#[derive(Debug, Default)]
struct Line {
    turnstile: Arc<Turnstile<()>>,
    /// Those in it, the one at its front included.
    length: usize,
}

/// Somebody's turn at a session.
#[derive(Debug)]
pub(crate) struct Place {
    // Let go of first, so that whoever is next can go before the line is left.
    _front: OwnedMutexGuard<()>,
    _in_line: InLine,
}

/// Somebody who has come to a line and is not yet known to be at its front.
#[derive(Debug)]
pub(crate) struct Newcomer {
    turnstile: Arc<Turnstile<()>>,
    in_line: InLine,
    /// Whether nobody was there.
    pub is_first: bool,
}

/// Somebody in a line, at its front or not. The last to leave takes the line away.
#[derive(Debug)]
struct InLine {
    lines: Arc<Lines>,
    session: SessionId,
}

impl Newcomer {
    /// Waits to be at the front.
    pub async fn front(self) -> Place {
        Place {
            _front: self.turnstile.lock_owned().await,
            _in_line: self.in_line,
        }
    }
}

impl Lines {
    /// Goes to the front of a session's line, at once or in the order of coming.
    pub async fn join(
        self: &Arc<Self>,
        session: &SessionId,
        patience: Patience,
    ) -> Result<Place, StoreError> {
        Ok(self.enter(session, patience)?.front().await)
    }

    /// Comes to a session's line. The order is that of asking for the front.
    pub fn enter(
        self: &Arc<Self>,
        session: &SessionId,
        patience: Patience,
    ) -> Result<Newcomer, StoreError> {
        let mut sessions = self.sessions();
        let length = sessions.get(session).map_or(0, |line| line.length);
        let busy = |waiting| StoreError::Busy {
            id: session.clone(),
            waiting,
        };
        match (patience, length.checked_sub(1)) {
            (_, None) => {}
            (Patience::Refuse, Some(_)) => return Err(busy(None)),
            (Patience::Wait { most }, Some(waiting)) if waiting >= most => {
                return Err(busy(Some(waiting)));
            }
            (Patience::Wait { .. }, Some(_)) => {}
        }
        let line = sessions.entry(session.clone()).or_default();
        line.length += 1;
        Ok(Newcomer {
            turnstile: Arc::clone(&line.turnstile),
            in_line: InLine {
                lines: Arc::clone(self),
                session: session.clone(),
            },
            is_first: length == 0,
        })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Line>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut sessions = self.lines.sessions();
        if let Some(line) = sessions.get_mut(&self.session) {
            line.length -= 1;
            if line.length == 0 {
                sessions.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const WAIT: Patience = Patience::Wait { most: 2 };

    #[tokio::test]
    async fn one_at_a_time_is_at_a_session_and_nothing_is_left_behind() {
        let lines = Arc::new(Lines::default());
        let (one, other) = (SessionId::from("s_1"), SessionId::from("s_2"));
        let first = lines.join(&one, WAIT).await.unwrap();
        assert!(lines.join(&one, Patience::Refuse).await.is_err());
        assert!(lines.join(&other, Patience::Refuse).await.is_ok());
        let second = lines.join(&one, WAIT);
        let (second, ()) = tokio::join!(second, async { drop(first) });
        let impatient = tokio::time::timeout(Duration::ZERO, lines.join(&one, WAIT));
        assert!(impatient.await.is_err());
        drop(second);
        assert!(lines.sessions().is_empty());
    }

    #[tokio::test]
    async fn a_line_that_is_long_enough_takes_nobody_more() {
        let lines = Arc::new(Lines::default());
        let session = SessionId::from("s_1");
        let first = lines.join(&session, WAIT).await.unwrap();
        let mut second = Box::pin(lines.join(&session, WAIT));
        let mut third = Box::pin(lines.join(&session, WAIT));
        for waiting in [&mut second, &mut third] {
            assert!(tokio::time::timeout(Duration::ZERO, waiting).await.is_err());
        }
        let fourth = lines.join(&session, WAIT).await;
        assert!(matches!(
            fourth,
            Err(StoreError::Busy {
                waiting: Some(2),
                ..
            })
        ));
        // Somebody who gives up waiting makes room.
        drop(second);
        drop(first);
        drop(third.await.unwrap());
        assert!(lines.sessions().is_empty());
    }
}
