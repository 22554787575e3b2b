//! Updates memory after the turns of a server. Answers do not wait for it. A few sessions are updated at a time, and turns of
//! one session that end within two seconds cause a single update.

use lango_core::{SessionId, UserId};
use lango_knowledge::Memory;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Sessions that are worked on at a time.
const WORKERS: usize = 2;

/// How long to wait after a turn, so that the next turns of the session are covered by the same update.
const DELAY: Duration = Duration::from_secs(2);

/// Sessions that may wait. What does not fit is done after the session's next turn.
const MAX_WAITING: usize = 10_000;

/// Sessions whose memory has work to do. Dropping the queue stops the work, which can stop anywhere.
pub struct MemoryQueue {
    waiting: Arc<Waiting>,
    _workers: JoinSet<()>,
}

#[derive(Default)]
struct Waiting {
    sessions: Mutex<Sessions>,
    added: Notify,
}

#[derive(Default)]
struct Sessions {
    order: VecDeque<Waiter>,
    known: HashSet<SessionId>,
}

struct Waiter {
    user: UserId,
    session: SessionId,
    due: Instant,
}

impl MemoryQueue {
    /// Creates a queue with its workers. Call it within a runtime.
    pub fn new(memory: &Memory) -> Self {
        let waiting = Arc::new(Waiting::default());
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            workers.spawn(work(memory.clone(), Arc::clone(&waiting)));
        }
        Self {
            waiting,
            _workers: workers,
        }
    }

    /// Adds a session, unless it waits already.
    pub fn add(&self, user: &UserId, session: &SessionId) {
        let mut sessions = self.waiting.lock();
        if sessions.order.len() < MAX_WAITING && sessions.known.insert(session.clone()) {
            sessions.order.push_back(Waiter {
                user: user.clone(),
                session: session.clone(),
                due: Instant::now() + DELAY,
            });
            drop(sessions);
            self.waiting.added.notify_one();
        }
    }
}

impl Waiting {
    fn lock(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next session that is due.
    async fn next(&self) -> Waiter {
        loop {
            let added = self.added.notified();
            let next = self.lock().order.pop_front();
            match next {
                Some(next) => {
                    tokio::time::sleep_until(next.due).await;
                    // A turn that ends from now on may come too late for this work.
                    self.lock().known.remove(&next.session);
                    return next;
                }
                None => added.await,
            }
        }
    }
}

async fn work(memory: Memory, waiting: Arc<Waiting>) {
    loop {
        let Waiter { user, session, .. } = waiting.next().await;
        // What fails now is done after the next turn.
        let _ = memory.work_due(&user, &session).await;
    }
}
