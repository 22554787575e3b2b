//! The seam to the facts: each user's own graph, which nobody else sees.
//!
//! What is written is written in short transactions; what is read is read as of one moment, by key.

use super::{
    Ended, Fact, FactQuery, Found, GraphSize, Name, NewFact, Noun, Related, Traversal, Triple, Walk,
};
use crate::database::Answer;
use lango_core::{Timestamp, Trust, UserId};

/// The facts of all users in a database. Every method sees the facts of one user only.
pub trait GraphRows: Send + Sync {
    /// Keeps a fact. See [`Related`] for one that holds already.
    fn relate(&self, user: &UserId, fact: NewFact) -> Answer<'_, Related>;

    /// Keeps many facts, a portion at a time, and gives how many of them were new. If it fails, or is not waited for,
    /// the portions before are kept; keeping all again does no harm.
    fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Answer<'_, u64>;

    /// Ends a fact: it stays, and is known to have held until `at`. Only somebody trusted ends what a trusted source
    /// said.
    fn end(&self, user: &UserId, triple: Triple, by: Trust, at: Timestamp) -> Answer<'_, Ended>;

    /// The facts that fit.
    fn query(&self, user: &UserId, query: FactQuery) -> Answer<'_, Found>;

    /// The facts around an entity, the nearest first; nothing if there is no such entity. Each fact is found once, and
    /// each entity followed once, whatever circles there are.
    fn traverse(&self, user: &UserId, walk: Walk) -> Answer<'_, Option<Traversal>>;

    /// Facts of the entities with these names, a fair share of each. Names that nothing has are passed over, and so
    /// are those after the first 256.
    fn neighbours(&self, user: &UserId, names: Vec<Name>, limit: usize) -> Answer<'_, Vec<Fact>>;

    /// Names that are close to this one in the alphabet: `limit` from it on, itself first if it is known, then as many
    /// before it.
    fn near(&self, user: &UserId, noun: Noun, name: Name, limit: usize) -> Answer<'_, Vec<Name>>;

    /// How much there is. It counts, so it takes longer the more there is.
    fn count(&self, user: &UserId) -> Answer<'_, GraphSize>;

    /// Deletes everything of a user, a portion at a time, and gives the number of facts that are gone.
    fn forget_user(&self, user: &UserId) -> Answer<'_, u64>;

    /// Deletes the facts whose word is this source's, trusted or not, with the entities and predicates that only they
    /// knew, a portion at a time. Gives the number of facts that are gone.
    fn forget_source(&self, user: &UserId, source: &str) -> Answer<'_, u64>;
}
