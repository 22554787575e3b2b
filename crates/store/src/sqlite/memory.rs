//! The memory of sessions and users, as rows: what is read for a step, and the one short transaction that ends it.
//!
//! A step reads a [`Watermark`], asks a model for as long as that takes, and commits for the revision it read. If anything
//! was observed, condensed or forgotten meanwhile, the commit is [`Commit::Stale`] and changes nothing. So no turn is
//! observed twice, none is left out, and nothing that was forgotten comes back.

use super::SqliteStore;
use super::failure::Failure;
use super::{memory_changes, memory_rows};
use crate::recollection::{
    Commit, Forget, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection, NewSavedMemory,
    Recollection, Saved, SavedMemory, UnobservedTurn, Watermark,
};
use lango_core::{StoreError, Trust, TurnId, UserId};
use rusqlite::Connection;

/// The memory in a database. Every method but those of saved memories wants a session that is the user's, and finds
/// nothing, or says [`StoreError::NotFound`], if it is not.
#[derive(Clone, Copy)]
pub struct Recollections<'a> {
    store: &'a SqliteStore,
}

/// Which turns to read for an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnsToRead {
    /// The ordinal of the first.
    pub from: u64,
    /// How many at most.
    pub limit: usize,
    /// How many bytes a question or an answer keeps.
    pub text_bytes: usize,
}

/// Which recollections of a generation to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All, the newest first.
    Newest,
    /// Those that went into no later one, the newest first.
    NewestLoose,
    /// Those that went into no later one, the oldest first.
    OldestLoose,
}

impl SqliteStore {
    /// The memory of sessions and users.
    pub fn recollections(&self) -> Recollections<'_> {
        Recollections { store: self }
    }
}

impl Recollections<'_> {
    /// How far the memory of a session is.
    pub async fn watermark(&self, owner: &MemoryOwner) -> Result<Watermark, StoreError> {
        let owner = owner.clone();
        self.read(move |reader| memory_rows::watermark(reader.connection, &owner))
            .await
    }

    /// Turns in their order, up to the first that may still go on.
    pub async fn turns(
        &self,
        owner: &MemoryOwner,
        turns: TurnsToRead,
    ) -> Result<Vec<UnobservedTurn>, StoreError> {
        let owner = owner.clone();
        self.read(move |reader| memory_rows::turns(reader, &owner, turns))
            .await
    }

    /// Whether all that the session's agents were shown until now may be believed.
    pub async fn trust_now(&self, owner: &MemoryOwner) -> Result<Trust, StoreError> {
        let owner = owner.clone();
        self.read(move |reader| memory_rows::trust_now(reader.connection, &owner))
            .await
    }

    /// The ordinal of a turn that is going on.
    pub async fn current_turn(
        &self,
        owner: &MemoryOwner,
        turn: &TurnId,
    ) -> Result<Option<u64>, StoreError> {
        let (owner, turn) = (owner.clone(), turn.clone());
        self.read(move |reader| memory_rows::current_turn(reader.connection, &owner, &turn))
            .await
    }

    /// Recollections of one generation.
    pub async fn list(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        which: Which,
        limit: usize,
    ) -> Result<Vec<Recollection>, StoreError> {
        let owner = owner.clone();
        self.read(move |reader| {
            memory_rows::list(reader.connection, &owner, generation, which, limit)
        })
        .await
    }

    /// A user's saved memories, the newest first.
    pub async fn saved(&self, user: &UserId, limit: usize) -> Result<Vec<SavedMemory>, StoreError> {
        let user = user.clone();
        self.read(move |reader| memory_rows::saved(reader.connection, &user, limit))
            .await
    }

    /// Whether a user has saved something that may not be believed.
    pub async fn has_untrusted(&self, user: &UserId) -> Result<bool, StoreError> {
        let user = user.clone();
        self.read(move |reader| memory_rows::has_untrusted(reader.connection, &user))
            .await
    }

    /// Ends a step that was begun at this revision: its result and the watermark, together or not at all.
    pub async fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Result<Commit<Option<MemoryId>>, StoreError> {
        let owner = owner.clone();
        self.change(move |connection| memory_changes::commit(connection, &owner, revision, &step))
            .await
    }

    /// Counts one more failure of the model; gives how many there were in a row.
    pub async fn count_failure(&self, owner: &MemoryOwner) -> Result<u32, StoreError> {
        let owner = owner.clone();
        self.change(move |connection| memory_changes::count_failure(connection, &owner))
            .await
    }

    /// Adds an observation that nobody had to be asked for. The same words of the same source are added once.
    pub async fn add_note(
        &self,
        owner: &MemoryOwner,
        note: NewRecollection,
    ) -> Result<MemoryId, StoreError> {
        let owner = owner.clone();
        self.change(move |connection| memory_changes::add_note(connection, &owner, &note))
            .await
    }

    /// Saves something for a user, who may have `most`.
    pub async fn save(
        &self,
        user: &UserId,
        memory: NewSavedMemory,
        most: u64,
    ) -> Result<Saved, StoreError> {
        let user = user.clone();
        self.change(move |connection| memory_changes::save(connection, &user, &memory, most))
            .await
    }

    /// Deletes what is to be forgotten, as chosen at this revision. Gives the names of all that is gone.
    pub async fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        forget: Forget,
    ) -> Result<Commit<Vec<MemoryId>>, StoreError> {
        let owner = owner.clone();
        self.change(move |connection| memory_changes::forget(connection, &owner, revision, &forget))
            .await
    }

    async fn read<T, F>(&self, look: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(super::readers::Reader<'_>) -> Result<T, Failure> + Send + 'static,
    {
        self.store.readers.read(look).await
    }

    async fn change<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.store.writer.change(change).await
    }
}
