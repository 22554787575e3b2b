//! Facts in PostgreSQL: each user's own graph, which nobody else sees.
//!
//! Whoever writes facts of a user holds that user's row meanwhile, so that what is found is still there when it is used, and
//! nothing is made twice. What is read is read as of one moment, by key.

mod facts;
mod forget;
mod names;
mod query;
mod relate;
mod statements;
mod traverse;

use super::PostgresEngine;
use crate::database::Answer;
use crate::graph::{
    Ended, Fact, FactQuery, Found, GraphRows, GraphSize, Name, NewFact, Noun, Related, Traversal,
    Triple, Walk,
};
use lango_core::{Timestamp, Trust, UserId};
#[cfg(test)]
pub(super) use statements::EVERYDAY;
use std::sync::Arc;

/// How many facts are kept in one transaction.
const PORTION: usize = 256;

impl GraphRows for PostgresEngine {
    fn relate(&self, user: &UserId, fact: NewFact) -> Answer<'_, Related> {
        self.change((user.clone(), fact), |transaction, (user, fact)| {
            Box::pin(relate::relate(transaction, user, fact))
        })
    }

    fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Answer<'_, u64> {
        let (user, facts) = (user.clone(), Arc::new(facts));
        Box::pin(async move {
            let mut new = 0;
            for start in (0..facts.len()).step_by(PORTION) {
                let end = facts.len().min(start + PORTION);
                let portion = (user.clone(), Arc::clone(&facts), start..end);
                let kept = self.change(portion, |transaction, (user, facts, portion)| {
                    Box::pin(relate::relate_all(
                        transaction,
                        user,
                        &facts[portion.clone()],
                    ))
                });
                new += kept.await?;
            }
            Ok(new)
        })
    }

    fn end(&self, user: &UserId, triple: Triple, by: Trust, at: Timestamp) -> Answer<'_, Ended> {
        let given = (user.clone(), triple, (by, at));
        self.change(given, |transaction, (user, triple, word)| {
            Box::pin(relate::end(transaction, user, triple, *word))
        })
    }

    fn query(&self, user: &UserId, query: FactQuery) -> Answer<'_, Found> {
        self.look((user.clone(), query), |transaction, (user, query)| {
            Box::pin(query::query(transaction, user, query))
        })
    }

    fn traverse(&self, user: &UserId, walk: Walk) -> Answer<'_, Option<Traversal>> {
        self.look((user.clone(), walk), |transaction, (user, walk)| {
            Box::pin(traverse::traverse(transaction, user, walk))
        })
    }

    fn neighbours(&self, user: &UserId, names: Vec<Name>, limit: usize) -> Answer<'_, Vec<Fact>> {
        let given = (user.clone(), names, limit);
        self.look(given, |transaction, (user, names, limit)| {
            Box::pin(query::neighbours(transaction, user, names, *limit))
        })
    }

    fn near(&self, user: &UserId, noun: Noun, name: Name, limit: usize) -> Answer<'_, Vec<Name>> {
        let given = (user.clone(), noun, name, limit);
        self.look(given, |transaction, (user, noun, name, limit)| {
            Box::pin(query::near(transaction, user, (*noun, name), *limit))
        })
    }

    fn count(&self, user: &UserId) -> Answer<'_, GraphSize> {
        self.look(user.clone(), |transaction, user| {
            Box::pin(query::size(transaction, user))
        })
    }

    fn forget_user(&self, user: &UserId) -> Answer<'_, u64> {
        let user = user.clone();
        Box::pin(async move {
            let mut facts = 0;
            loop {
                let portion = self.change(user.clone(), |transaction, user| {
                    Box::pin(forget::user(transaction, user))
                });
                let portion = portion.await?;
                facts += portion.facts;
                if !portion.more {
                    return Ok(facts);
                }
            }
        })
    }

    fn forget_source(&self, user: &UserId, source: &str) -> Answer<'_, u64> {
        let (user, source) = (user.clone(), source.to_owned());
        Box::pin(async move {
            let mut facts = 0;
            loop {
                let given = (user.clone(), source.clone());
                let portion = self.change(given, |transaction, (user, source)| {
                    Box::pin(forget::source(transaction, user, source))
                });
                let portion = portion.await?;
                facts += portion.facts;
                if !portion.more {
                    return Ok(facts);
                }
            }
        })
    }
}
