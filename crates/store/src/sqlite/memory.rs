//! The memory of sessions and users in SQLite: what is read for a step, and the one short transaction that ends it.

use super::SqliteEngine;
use super::{memory_changes, memory_rows};
use crate::database::Answer;
use crate::recollection::{
    Commit, Forget, Generation, MemoryId, MemoryOwner, MemoryRows, MemoryStep, NewRecollection,
    NewSavedMemory, Recollection, Saved, SavedMemory, ShownMemory, TurnsToRead, UnobservedTurn,
    Watermark, Which,
};
use lango_core::{TurnId, UserId};

impl MemoryRows for SqliteEngine {
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark> {
        let owner = owner.clone();
        Box::pin(
            self.readers
                .read(move |reader| memory_rows::watermark(reader.connection, &owner)),
        )
    }

    fn turns(&self, owner: &MemoryOwner, turns: TurnsToRead) -> Answer<'_, Vec<UnobservedTurn>> {
        let owner = owner.clone();
        Box::pin(
            self.readers
                .read(move |reader| memory_rows::turns(reader, &owner, turns)),
        )
    }

    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>> {
        let (owner, turn) = (owner.clone(), turn.clone());
        Box::pin(
            self.readers
                .read(move |reader| memory_rows::current_turn(reader.connection, &owner, &turn)),
        )
    }

    fn shown(&self, owner: &MemoryOwner, most: usize) -> Answer<'_, ShownMemory> {
        let owner = owner.clone();
        Box::pin(
            self.readers
                .read(move |reader| memory_rows::shown(reader.connection, &owner, most)),
        )
    }

    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        which: Which,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>> {
        let owner = owner.clone();
        Box::pin(self.readers.read(move |reader| {
            memory_rows::list(reader.connection, &owner, generation, which, limit)
        }))
    }

    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>> {
        let user = user.clone();
        Box::pin(
            self.readers
                .read(move |reader| memory_rows::saved(reader.connection, &user, limit)),
        )
    }

    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>> {
        let owner = owner.clone();
        Box::pin(
            self.writer.change(move |connection| {
                memory_changes::commit(connection, &owner, revision, &step)
            }),
        )
    }

    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32> {
        let owner = owner.clone();
        Box::pin(
            self.writer
                .change(move |connection| memory_changes::count_failure(connection, &owner)),
        )
    }

    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId> {
        let owner = owner.clone();
        Box::pin(
            self.writer
                .change(move |connection| memory_changes::add_note(connection, &owner, &note)),
        )
    }

    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, Saved> {
        let user = user.clone();
        Box::pin(
            self.writer
                .change(move |connection| memory_changes::save(connection, &user, &memory, most)),
        )
    }

    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        forget: Forget,
    ) -> Answer<'_, Commit<Vec<MemoryId>>> {
        let owner = owner.clone();
        Box::pin(self.writer.change(move |connection| {
            memory_changes::forget(connection, &owner, revision, &forget)
        }))
    }
}
