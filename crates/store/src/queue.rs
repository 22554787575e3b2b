//! One turn at a time in a session within this process: a second waiter queues in the order of arrival, or is refused.

use lango_core::{BusyPolicy, SessionId, StoreError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as Front, OwnedMutexGuard};

/// The queues of sessions that are in use.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    sessions: Mutex<HashMap<SessionId, Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    front: Arc<Front<()>>,
    /// Number of waiters, the one at its front included.
    length: usize,
}

/// The front of a session's queue. Dropping it lets the next waiter in.
#[derive(Debug)]
pub(crate) struct QueuePlace {
    // Dropped first, so that the next waiter can go before the queue is left.
    _front: OwnedMutexGuard<()>,
    _entry: Entry,
}

/// A waiter that is not yet known to be at the front.
#[derive(Debug)]
pub(crate) struct Waiter {
    front: Arc<Front<()>>,
    entry: Entry,
    /// Whether the queue was empty.
    pub is_first: bool,
}

/// An entry of a queue, at its front or not. The last one removes the queue.
#[derive(Debug)]
struct Entry {
    queues: Arc<Queues>,
    session: SessionId,
}

impl Waiter {
    /// Waits to be at the front.
    pub async fn front(self) -> QueuePlace {
        QueuePlace {
            _front: self.front.lock_owned().await,
            _entry: self.entry,
        }
    }
}

impl Queues {
    /// Waits for the front of a session's queue, in the order of arrival.
    pub async fn join(
        self: &Arc<Self>,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<QueuePlace, StoreError> {
        Ok(self.enter(session, busy_policy)?.front().await)
    }

    /// Joins a session's queue. The order is that of asking for the front.
    pub fn enter(
        self: &Arc<Self>,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<Waiter, StoreError> {
        let mut sessions = self.sessions();
        let length = sessions.get(session).map_or(0, |queue| queue.length);
        let busy = |waiting| StoreError::Busy {
            id: session.clone(),
            waiting,
        };
        match (busy_policy, length.checked_sub(1)) {
            (_, None) => {}
            (BusyPolicy::Refuse, Some(_)) => return Err(busy(None)),
            (BusyPolicy::Wait { max_waiters: most }, Some(waiting)) if waiting >= most => {
                return Err(busy(Some(waiting)));
            }
            (BusyPolicy::Wait { .. }, Some(_)) => {}
        }
        let queue = sessions.entry(session.clone()).or_default();
        queue.length += 1;
        Ok(Waiter {
            front: Arc::clone(&queue.front),
            entry: Entry {
                queues: Arc::clone(self),
                session: session.clone(),
            },
            is_first: length == 0,
        })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Queue>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut sessions = self.queues.sessions();
        if let Some(queue) = sessions.get_mut(&self.session) {
            queue.length -= 1;
            if queue.length == 0 {
                sessions.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const WAIT: BusyPolicy = BusyPolicy::Wait { max_waiters: 2 };

    #[tokio::test]
    async fn one_waiter_at_a_time_is_let_in_and_nothing_is_left_behind() {
        let queues = Arc::new(Queues::default());
        let (one, other) = (SessionId::from("s_1"), SessionId::from("s_2"));
        let first = queues.join(&one, WAIT).await.unwrap();
        assert!(queues.join(&one, BusyPolicy::Refuse).await.is_err());
        assert!(queues.join(&other, BusyPolicy::Refuse).await.is_ok());
        let second = queues.join(&one, WAIT);
        let (second, ()) = tokio::join!(second, async { drop(first) });
        let impatient = tokio::time::timeout(Duration::ZERO, queues.join(&one, WAIT));
        assert!(impatient.await.is_err());
        drop(second);
        assert!(queues.sessions().is_empty());
    }

    #[tokio::test]
    async fn a_full_queue_refuses_one_more_waiter() {
        let queues = Arc::new(Queues::default());
        let session = SessionId::from("s_1");
        let first = queues.join(&session, WAIT).await.unwrap();
        let mut second = Box::pin(queues.join(&session, WAIT));
        let mut third = Box::pin(queues.join(&session, WAIT));
        for waiting in [&mut second, &mut third] {
            assert!(tokio::time::timeout(Duration::ZERO, waiting).await.is_err());
        }
        let fourth = queues.join(&session, WAIT).await;
        assert!(matches!(
            fourth,
            Err(StoreError::Busy {
                waiting: Some(2),
                ..
            })
        ));
        // A waiter that gives up makes room.
        drop(second);
        drop(first);
        drop(third.await.unwrap());
        assert!(queues.sessions().is_empty());
    }
}
