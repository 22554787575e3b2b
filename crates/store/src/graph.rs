//! The knowledge graph: facts about entities, where they came from and how long they hold.
//!
//! A fact is a subject, a predicate and an object, such as `Ada -wrote-> Notes`. Names are stored once and facts refer to
//! them by id, so that a million facts are a few small indices. Each user has a graph of their own.
//!
//! Writes are short transactions that lock the user's row first, so that replicas create nothing twice. Reads see one snapshot
//! and find their rows by key.

#![allow(
    missing_docs,
    reason = "most fields say what they are; the others have a comment"
)]

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
pub use walk::{Direction, Step, Traversal, Truncation, Walk, WalkLimits};

use crate::engine::records;
use lango_core::{Source, Timestamp};

records! {
    Entity { name, kind }
    Fact { subject, predicate, object, source, confidence, created, valid_from, valid_to }
}

/// The most facts in one answer, whatever limit was requested.
pub const MOST_FACTS: usize = 1000;

/// An end of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
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
    pub const FULL: Self = Self(1.0);

    pub const NONE: Self = Self(0.0);

    /// Returns `None` unless it is a number from 0 to 1.
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
    /// A type that is given replaces the known one.
    pub subject: Entity,
    pub predicate: Name,
    /// A type that is given replaces the known one.
    pub object: Entity,
    /// Who asserts it.
    pub source: Source,
    pub confidence: Confidence,
    pub created: Timestamp,
    /// Since when it holds.
    pub valid_from: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub subject: Entity,
    pub predicate: Name,
    pub object: Entity,
    /// The best source that asserts it. If that is not trusted, neither are the names.
    pub source: Source,
    pub confidence: Confidence,
    /// When it was first stored.
    pub created: Timestamp,
    /// Since when it holds.
    pub valid_from: Timestamp,
    /// Until when it held; `None` while it holds.
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
/// A fact that holds already is not stored twice. It keeps its best source: a trusted one before any other, then the surer
/// one, then the newer one.
#[derive(Debug, Clone, PartialEq)]
pub enum RelateOutcome {
    New(Fact),
    /// It was known, and now has this source.
    Confirmed(Fact),
    /// It was known from a better source.
    Known(Fact),
}

#[derive(Debug, Clone, PartialEq)]
pub enum EndOutcome {
    Ended(Fact),
    NotFound,
    /// A trusted source asserts it, and the caller is not trusted.
    Protected(Fact),
}

/// Selects facts by any of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactQuery {
    /// `None` selects any.
    pub subject: Option<Name>,
    pub predicate: Option<Name>,
    pub object: Option<Name>,
    pub validity: Validity,
    /// How many at most, up to [`MOST_FACTS`].
    pub limit: usize,
}

/// Selects facts by whether they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validity {
    #[default]
    Current,
    /// Facts that hold, then those that ended.
    Any,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactPage {
    pub facts: Vec<Fact>,
    /// Whether there are more than the limit.
    pub more: bool,
}

/// What a name can stand for.
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
