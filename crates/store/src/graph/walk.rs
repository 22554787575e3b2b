//! A walk along facts: where it starts, how far it goes, and its result.

use super::{Entity, Fact, Name};

/// A walk from one entity to those around it, the nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    pub start: Name,
    pub direction: Direction,
    /// Only facts with one of these predicates are followed; all if there are none.
    pub predicates: Vec<Name>,
    /// Only facts that lead to an entity of one of these types are followed; all if there are none.
    pub kinds: Vec<Name>,
    pub limits: WalkLimits,
}

/// Which way facts are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From subject to object.
    Out,
    /// From object to subject.
    In,
    #[default]
    Both,
}

/// How far a walk goes. Values beyond the hard limits are lowered to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLimits {
    /// How many facts lie between the start and the farthest entity; up to [`Self::MOST_DEPTH`].
    pub depth: usize,
    /// How many facts are found; up to [`MOST_FACTS`](super::MOST_FACTS).
    pub facts: usize,
    /// How many of them are taken each way from one entity that is not the start, so that a hub on the way does not
    /// crowd out everything else.
    pub facts_per_entity: usize,
}

impl WalkLimits {
    pub const MOST_DEPTH: usize = 6;

    /// Limits of this depth and size. Each entity on the way gets a quarter of the facts at most.
    pub fn new(depth: usize, facts: usize) -> Self {
        Self {
            depth,
            facts,
            facts_per_entity: facts.div_ceil(4),
        }
    }
}

impl Default for WalkLimits {
    fn default() -> Self {
        Self::new(3, 100)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Traversal {
    pub start: Entity,
    /// The facts on the way, each once, the nearest first, in a stable order.
    pub steps: Vec<Step>,
    pub truncation: Truncation,
}

/// One fact on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// How far from the start it leads: 1 for the facts of the start itself.
    pub depth: usize,
    pub fact: Fact,
}

/// What a walk left out, by the limit that stopped it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncation {
    /// It reached the requested number of facts, and there are more.
    pub facts: bool,
    /// It looked at as many facts as one walk may, most of which did not match.
    pub work: bool,
    /// Entities with more facts than were taken from them.
    pub hubs: Vec<Name>,
    /// How many entities lie at the greatest depth, so that their own facts were not looked at.
    pub not_followed: usize,
}

impl Truncation {
    /// Whether nothing within the depth is missing.
    pub fn is_complete(&self) -> bool {
        !self.facts && !self.work && self.hubs.is_empty()
    }
}
