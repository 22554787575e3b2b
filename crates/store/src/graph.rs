//! The words of the graph: facts about entities, where they came from and how long they hold.
//!
//! A fact is a subject, a predicate and an object, such as `Ada -wrote-> Notes`. This says what can be asked and what
//! comes back; [`GraphRows`] does it.

mod name;
mod rows;
mod walk;
mod walker;
mod word;

pub use name::{Name, NameError};
pub use rows::GraphRows;
pub use walk::{Cuts, Direction, Step, Traversal, Walk, WalkLimits};
pub(crate) use walker::{Edge, Share, Walked, Walker};
pub(crate) use word::{MOST_NAMES, Word, in_turn};

use lango_core::{Source, Timestamp};

/// The most facts that one answer holds, whatever was asked for.
pub const MOST_FACTS: usize = 1000;

/// What a fact is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its name, as it was first written.
    pub name: Name,
    /// What it is, such as `person`.
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
    /// Sure.
    pub const FULL: Self = Self(1.0);

    /// Not at all sure.
    pub const NONE: Self = Self(0.0);

    /// Nothing unless it is a number from 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A fact to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    /// Of what it tells. A type that is given replaces the one that is known.
    pub subject: Entity,
    /// What it tells.
    pub predicate: Name,
    /// The other end. A type that is given replaces the one that is known.
    pub object: Entity,
    /// Who says so.
    pub source: Source,
    /// How sure they are.
    pub confidence: Confidence,
    /// When it is kept.
    pub created: Timestamp,
    /// Since when it holds.
    pub valid_from: Timestamp,
}

/// A fact that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Of what it tells.
    pub subject: Entity,
    /// What it tells.
    pub predicate: Name,
    /// The other end.
    pub object: Entity,
    /// Whose word is kept for it. If they are not trusted, neither are the names.
    pub source: Source,
    /// How sure they are.
    pub confidence: Confidence,
    /// When it was first kept.
    pub created: Timestamp,
    /// Since when it holds.
    pub valid_from: Timestamp,
    /// Until when it held; nothing while it holds.
    pub valid_to: Option<Timestamp>,
}

/// The three names of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triple {
    /// Of what it tells.
    pub subject: Name,
    /// What it tells.
    pub predicate: Name,
    /// The other end.
    pub object: Name,
}

/// What keeping a fact changed.
///
/// One that holds already is not kept twice. It keeps the best word for it: a trusted source's before any other, then
/// the surer one, then the newer one.
#[derive(Debug, Clone, PartialEq)]
pub enum Related {
    /// It was not known.
    New(Fact),
    /// It was, and now has this source.
    Confirmed(Fact),
    /// It was, from a better source.
    Known(Fact),
}

/// What ending a fact changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// It does not hold any more.
    Over(Fact),
    /// No such fact holds.
    Unknown,
    /// It is a trusted source's, and the one who would end it is not trusted.
    Protected(Fact),
}

/// Which facts are looked for; whatever is bound must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactQuery {
    /// Of what they tell.
    pub subject: Option<Name>,
    /// What they tell.
    pub predicate: Option<Name>,
    /// The other end.
    pub object: Option<Name>,
    /// Of which time.
    pub when: When,
    /// How many at most, up to [`MOST_FACTS`].
    pub limit: usize,
}

/// Of which time facts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// They hold.
    #[default]
    Now,
    /// They hold or held; those that hold come first.
    Ever,
}

/// Facts that were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The facts, in an order that does not change by itself.
    pub facts: Vec<Fact>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// What can have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    /// A subject or an object.
    Entity,
    /// A predicate.
    Predicate,
}

/// How much a user's graph holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GraphSize {
    /// Facts that hold.
    pub facts: u64,
    /// Facts that held.
    pub ended: u64,
    /// Entities.
    pub entities: u64,
}
