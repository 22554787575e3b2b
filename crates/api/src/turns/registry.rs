//! Turns that run here or wait for their session, up to a limit.

use crate::problem::{Problem, Result};
use lango_core::{SessionId, TurnId, UserId};
use lango_engine::{AnswerInbox, CancelToken};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct Registry {
    limit: usize,
    turns: Mutex<HashMap<(SessionId, TurnId), Entry>>,
}

struct Entry {
    user: UserId,
    stop: CancelToken,
    answers: Arc<AnswerInbox>,
    is_running: Arc<AtomicBool>,
}

impl Registry {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            turns: Mutex::default(),
        })
    }

    /// Registers a new turn. Fails if it is registered already, or if the limit is reached.
    pub(super) fn enter(
        self: &Arc<Self>,
        user: &UserId,
        session: &SessionId,
        turn: &TurnId,
        answers: Arc<AnswerInbox>,
    ) -> Result<TurnSlot> {
        let limit = self.limit;
        if self.lock().len() >= limit {
            let detail = format!("the server is at its limit of {limit} running and queued turns");
            return Err(Problem::too_many(detail)
                .next("retry in a moment, or raise `server.maxRunningTasks`"));
        }
        self.enter_again(user, session, turn, answers)
    }

    /// Registers a turn that continues after an approval. The limit does not apply to it.
    pub(super) fn enter_again(
        self: &Arc<Self>,
        user: &UserId,
        session: &SessionId,
        turn: &TurnId,
        answers: Arc<AnswerInbox>,
    ) -> Result<TurnSlot> {
        let mut turns = self.lock();
        let key = (session.clone(), turn.clone());
        if turns.contains_key(&key) {
            return Err(Problem::runs_already(turn));
        }
        let entry = Entry {
            user: user.clone(),
            stop: CancelToken::new(),
            answers,
            is_running: Arc::default(),
        };
        let slot = TurnSlot {
            registry: Arc::clone(self),
            key: key.clone(),
            stop: entry.stop.clone(),
            is_running: Arc::clone(&entry.is_running),
        };
        turns.insert(key, entry);
        Ok(slot)
    }

    /// Stops a registered turn of one of these users. Returns false if there is none.
    pub(super) fn stop(&self, users: &[UserId], session: &SessionId, turn: &TurnId) -> bool {
        let turns = self.lock();
        let entry = turns.get(&(session.clone(), turn.clone()));
        let entry = entry.filter(|entry| users.contains(&entry.user));
        if let Some(entry) = entry {
            entry.stop.cancel();
        }
        entry.is_some()
    }

    /// Stops all turns of a session that is being deleted.
    pub(super) fn stop_all(&self, session: &SessionId) {
        for ((of, _), entry) in self.lock().iter() {
            if of == session {
                entry.stop.cancel();
            }
        }
    }

    /// Returns whether a registered turn has started, or `None` if it is not registered.
    pub(super) fn has_started(&self, session: &SessionId, turn: &TurnId) -> Option<bool> {
        let turns = self.lock();
        let entry = turns.get(&(session.clone(), turn.clone()))?;
        Some(entry.is_running.load(Ordering::Relaxed))
    }

    /// Returns the inbox for answers to a registered turn.
    pub(super) fn answers_of(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Option<Arc<AnswerInbox>> {
        let turns = self.lock();
        let entry = turns.get(&(session.clone(), turn.clone()))?;
        Some(Arc::clone(&entry.answers))
    }

    /// Returns how many turns are running, and how many are queued.
    pub(super) fn counts(&self) -> (usize, usize) {
        let turns = self.lock();
        let is_running = |entry: &&Entry| entry.is_running.load(Ordering::Relaxed);
        let running = turns.values().filter(is_running).count();
        (running, turns.len() - running)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(SessionId, TurnId), Entry>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one turn. Dropping it frees the slot for another turn.
pub(super) struct TurnSlot {
    registry: Arc<Registry>,
    key: (SessionId, TurnId),
    stop: CancelToken,
    is_running: Arc<AtomicBool>,
}

impl TurnSlot {
    pub(super) fn stop(&self) -> CancelToken {
        self.stop.clone()
    }

    /// Records that the turn has stored its first events.
    pub(super) fn note_start(&self) {
        self.is_running.store(true, Ordering::Relaxed);
    }
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.key);
    }
}
