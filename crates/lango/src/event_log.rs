//! Sessions over an event log of your own.
//!
//! A log stores events and returns them; that is all that sessions need. What turns ask for beyond it (the history, the
//! grants, conversations with remote agents) is derived from the events, in an in-memory index that is rebuilt from the
//! log when it is missing.

use lango_core::{
    AgentName, BoxFuture, BoxLease, BusyPolicy, Event, EventBatch, EventRange, Exchange, Grant,
    NewSession, RemoteThread, SessionHead, SessionId, SessionStore, StoreError, TurnId,
};
use lango_store::Store;
use lango_store::archive::remove_hidden;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// An append-only log of sessions and their events.
///
/// Events are plain data: [`Event`] implements serde's traits. A batch has at least one event, all of one existing session. It must be stored completely or not at all, and must
/// survive a crash of the process when `append` resolves, and a power failure if
/// [`EventBody::must_be_durable`](lango_core::EventBody::must_be_durable) holds for one of its events. Blocking work belongs into
/// `tokio::task::spawn_blocking`. Turns of one session are serialized within this process only; if several
/// processes share the log, the check of `append` keeps their turns from interleaving.
pub trait EventLog: Send + Sync {
    /// Creates an empty session. Fails with [`StoreError::Exists`] if the id is taken.
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns what the session was created with. Fails with [`StoreError::NotFound`] if it does not exist.
    fn session<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<NewSession, StoreError>>;

    /// Appends events to one session. Fails with [`StoreError::Conflict`] if the `seq` of the first event does not follow
    /// the last stored one; the first event of a session has `seq` 1.
    fn append(&self, events: EventBatch) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Reads events of a session from `range.from` on, in order, at most `range.limit`. Returns none if there are none.
    fn read<'a>(
        &'a self,
        id: &'a SessionId,
        range: EventRange,
    ) -> BoxFuture<'a, Result<Vec<Event>, StoreError>>;
}

/// How many events to read from a log at a time.
const PAGE: usize = 500;

/// How many sessions the index holds. The least recently opened one leaves it first.
const MAX_INDEXED: usize = 256;

/// A session store over an [`EventLog`].
pub(crate) struct LogStore {
    log: Arc<dyn EventLog>,
    index: Store,
    indexed: Mutex<IndexedSessions>,
}

/// The sessions in the index, with the `seq` of the next event of each.
#[derive(Default)]
struct IndexedSessions {
    next_seq: HashMap<SessionId, u64>,
    /// The least recently opened one first.
    order: VecDeque<SessionId>,
}

impl IndexedSessions {
    fn insert(&mut self, id: &SessionId, next_seq: u64) {
        self.next_seq.insert(id.clone(), next_seq);
        self.touch(id);
    }

    fn touch(&mut self, id: &SessionId) {
        self.order.retain(|other| other != id);
        self.order.push_back(id.clone());
    }
}

impl LogStore {
    pub(crate) fn new(log: Arc<dyn EventLog>) -> Self {
        Self {
            log,
            index: Store::in_memory(),
            indexed: Mutex::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IndexedSessions> {
        self.indexed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the index what the log has and the index has not.
    async fn sync(&self, id: &SessionId) -> Result<(), StoreError> {
        let known = self.lock().next_seq.get(id).copied();
        let mut next = match known {
            Some(next) => next,
            None => {
                let session = self.log.session(id).await?;
                match SessionStore::create(&self.index, session).await {
                    // An earlier attempt was dropped, or another task is reading the session too.
                    Err(StoreError::Exists { .. }) => self.index.read_head(id).await?.next_seq,
                    created => created.map(|()| 1)?,
                }
            }
        };
        loop {
            let range = EventRange {
                from: next,
                limit: PAGE,
            };
            let events = self.log.read(id, range).await?;
            let count = events.len();
            if count > 0 {
                match SessionStore::append(&self.index, events.into()).await {
                    // Another task has added them.
                    Err(StoreError::Conflict { .. }) => {
                        next = self.index.read_head(id).await?.next_seq;
                        continue;
                    }
                    appended => appended?,
                }
                next += count as u64;
            }
            if count < PAGE {
                break;
            }
        }
        self.lock().insert(id, next);
        self.evict().await
    }

    /// Removes the least recently opened sessions while the index holds too many. Sessions with a running turn stay.
    async fn evict(&self) -> Result<(), StoreError> {
        for _ in 0..2 {
            let oldest = {
                let indexed = self.lock();
                if indexed.next_seq.len() <= MAX_INDEXED {
                    return Ok(());
                }
                indexed.order.front().cloned()
            };
            let Some(oldest) = oldest else {
                return Ok(());
            };
            match self.index.acquire(&oldest, BusyPolicy::Refuse).await {
                Err(StoreError::Busy { .. }) => self.lock().touch(&oldest),
                lease => {
                    let _lease = lease?;
                    self.forget(&oldest).await?;
                }
            }
        }
        Ok(())
    }

    async fn forget(&self, id: &SessionId) -> Result<(), StoreError> {
        {
            let mut indexed = self.lock();
            indexed.next_seq.remove(id);
            indexed.order.retain(|other| other != id);
        }
        if self.index.hide_session(id, None).await? {
            remove_hidden(&self.index, id).await?;
        }
        Ok(())
    }
}

impl SessionStore for LogStore {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.log.create(session))
    }

    fn read_head(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            self.sync(&session).await?;
            self.index.read_head(&session).await
        })
    }

    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>> {
        self.index.acquire(session, busy_policy)
    }

    fn append(&self, events: EventBatch) -> BoxFuture<'_, Result<(), StoreError>> {
        // The index follows when something is read from it.
        self.log.append(events)
    }

    fn read(
        &self,
        session: &SessionId,
        range: EventRange,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let session = session.clone();
        Box::pin(async move { self.log.read(&session, range).await })
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(async move {
            self.sync(&session).await?;
            self.index.turn_events(&session, &turn).await
        })
    }

    fn undone_seq(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(async move {
            self.sync(&session).await?;
            self.index.undone_seq(&session, &turn).await
        })
    }

    fn history_of(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Exchange>, StoreError>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(async move {
            self.sync(&session).await?;
            self.index.history_of(&session, &turn).await
        })
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        let (session, folder) = (session.clone(), folder.to_owned());
        Box::pin(async move {
            self.sync(&session).await?;
            self.index.grants(&session, &folder).await
        })
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        let (session, agent) = (session.clone(), agent.clone());
        Box::pin(async move {
            self.sync(&session).await?;
            self.index.remote_thread(&session, &agent).await
        })
    }
}
