//! The knowledge graph: facts about entities, where they came from and how long they hold.
//!
//! A fact is a subject, a predicate and an object, such as `Ada -wrote-> Notes`. Names are stored once and facts refer to
//! them by id, so that a million facts are a few small indices.

mod forget;
mod name;
mod query;
mod relate;
mod rows;
mod statements;
mod traverse;
mod walk;
mod walker;

pub use name::{Name, NameError};
pub use rows::GraphRows;
#[cfg(test)]
pub(crate) use statements::EVERYDAY;
pub use walk::{Direction, Step, Traversal, Truncation, Walk, WalkLimits};

use lango_core::{Source, Timestamp};

/// The most facts in one answer, whatever limit was requested.
pub const MOST_FACTS: usize = 1000;

/// An end of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its name, as it was first written.
    pub name: Name,
    /// Its type, such as `person`.
    pub kind: Option<Name>,
}

impl From<Name> for Entity {
    fn from(name: Name) -> Self {
        Self { name, kind: None }
    }
}

/// How sure a source is, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// Certain.
    pub const FULL: Self = Self(1.0);

    /// Not sure at all.
    pub const NONE: Self = Self(0.0);

    /// Returns nothing unless it is a number from 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A fact to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    /// A type that is given replaces the known one.
    pub subject: Entity,
    /// Relates the subject to the object.
    pub predicate: Name,
    /// A type that is given replaces the known one.
    pub object: Entity,
    /// Who asserts it.
    pub source: Source,
    /// How sure the source is.
    pub confidence: Confidence,
    /// When it is stored.
    pub created: Timestamp,
    /// Since when it holds.
    pub valid_from: Timestamp,
}

/// A stored fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// The entity it is about.
    pub subject: Entity,
    /// Relates the subject to the object.
    pub predicate: Name,
    /// The other end.
    pub object: Entity,
    /// The best source that asserts it. If that is not trusted, neither are the names.
    pub source: Source,
    /// How sure the source is.
    pub confidence: Confidence,
    /// When it was first stored.
    pub created: Timestamp,
    /// Since when it holds.
    pub valid_from: Timestamp,
    /// Until when it held; nothing while it holds.
    pub valid_to: Option<Timestamp>,
}

/// The three names of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triple {
    /// The entity it is about.
    pub subject: Name,
    /// Relates the subject to the object.
    pub predicate: Name,
    /// The other end.
    pub object: Name,
}

/// The result of storing a fact.
///
/// A fact that holds already is not stored twice. It keeps its best source: a trusted one before any other, then the surer
/// one, then the newer one.
#[derive(Debug, Clone, PartialEq)]
pub enum RelateOutcome {
    /// It was not known.
    New(Fact),
    /// It was known, and now has this source.
    Confirmed(Fact),
    /// It was known from a better source.
    Known(Fact),
}

/// The result of ending a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum EndOutcome {
    /// It does not hold any more.
    Ended(Fact),
    /// No such fact holds.
    NotFound,
    /// A trusted source asserts it, and the caller is not trusted.
    Protected(Fact),
}

/// Selects facts by any of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactQuery {
    /// Any subject if not given.
    pub subject: Option<Name>,
    /// Any predicate if not given.
    pub predicate: Option<Name>,
    /// Any object if not given.
    pub object: Option<Name>,
    /// Whether facts that ended count.
    pub validity: Validity,
    /// How many at most, up to [`MOST_FACTS`].
    pub limit: usize,
}

/// Selects facts by whether they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validity {
    /// Facts that hold.
    #[default]
    Current,
    /// Facts that hold, then those that ended.
    Any,
}

/// Facts that match a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactPage {
    /// In a stable order.
    pub facts: Vec<Fact>,
    /// Whether there are more than the limit.
    pub more: bool,
}

/// What a name can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A subject or an object.
    Entity,
    /// A predicate.
    Predicate,
}

/// The size of a user's graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GraphSize {
    /// Facts that hold.
    pub facts: u64,
    /// Facts that ended.
    pub ended: u64,
    /// Entities.
    pub entities: u64,
}
