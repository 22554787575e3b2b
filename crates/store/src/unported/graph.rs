//! Dispatch to the two implementations of `graph` that there still are.

use crate::database::Answer;
use crate::engine::Engine;
use crate::graph::{
    Ended, Fact, FactQuery, Found as GraphFound, GraphRows, GraphSize, Name, NewFact, Noun,
    Related, Traversal, Triple, Walk,
};
use crate::store::Store;
use lango_core::*;

impl GraphRows for Store {
    fn relate(&self, user: &UserId, fact: NewFact) -> Answer<'_, Related> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::relate(engine.as_ref(), user, fact),
            Engine::Postgres(engine) => GraphRows::relate(engine.as_ref(), user, fact),
        }
    }

    fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Answer<'_, u64> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::relate_all(engine.as_ref(), user, facts),
            Engine::Postgres(engine) => GraphRows::relate_all(engine.as_ref(), user, facts),
        }
    }

    fn end(&self, user: &UserId, triple: Triple, by: Trust, at: Timestamp) -> Answer<'_, Ended> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::end(engine.as_ref(), user, triple, by, at),
            Engine::Postgres(engine) => GraphRows::end(engine.as_ref(), user, triple, by, at),
        }
    }

    fn query(&self, user: &UserId, query: FactQuery) -> Answer<'_, GraphFound> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::query(engine.as_ref(), user, query),
            Engine::Postgres(engine) => GraphRows::query(engine.as_ref(), user, query),
        }
    }

    fn traverse(&self, user: &UserId, walk: Walk) -> Answer<'_, Option<Traversal>> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::traverse(engine.as_ref(), user, walk),
            Engine::Postgres(engine) => GraphRows::traverse(engine.as_ref(), user, walk),
        }
    }

    fn neighbours(&self, user: &UserId, names: Vec<Name>, limit: usize) -> Answer<'_, Vec<Fact>> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::neighbours(engine.as_ref(), user, names, limit),
            Engine::Postgres(engine) => GraphRows::neighbours(engine.as_ref(), user, names, limit),
        }
    }

    fn near(&self, user: &UserId, noun: Noun, name: Name, limit: usize) -> Answer<'_, Vec<Name>> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::near(engine.as_ref(), user, noun, name, limit),
            Engine::Postgres(engine) => GraphRows::near(engine.as_ref(), user, noun, name, limit),
        }
    }

    fn count(&self, user: &UserId) -> Answer<'_, GraphSize> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::count(engine.as_ref(), user),
            Engine::Postgres(engine) => GraphRows::count(engine.as_ref(), user),
        }
    }

    fn forget_user(&self, user: &UserId) -> Answer<'_, u64> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::forget_user(engine.as_ref(), user),
            Engine::Postgres(engine) => GraphRows::forget_user(engine.as_ref(), user),
        }
    }

    fn forget_source(&self, user: &UserId, source: &str) -> Answer<'_, u64> {
        match &self.engine {
            Engine::Sqlite(engine) => GraphRows::forget_source(engine.as_ref(), user, source),
            Engine::Postgres(engine) => GraphRows::forget_source(engine.as_ref(), user, source),
        }
    }
}
