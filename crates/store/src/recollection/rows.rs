//! The seam to the memory of sessions and users: what is read for a step, and the one short transaction that ends it.
//!
//! A step reads a [`Watermark`], asks a model for as long as that takes, and commits for the revision it read. If anything
//! was observed, condensed or forgotten meanwhile, the commit is [`Commit::Stale`] and changes nothing. So no turn is
//! observed twice, none is left out, and nothing that was forgotten comes back.

use super::{
    Commit, Forget, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection, NewSavedMemory,
    Recollection, Saved, SavedMemory, ShownMemory, TurnsToRead, UnobservedTurn, Watermark, Which,
};
use crate::database::Answer;
use lango_core::{TurnId, UserId};

/// The memory in a database. Every method but those of saved memories wants a session that is the user's, and finds
/// nothing, or says [`NotFound`](lango_core::StoreError::NotFound), if it is not.
pub trait MemoryRows: Send + Sync {
    /// How far the memory of a session is.
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark>;

    /// Turns in their order, up to the first that may still go on.
    fn turns(&self, owner: &MemoryOwner, turns: TurnsToRead) -> Answer<'_, Vec<UnobservedTurn>>;

    /// The ordinal of a turn that is going on.
    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>>;

    /// What a prompt shows, at most so many of each kind.
    fn shown(&self, owner: &MemoryOwner, most: usize) -> Answer<'_, ShownMemory>;

    /// Recollections of one generation.
    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        which: Which,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>>;

    /// A user's saved memories, the newest first.
    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>>;

    /// Ends a step that was begun at this revision: its result and the watermark, together or not at all.
    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>>;

    /// Counts one more failure of the model; gives how many there were in a row.
    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32>;

    /// Adds an observation that nobody had to be asked for. The same words of the same source are added once.
    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId>;

    /// Saves something for a user, who may have `most`.
    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, Saved>;

    /// Deletes what is to be forgotten, as chosen at this revision. Gives the names of all that is gone.
    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        forget: Forget,
    ) -> Answer<'_, Commit<Vec<MemoryId>>>;
}
