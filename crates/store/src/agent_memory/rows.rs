//! The seam to the memory of sessions and users: what a step reads, and the one short transaction that ends it.
//!
//! A step reads a [`Watermark`], asks a model for as long as that takes, and commits for the revision it read. If anything
//! was observed, condensed or deleted meanwhile, the commit is [`Commit::Stale`] and changes nothing. So no turn is
//! observed twice, none is left out, and nothing that was deleted comes back.

use super::{
    Commit, ForgetRequest, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection,
    NewSavedMemory, PromptMemory, Recollection, RecollectionOrder, SaveOutcome, SavedMemory,
    TurnRange, UnobservedTurn, Watermark, changes, read,
};
use crate::Answer;
use crate::store::Store;
use lango_core::{TurnId, UserId};

/// The memory in a database. Every method with an owner wants a session that is the user's, and fails with
/// [`NotFound`](lango_core::StoreError::NotFound) or returns nothing if it is not.
pub trait MemoryRows: Send + Sync {
    /// Returns how far a session is observed.
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark>;

    /// Returns turns in their order, up to the first that may still go on.
    fn turns(&self, owner: &MemoryOwner, range: TurnRange) -> Answer<'_, Vec<UnobservedTurn>>;

    /// Returns the ordinal of a turn that is running.
    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>>;

    /// Returns the memory that a prompt shows, at most so many of each kind.
    fn prompt_memory(&self, owner: &MemoryOwner, limit: usize) -> Answer<'_, PromptMemory>;

    /// Returns recollections of one generation.
    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        order: RecollectionOrder,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>>;

    /// Returns a user's saved memories, the newest first.
    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>>;

    /// Ends a step that was started at this revision: stores its result and the watermark, together or not at all.
    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>>;

    /// Counts a failure of the model; returns how many there were in a row.
    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32>;

    /// Adds an observation that needed no model. The same text of the same source is added once.
    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId>;

    /// Saves a memory for a user, who may have `most`.
    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, SaveOutcome>;

    /// Deletes what was chosen at this revision. Returns the ids of all that was deleted.
    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        request: ForgetRequest,
    ) -> Answer<'_, Commit<Vec<MemoryId>>>;
}

impl MemoryRows for Store {
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark> {
        self.engine.read(owner.clone(), |tx, owner| {
            Box::pin(read::watermark(tx, owner))
        })
    }

    fn turns(&self, owner: &MemoryOwner, range: TurnRange) -> Answer<'_, Vec<UnobservedTurn>> {
        let given = (owner.clone(), range, self.root_agent.clone());
        self.engine.read(given, |tx, (owner, range, root_agent)| {
            Box::pin(read::turns(tx, owner, *range, root_agent))
        })
    }

    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>> {
        let given = (owner.clone(), turn.clone());
        self.engine.snapshot(given, |tx, (owner, turn)| {
            Box::pin(read::current_turn(tx, owner, turn))
        })
    }

    fn prompt_memory(&self, owner: &MemoryOwner, limit: usize) -> Answer<'_, PromptMemory> {
        self.engine
            .read((owner.clone(), limit), |tx, (owner, limit)| {
                Box::pin(read::prompt_memory(tx, owner, *limit))
            })
    }

    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        order: RecollectionOrder,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>> {
        let given = (owner.clone(), generation, order, limit);
        self.engine
            .read(given, |tx, (owner, generation, order, limit)| {
                Box::pin(read::list(tx, owner, *generation, *order, *limit))
            })
    }

    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>> {
        self.engine
            .read((user.clone(), limit), |tx, (user, limit)| {
                Box::pin(read::saved(tx, user, *limit))
            })
    }

    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>> {
        let given = (owner.clone(), revision, step);
        self.engine.write(given, |tx, (owner, revision, step)| {
            Box::pin(changes::commit(tx, owner, *revision, step))
        })
    }

    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32> {
        self.engine.write(owner.clone(), |tx, owner| {
            Box::pin(changes::count_failure(tx, owner))
        })
    }

    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId> {
        self.engine
            .write((owner.clone(), note), |tx, (owner, note)| {
                Box::pin(changes::add_note(tx, owner, note))
            })
    }

    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, SaveOutcome> {
        let given = (user.clone(), memory, most);
        self.engine.write(given, |tx, (user, memory, most)| {
            Box::pin(changes::save(tx, user, memory, *most))
        })
    }

    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        request: ForgetRequest,
    ) -> Answer<'_, Commit<Vec<MemoryId>>> {
        let given = (owner.clone(), revision, request);
        self.engine.write(given, |tx, (owner, revision, request)| {
            Box::pin(changes::forget(tx, owner, *revision, request))
        })
    }
}
