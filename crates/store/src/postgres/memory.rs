//! The memory of sessions and users in PostgreSQL: what is read for a step, and the one short transaction that ends it.
//!
//! Whoever changes the memory of a session first moves its watermark, or holds it, so that of several copies that end a step
//! of the same revision one does and the others change nothing.

mod changes;
mod read;
mod statements;

use super::PostgresEngine;
use crate::database::Answer;
use crate::recollection::{
    Commit, Forget, Generation, MemoryId, MemoryOwner, MemoryRows, MemoryStep, NewRecollection,
    NewSavedMemory, Recollection, Saved, SavedMemory, ShownMemory, TurnsToRead, UnobservedTurn,
    Watermark, Which,
};
use lango_core::{TurnId, UserId};
#[cfg(test)]
pub(super) use statements::EVERYDAY;

impl MemoryRows for PostgresEngine {
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark> {
        let owner = owner.clone();
        self.asked(async move { read::watermark(&self.database, &owner).await })
    }

    fn turns(&self, owner: &MemoryOwner, turns: TurnsToRead) -> Answer<'_, Vec<UnobservedTurn>> {
        let owner = owner.clone();
        self.asked(
            async move { read::turns(&self.database, &owner, turns, &self.root_agent).await },
        )
    }

    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>> {
        let given = (owner.clone(), turn.clone());
        self.look(given, |transaction, (owner, turn)| {
            Box::pin(read::current_turn(transaction, owner, turn))
        })
    }

    fn shown(&self, owner: &MemoryOwner, most: usize) -> Answer<'_, ShownMemory> {
        let owner = owner.clone();
        self.asked(async move { read::shown(&self.database, &owner, most).await })
    }

    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        which: Which,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>> {
        let owner = owner.clone();
        self.asked(
            async move { read::list(&self.database, &owner, generation, which, limit).await },
        )
    }

    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>> {
        let user = user.clone();
        self.asked(async move { read::saved(&self.database, &user, limit).await })
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
