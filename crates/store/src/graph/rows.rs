//! Access to the facts. Each user has a graph of their own.
//!
//! Writes are short transactions that lock the user's row first, so that replicas create nothing twice. Reads see one
//! snapshot and find their rows by key.

use super::{
    EndOutcome, Fact, FactPage, FactQuery, GraphSize, Name, NameKind, NewFact, RelateOutcome,
    Traversal, Triple, Walk, forget, query, relate, traverse,
};
use crate::Answer;
use crate::store::Store;
use lango_core::{StoreError, Timestamp, Trust, UserId};
use std::sync::Arc;

/// The facts of all users in a database. Every method sees the facts of one user only.
pub trait GraphRows: Send + Sync {
    /// Stores a fact. See [`RelateOutcome`] for one that holds already.
    fn relate(&self, user: &UserId, fact: NewFact) -> Answer<'_, RelateOutcome>;

    /// Stores many facts in batches and returns how many of them were new. If it fails or is dropped, the batches before
    /// are stored; storing all of them again does no harm.
    fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Answer<'_, u64>;

    /// Ends a fact: it stays, and is known to have held until `at`. Only a trusted caller ends what a trusted source
    /// asserts.
    fn end(
        &self,
        user: &UserId,
        triple: Triple,
        by: Trust,
        at: Timestamp,
    ) -> Answer<'_, EndOutcome>;

    /// Returns the facts that match.
    fn query(&self, user: &UserId, query: FactQuery) -> Answer<'_, FactPage>;

    /// Returns the facts around an entity, the nearest first; nothing if there is no such entity. Each fact is returned
    /// once and each entity followed once, whatever cycles there are.
    fn traverse(&self, user: &UserId, walk: Walk) -> Answer<'_, Option<Traversal>>;

    /// Returns facts of the entities with these names, a fair share of each. Ignores unknown names, and those after the
    /// first 256.
    fn neighbours(&self, user: &UserId, names: Vec<Name>, limit: usize) -> Answer<'_, Vec<Fact>>;

    /// Returns names close to this one in the alphabet: `limit` from it on, itself first if it is known, then as many
    /// before it.
    fn near(
        &self,
        user: &UserId,
        kind: NameKind,
        name: Name,
        limit: usize,
    ) -> Answer<'_, Vec<Name>>;

    /// Counts the rows, so it takes longer the more there are.
    fn count(&self, user: &UserId) -> Answer<'_, GraphSize>;

    /// Deletes a user's graph in batches and returns how many facts it had.
    fn forget_user(&self, user: &UserId) -> Answer<'_, u64>;

    /// Deletes the facts of a source, trusted or not, with the entities and predicates that only they use, in batches.
    /// Returns the number of deleted facts.
    fn forget_source(&self, user: &UserId, source: &str) -> Answer<'_, u64>;
}

/// Facts stored in one transaction.
const BATCH: usize = 256;

impl GraphRows for Store {
    fn relate(&self, user: &UserId, fact: NewFact) -> Answer<'_, RelateOutcome> {
        self.engine.write((user.clone(), fact), |tx, (user, fact)| {
            Box::pin(relate::relate(tx, user, fact))
        })
    }

    fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Answer<'_, u64> {
        let (user, facts) = (user.clone(), Arc::new(facts));
        Box::pin(async move {
            let mut new = 0;
            for start in (0..facts.len()).step_by(BATCH) {
                let end = facts.len().min(start + BATCH);
                let given = (user.clone(), Arc::clone(&facts), start..end);
                let batch = self.engine.write(given, |tx, (user, facts, batch)| {
                    Box::pin(relate::relate_all(tx, user, &facts[batch.clone()]))
                });
                new += batch.await?;
            }
            Ok(new)
        })
    }

    fn end(
        &self,
        user: &UserId,
        triple: Triple,
        by: Trust,
        at: Timestamp,
    ) -> Answer<'_, EndOutcome> {
        let given = (user.clone(), triple, by, at);
        self.engine.write(given, |tx, (user, triple, by, at)| {
            Box::pin(relate::end(tx, user, triple, *by, *at))
        })
    }

    fn query(&self, user: &UserId, query: FactQuery) -> Answer<'_, FactPage> {
        let given = (user.clone(), query);
        self.engine.snapshot(given, |tx, (user, query)| {
            Box::pin(query::query(tx, user, query))
        })
    }

    fn traverse(&self, user: &UserId, walk: Walk) -> Answer<'_, Option<Traversal>> {
        let given = (user.clone(), walk);
        self.engine.snapshot(given, |tx, (user, walk)| {
            Box::pin(traverse::traverse(tx, user, walk))
        })
    }

    fn neighbours(&self, user: &UserId, names: Vec<Name>, limit: usize) -> Answer<'_, Vec<Fact>> {
        let given = (user.clone(), names, limit);
        self.engine.snapshot(given, |tx, (user, names, limit)| {
            Box::pin(query::neighbours(tx, user, names, *limit))
        })
    }

    fn near(
        &self,
        user: &UserId,
        kind: NameKind,
        name: Name,
        limit: usize,
    ) -> Answer<'_, Vec<Name>> {
        let given = (user.clone(), kind, name, limit);
        self.engine
            .snapshot(given, |tx, (user, kind, name, limit)| {
                Box::pin(query::near(tx, user, (*kind, name), *limit))
            })
    }

    fn count(&self, user: &UserId) -> Answer<'_, GraphSize> {
        self.engine
            .snapshot(user.clone(), |tx, user| Box::pin(query::size(tx, user)))
    }

    fn forget_user(&self, user: &UserId) -> Answer<'_, u64> {
        let user = user.clone();
        Box::pin(in_batches(move || {
            self.engine
                .write(user.clone(), |tx, user| Box::pin(forget::user(tx, user)))
        }))
    }

    fn forget_source(&self, user: &UserId, source: &str) -> Answer<'_, u64> {
        let given = (user.clone(), source.to_owned());
        Box::pin(in_batches(move || {
            self.engine.write(given.clone(), |tx, (user, source)| {
                Box::pin(forget::source(tx, user, source))
            })
        }))
    }
}

/// Deletes batches until there is nothing more; returns the number of facts.
async fn in_batches<'a>(
    batch: impl Fn() -> Answer<'a, forget::Deleted>,
) -> Result<u64, StoreError> {
    let mut facts = 0;
    loop {
        let deleted = batch().await?;
        facts += deleted.facts;
        if !deleted.more {
            return Ok(facts);
        }
    }
}
