//! The memory of sessions and users in PostgreSQL: what is read for a step, and the one short transaction that ends it.
//!
//! Whoever changes the memory of a session first moves its watermark, or holds it, so that of several copies that end a step
//! of the same revision one does and the others change nothing.

mod changes;
mod read;
mod statements;

use super::PostgresStore;
use crate::database::Answer;
use crate::recollection::{
    Commit, Forget, Generation, MemoryId, MemoryOwner, MemoryRows, MemoryStep, NewRecollection,
    NewSavedMemory, Recollection, Saved, SavedMemory, TurnsToRead, UnobservedTurn, Watermark,
    Which,
};
use lango_core::{Trust, TurnId, UserId};
#[cfg(test)]
pub(super) use statements::EVERYDAY;

impl MemoryRows for PostgresStore {
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark> {
        self.look(owner.clone(), |transaction, owner| {
            Box::pin(read::watermark(transaction, owner))
        })
    }

    fn turns(&self, owner: &MemoryOwner, turns: TurnsToRead) -> Answer<'_, Vec<UnobservedTurn>> {
        let given = (owner.clone(), turns, self.root_agent.clone());
        self.look(given, |transaction, (owner, turns, root_agent)| {
            Box::pin(read::turns(transaction, owner, *turns, root_agent))
        })
    }

    fn trust_now(&self, owner: &MemoryOwner) -> Answer<'_, Trust> {
        self.look(owner.clone(), |transaction, owner| {
            Box::pin(read::trust_now(transaction, owner))
        })
    }

    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>> {
        let given = (owner.clone(), turn.clone());
        self.look(given, |transaction, (owner, turn)| {
            Box::pin(read::current_turn(transaction, owner, turn))
        })
    }

    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        which: Which,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>> {
        let given = (owner.clone(), generation, which, limit);
        self.look(given, |transaction, (owner, generation, which, limit)| {
            Box::pin(read::list(transaction, owner, *generation, *which, *limit))
        })
    }

    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>> {
        self.look((user.clone(), limit), |transaction, (user, limit)| {
            Box::pin(read::saved(transaction, user, *limit))
        })
    }

    fn has_untrusted(&self, user: &UserId) -> Answer<'_, bool> {
        self.look(user.clone(), |transaction, user| {
            Box::pin(read::has_untrusted(transaction, user))
        })
    }

    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>> {
        let given = (owner.clone(), revision, step);
        self.change(given, |transaction, (owner, revision, step)| {
            Box::pin(changes::commit(transaction, owner, *revision, step))
        })
    }

    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32> {
        self.change(owner.clone(), |transaction, owner| {
            Box::pin(changes::count_failure(transaction, owner))
        })
    }

    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId> {
        self.change((owner.clone(), note), |transaction, (owner, note)| {
            Box::pin(changes::add_note(transaction, owner, note))
        })
    }

    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, Saved> {
        let given = (user.clone(), memory, most);
        self.change(given, |transaction, (user, memory, most)| {
            Box::pin(changes::save(transaction, user, memory, *most))
        })
    }

    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        forget: Forget,
    ) -> Answer<'_, Commit<Vec<MemoryId>>> {
        let given = (owner.clone(), revision, forget);
        self.change(given, |transaction, (owner, revision, forget)| {
            Box::pin(changes::forget(transaction, owner, *revision, forget))
        })
    }
}
