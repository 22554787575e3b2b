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

use super::SqliteStore;
use super::connection::execute;
use super::failure::Failure;
use crate::graph::{
    Ended, Fact, FactQuery, Found, GraphSize, Name, NewFact, Noun, Related, Traversal, Triple, Walk,
};
use lango_core::{StoreError, Timestamp, Trust, UserId};
use relate::Change;
use rusqlite::Connection;
use std::sync::Arc;

/// How many facts are kept in one transaction.
const PORTION: usize = 256;

/// The facts of all users, in one SQLite file. Every method sees the facts of one user only.
///
/// Its futures need a tokio runtime. A clone is another handle to the same file.
#[derive(Clone)]
pub struct Graph {
    store: Arc<SqliteStore>,
}

impl Graph {
    pub(super) fn of(store: Arc<SqliteStore>) -> Self {
        Self { store }
    }

    /// Keeps a fact. See [`Related`] for one that holds already.
    pub async fn relate(&self, user: &UserId, fact: NewFact) -> Result<Related, StoreError> {
        let user = user.clone();
        let change = move |connection: &Connection| relate::relate(connection, &user, &fact);
        self.store.writer.change(change).await
    }

    /// Keeps many facts, a portion at a time, and gives how many of them were new. If it fails, or is not waited for,
    /// the portions before are kept; keeping all again does no harm.
    pub async fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Result<u64, StoreError> {
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
            new += self.store.writer.change(change).await?;
        }
        Ok(new)
    }

    /// Ends a fact: it stays, and is known to have held until `at`. Only somebody trusted ends what a trusted source
    /// said.
    pub async fn end(
        &self,
        user: &UserId,
        triple: Triple,
        by: Trust,
        at: Timestamp,
    ) -> Result<Ended, StoreError> {
        let user = user.clone();
        let change =
            move |connection: &Connection| relate::end(connection, &user, &triple, (by, at));
        self.store.writer.change(change).await
    }

    /// The facts that fit.
    pub async fn query(&self, user: &UserId, query: FactQuery) -> Result<Found, StoreError> {
        let user = user.clone();
        self.look(move |connection| query::query(connection, &user, &query))
            .await
    }

    /// The facts around an entity, the nearest first; nothing if there is no such entity. Each fact is found once, and
    /// each entity followed once, whatever circles there are.
    pub async fn traverse(
        &self,
        user: &UserId,
        walk: Walk,
    ) -> Result<Option<Traversal>, StoreError> {
        let user = user.clone();
        self.look(move |connection| traverse::traverse(connection, &user, &walk))
            .await
    }

    /// Facts of the entities with these names, a fair share of each. Names that nothing has are passed over, and so
    /// are those after the first 256.
    pub async fn neighbours(
        &self,
        user: &UserId,
        names: Vec<Name>,
        limit: usize,
    ) -> Result<Vec<Fact>, StoreError> {
        let user = user.clone();
        self.look(move |connection| query::neighbours(connection, &user, &names, limit))
            .await
    }

    /// Names that are close to this one in the alphabet: `limit` from it on, itself first if it is known, then as many
    /// before it.
    pub async fn near(
        &self,
        user: &UserId,
        noun: Noun,
        name: Name,
        limit: usize,
    ) -> Result<Vec<Name>, StoreError> {
        let user = user.clone();
        self.look(move |connection| query::near(connection, &user, (noun, &name), limit))
            .await
    }

    /// How much there is. It counts, so it takes longer the more there is.
    pub async fn count(&self, user: &UserId) -> Result<GraphSize, StoreError> {
        let user = user.clone();
        self.look(move |connection| query::size(connection, &user))
            .await
    }

    /// Deletes everything of a user, a portion at a time, and gives the number of facts that are gone.
    pub async fn forget_user(&self, user: &UserId) -> Result<u64, StoreError> {
        let mut facts = 0;
        loop {
            let user = user.clone();
            let change = move |connection: &Connection| forget::user(connection, &user);
            let portion = self.store.writer.change(change).await?;
            facts += portion.facts;
            if !portion.more {
                return Ok(facts);
            }
        }
    }

    /// Deletes the facts whose word is this source's, trusted or not, with the entities and predicates that only they
    /// knew, a portion at a time. Gives the number of facts that are gone.
    pub async fn forget_source(&self, user: &UserId, source: &str) -> Result<u64, StoreError> {
        let mut facts = 0;
        loop {
            let (user, source) = (user.clone(), source.to_owned());
            let change = move |connection: &Connection| forget::source(connection, &user, &source);
            let portion = self.store.writer.change(change).await?;
            facts += portion.facts;
            if !portion.more {
                return Ok(facts);
            }
        }
    }

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
        self.store
            .readers
            .read(move |reader| at_one_moment(reader.connection))
            .await
    }
}
