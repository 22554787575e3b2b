//! Updates memory after the turns of a server, without delaying answers. A few sessions are updated concurrently, and
//! turns of one session that end within two seconds share a single update.

use lango_core::{SessionId, UserId};
use lango_knowledge::Memory;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many sessions are updated concurrently.
const WORKERS: usize = 2;

/// How long to wait after a turn, so that the session's next turns can share the update.
const DELAY: Duration = Duration::from_secs(2);

/// The maximum number of queued sessions. A session that does not fit is updated after its next turn.
const MAX_QUEUED: usize = 10_000;

/// A queue of sessions whose memory must be updated. Dropping it stops the workers, which is safe at any point.
pub(super) struct MemoryQueue {
    queue: Arc<SharedQueue>,
    _workers: JoinSet<()>,
}

#[derive(Default)]
struct SharedQueue {
    sessions: Mutex<QueuedSessions>,
    added: Notify,
}

#[derive(Default)]
struct QueuedSessions {
    order: VecDeque<QueuedSession>,
    known: HashSet<SessionId>,
}

struct QueuedSession {
    user: UserId,
    session: SessionId,
    due: Instant,
}

impl MemoryQueue {
    /// Creates a queue and starts its workers. Must be called within a runtime.
    pub(super) fn new(memory: &Memory) -> Self {
        let queue = Arc::new(SharedQueue::default());
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            workers.spawn(work(memory.clone(), Arc::clone(&queue)));
        }
        Self {
            queue,
            _workers: workers,
        }
    }

    /// Adds a session, unless it is already queued.
    pub(super) fn add(&self, user: &UserId, session: &SessionId) {
        let mut sessions = self.queue.lock();
        if sessions.order.len() < MAX_QUEUED && sessions.known.insert(session.clone()) {
            sessions.order.push_back(QueuedSession {
                user: user.clone(),
                session: session.clone(),
                due: Instant::now() + DELAY,
            });
            drop(sessions);
            self.queue.added.notify_one();
        }
    }
}

impl SharedQueue {
    fn lock(&self) -> std::sync::MutexGuard<'_, QueuedSessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next session that is due.
    async fn next(&self) -> QueuedSession {
        loop {
            let added = self.added.notified();
            let next = self.lock().order.pop_front();
            match next {
                Some(next) => {
                    tokio::time::sleep_until(next.due).await;
                    // A turn that ends from now on may be too late for this update, so it must be able to queue
                    // another.
                    self.lock().known.remove(&next.session);
                    return next;
                }
                None => added.await,
            }
        }
    }
}

async fn work(memory: Memory, queue: Arc<SharedQueue>) {
    loop {
        let QueuedSession { user, session, .. } = queue.next().await;
        // If this fails, the session's next turn triggers it again.
        let _ = memory.work_due(&user, &session).await;
    }
}
