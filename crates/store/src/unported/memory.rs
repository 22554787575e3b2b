//! Dispatch to the two implementations of `memory` that there still are.

use crate::database::Answer;
use crate::engine::Engine;
use crate::recollection::{Recollection, *};
use crate::store::Store;
use lango_core::*;

impl MemoryRows for Store {
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::watermark(engine.as_ref(), owner),
            Engine::Postgres(engine) => MemoryRows::watermark(engine.as_ref(), owner),
        }
    }

    fn turns(&self, owner: &MemoryOwner, turns: TurnsToRead) -> Answer<'_, Vec<UnobservedTurn>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::turns(engine.as_ref(), owner, turns),
            Engine::Postgres(engine) => MemoryRows::turns(engine.as_ref(), owner, turns),
        }
    }

    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::current_turn(engine.as_ref(), owner, turn),
            Engine::Postgres(engine) => MemoryRows::current_turn(engine.as_ref(), owner, turn),
        }
    }

    fn shown(&self, owner: &MemoryOwner, most: usize) -> Answer<'_, ShownMemory> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::shown(engine.as_ref(), owner, most),
            Engine::Postgres(engine) => MemoryRows::shown(engine.as_ref(), owner, most),
        }
    }

    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        which: Which,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>> {
        match &self.engine {
            Engine::Sqlite(engine) => {
                MemoryRows::recollections(engine.as_ref(), owner, generation, which, limit)
            }
            Engine::Postgres(engine) => {
                MemoryRows::recollections(engine.as_ref(), owner, generation, which, limit)
            }
        }
    }

    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::saved(engine.as_ref(), user, limit),
            Engine::Postgres(engine) => MemoryRows::saved(engine.as_ref(), user, limit),
        }
    }

    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::commit(engine.as_ref(), owner, revision, step),
            Engine::Postgres(engine) => MemoryRows::commit(engine.as_ref(), owner, revision, step),
        }
    }

    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::count_failure(engine.as_ref(), owner),
            Engine::Postgres(engine) => MemoryRows::count_failure(engine.as_ref(), owner),
        }
    }

    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::add_note(engine.as_ref(), owner, note),
            Engine::Postgres(engine) => MemoryRows::add_note(engine.as_ref(), owner, note),
        }
    }

    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, Saved> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::save(engine.as_ref(), user, memory, most),
            Engine::Postgres(engine) => MemoryRows::save(engine.as_ref(), user, memory, most),
        }
    }

    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        forget: Forget,
    ) -> Answer<'_, Commit<Vec<MemoryId>>> {
        match &self.engine {
            Engine::Sqlite(engine) => MemoryRows::forget(engine.as_ref(), owner, revision, forget),
            Engine::Postgres(engine) => {
                MemoryRows::forget(engine.as_ref(), owner, revision, forget)
            }
        }
    }
}
