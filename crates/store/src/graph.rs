//! The knowledge graph: facts about entities, with their sources and the time during which they are valid.
//!
//! A fact is a subject, a predicate and an object, such as `Ada -wrote-> Notes`. Names are stored once and facts refer to them by
//! id, so a million facts need only a few small indices. Each user has a separate graph.
//!
//! Writes are short transactions that lock the user's row first, so that replicas create nothing twice. Reads see one snapshot
//! and find their rows by key.

mod name;
mod query;
mod relate;
mod statements;
mod traverse;
mod walk;
mod walker;

pub use name::{Name, NameError};
#[cfg(test)]
pub(crate) use statements::{ALL as STATEMENTS, LOOKUPS};
pub use walk::{Direction, Traversal, TraversalStep, Truncation, Walk, WalkLimits};

use crate::backend::records;
use lango_core::{Provenance, Timestamp};

records! {
    Entity { name, kind }
    Fact { subject, predicate, object, source, confidence, created, valid_from, valid_to }
}

/// Maximum number of facts in one result, whatever limit was requested.
pub const MAX_FACTS: usize = 1000;

/// The subject or object of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    pub name: Name,
    /// The type, such as `person`.
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
    pub const FULL: Self = Self(1.0);

    pub const NONE: Self = Self(0.0);

    /// Returns `None` unless `share` is a number from 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

/// A fact to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    /// The type of this entity, if it has one, replaces the stored type.
    pub subject: Entity,
    pub predicate: Name,
    /// The type of this entity, if it has one, replaces the stored type.
    pub object: Entity,
    pub source: Provenance,
    pub confidence: Confidence,
    pub created: Timestamp,
    /// When the fact became true.
    pub valid_from: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub subject: Entity,
    pub predicate: Name,
    pub object: Entity,
    /// The best source that asserts the fact. If it is not trusted, the names are not trusted either.
    pub source: Provenance,
    pub confidence: Confidence,
    /// When the fact was first stored.
    pub created: Timestamp,
    /// When the fact became true.
    pub valid_from: Timestamp,
    /// When the fact ceased to be true, or `None` if it is current.
    pub valid_to: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triple {
    pub subject: Name,
    pub predicate: Name,
    pub object: Name,
}

/// The result of storing a fact.
///
/// A current fact is stored only once, with its best source: a trusted source wins over others, then the higher
/// confidence, then the newer source.
#[derive(Debug, Clone, PartialEq)]
pub enum RelateOutcome {
    New(Fact),
    /// The fact existed and now has this source.
    Confirmed(Fact),
    /// The fact existed with a better source.
    Known(Fact),
}

#[derive(Debug, Clone, PartialEq)]
pub enum EndOutcome {
    Ended(Fact),
    NotFound,
    /// A trusted source asserts the fact, and the caller is not trusted.
    Protected(Fact),
}

/// Selects facts by any of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactQuery {
    /// `None` matches any.
    pub subject: Option<Name>,
    pub predicate: Option<Name>,
    pub object: Option<Name>,
    pub validity: Validity,
    /// Maximum number of facts, up to [`MAX_FACTS`].
    pub limit: usize,
}

/// Selects facts by whether they are current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validity {
    #[default]
    Current,
    /// Current facts, then those that have ended.
    Any,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactPage {
    pub facts: Vec<Fact>,
    /// Whether more facts match than the limit allows.
    pub more: bool,
}

/// The kind of thing that a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    Entity,
    Predicate,
}

impl NameKind {
    fn key_of(self, name: &Name) -> String {
        match self {
            Self::Entity => name.key(),
            Self::Predicate => name.predicate_key(),
        }
    }
}
