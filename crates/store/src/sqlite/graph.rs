//! Facts in the file of the sessions: each user's own graph, which nobody else sees.
//!
//! Names are kept once and facts hold their numbers, so that a million facts are a few small indices. What is written
//! goes through the one writer, in short transactions; what is read is read as of one moment, by key.

mod facts;
mod forget;
mod query;
mod relate;
mod statements;
mod traverse;

use super::SqliteEngine;
use super::connection::execute;
use super::failure::Failure;
use crate::database::Answer;
use crate::graph::{
    Ended, Fact, FactQuery, Found, GraphRows, GraphSize, Name, NewFact, Noun, Related, Traversal,
    Triple, Walk,
};
use lango_core::{StoreError, Timestamp, Trust, UserId};
use relate::Change;
use rusqlite::Connection;
use std::sync::Arc;

/// How many facts are kept in one transaction.
const PORTION: usize = 256;

impl GraphRows for SqliteEngine {
    fn relate(&self, user: &UserId, fact: NewFact) -> Answer<'_, Related> {
        let user = user.clone();
        let change = move |connection: &Connection| relate::relate(connection, &user, &fact);
        Box::pin(self.writer.change(change))
    }

    fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Answer<'_, u64> {
        let user = user.clone();
        Box::pin(async move {
            let facts = Arc::new(facts);
            let mut new = 0;
            for start in (0..facts.len()).step_by(PORTION) {
                let (user, facts) = (user.clone(), Arc::clone(&facts));
                let change = move |connection: &Connection| {
                    let mut new = 0;
                    for fact in facts.iter().skip(start).take(PORTION) {
                        let (_, change) = relate::relate_quietly(connection, &user, fact)?;
                        new += u64::from(change == Change::New);
                    }
                    Ok(new)
                };
                new += self.writer.change(change).await?;
            }
            Ok(new)
        })
    }

    fn end(&self, user: &UserId, triple: Triple, by: Trust, at: Timestamp) -> Answer<'_, Ended> {
        let user = user.clone();
        let change =
            move |connection: &Connection| relate::end(connection, &user, &triple, (by, at));
        Box::pin(self.writer.change(change))
    }

    fn query(&self, user: &UserId, query: FactQuery) -> Answer<'_, Found> {
        let user = user.clone();
        Box::pin(self.look(move |connection| query::query(connection, &user, &query)))
    }

    fn traverse(&self, user: &UserId, walk: Walk) -> Answer<'_, Option<Traversal>> {
        let user = user.clone();
        Box::pin(self.look(move |connection| traverse::traverse(connection, &user, &walk)))
    }

    fn neighbours(&self, user: &UserId, names: Vec<Name>, limit: usize) -> Answer<'_, Vec<Fact>> {
        let user = user.clone();
        Box::pin(self.look(move |connection| query::neighbours(connection, &user, &names, limit)))
    }

    fn near(&self, user: &UserId, noun: Noun, name: Name, limit: usize) -> Answer<'_, Vec<Name>> {
        let user = user.clone();
        Box::pin(self.look(move |connection| query::near(connection, &user, (noun, &name), limit)))
    }

    fn count(&self, user: &UserId) -> Answer<'_, GraphSize> {
        let user = user.clone();
        Box::pin(self.look(move |connection| query::size(connection, &user)))
    }

    fn forget_user(&self, user: &UserId) -> Answer<'_, u64> {
        let user = user.clone();
        Box::pin(async move {
            let mut facts = 0;
            loop {
                let user = user.clone();
                let change = move |connection: &Connection| forget::user(connection, &user);
                let portion = self.writer.change(change).await?;
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
                let (user, source) = (user.clone(), source.clone());
                let change =
                    move |connection: &Connection| forget::source(connection, &user, &source);
                let portion = self.writer.change(change).await?;
                facts += portion.facts;
                if !portion.more {
                    return Ok(facts);
                }
            }
        })
    }
}

impl SqliteEngine {
    /// Looks something up, all of it as of one moment.
    async fn look<T, F>(&self, look: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let at_one_moment = move |connection: &Connection| {
            execute(connection, "BEGIN")?;
            let result = look(connection);
            execute(connection, "COMMIT")?;
            result
        };
        self.readers
            .read(move |reader| at_one_moment(reader.connection))
            .await
    }
}
