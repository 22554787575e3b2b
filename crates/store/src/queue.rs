//! Lets one turn at a time run in a session within this process. Further turns queue in order of arrival, or are refused.

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
    /// Number of waiters, including the one at the front.
    length: usize,
}

/// The front of a session's queue. Dropping it lets the next waiter in.
#[derive(Debug)]
pub(crate) struct QueueFront {
    // The fields are dropped in this order: the next waiter reaches the front before this one leaves the queue.
    _front: OwnedMutexGuard<()>,
    _waiter: Waiter,
}

/// A waiter in a queue. Dropping the last waiter removes the queue.
#[derive(Debug)]
pub(crate) struct Waiter {
    queues: Arc<Queues>,
    session: SessionId,
    front: Arc<Front<()>>,
    /// Whether the queue was empty before this waiter entered it.
    pub is_first: bool,
}

impl Waiter {
    /// Waits until this waiter is at the front. Waiters get there in the order in which they call this.
    pub(crate) async fn front(self) -> QueueFront {
        QueueFront {
            _front: Arc::clone(&self.front).lock_owned().await,
            _waiter: self,
        }
    }
}

impl Queues {
    pub(crate) fn enter(
        self: &Arc<Self>,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<Waiter, StoreError> {
        let mut sessions = self.sessions();
        let queue = sessions.entry(session.clone()).or_default();
        match (busy_policy, queue.length.checked_sub(1)) {
            (BusyPolicy::Refuse, Some(_)) => return Err(busy(session, None)),
            (BusyPolicy::Wait { max_waiters }, Some(waiting)) if waiting >= max_waiters => {
                return Err(busy(session, Some(waiting)));
            }
            _ => {}
        }
        queue.length += 1;
        Ok(Waiter {
            queues: Arc::clone(self),
            session: session.clone(),
            front: Arc::clone(&queue.front),
            is_first: queue.length == 1,
        })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Queue>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiter {
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

pub(crate) fn busy(session: &SessionId, waiting: Option<usize>) -> StoreError {
    StoreError::Busy {
        id: session.clone(),
        waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn one_waiter_at_a_time_is_at_the_front_and_empty_queues_are_removed() {
        let queues = Arc::new(Queues::default());
        let wait = BusyPolicy::Wait { max_waiters: 2 };
        let join = async |session: &str, busy_policy| {
            let waiter = queues.enter(&session.into(), busy_policy)?;
            Ok::<_, StoreError>(waiter.front().await)
        };
        let first = join("s_1", wait).await.unwrap();
        assert!(join("s_1", BusyPolicy::Refuse).await.is_err());
        assert!(join("s_2", BusyPolicy::Refuse).await.is_ok());
        let (second, ()) = tokio::join!(join("s_1", wait), async { drop(first) });
        let impatient = tokio::time::timeout(Duration::ZERO, join("s_1", wait));
        assert!(impatient.await.is_err());
        drop(second);
        assert!(queues.sessions().is_empty());
    }
}
