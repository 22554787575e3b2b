//! A breadth-first walk along facts: its start, its limits, and its result.

use super::{Entity, Fact, Name};

/// A walk from one entity to those around it, nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    pub start: Name,
    pub direction: Direction,
    /// Follows only facts with one of these predicates, or all facts if this is empty.
    pub predicates: Vec<Name>,
    /// Follows only facts that lead to an entity of one of these types, or all facts if this is empty.
    pub kinds: Vec<Name>,
    pub limits: WalkLimits,
}

/// The direction in which facts are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From subject to object.
    Out,
    /// From object to subject.
    In,
    #[default]
    Both,
}

/// The limits of a walk. Values above the hard limits are lowered to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLimits {
    /// Maximum number of facts between the start and an entity, up to [`Self::MAX_DEPTH`].
    pub depth: usize,
    /// Maximum number of facts in the result, up to [`MAX_FACTS`](super::MAX_FACTS).
    pub facts: usize,
    /// Maximum number of facts taken in each direction from an entity other than the start, so that an entity with many facts does
    /// not crowd out everything else.
    pub facts_per_entity: usize,
}

impl WalkLimits {
    pub const MAX_DEPTH: usize = 6;

    /// Creates limits of this depth and number of facts. Each entity other than the start gets at most a quarter of the facts.
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
    /// The facts that the walk found, without duplicates, nearest first, in a stable order.
    pub steps: Vec<TraversalStep>,
    pub truncation: Truncation,
}

/// A fact that the walk followed.
#[derive(Debug, Clone, PartialEq)]
pub struct TraversalStep {
    /// The distance from the start: 1 for the facts of the start itself.
    pub depth: usize,
    pub fact: Fact,
}

/// What a walk left out, by the limit that caused it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncation {
    /// Whether the walk reached the requested number of facts and there are more.
    pub facts: bool,
    /// Whether the walk reached its limit of inspected facts, most of which did not match.
    pub work: bool,
    /// Entities with more facts than were taken from them.
    pub hubs: Vec<Name>,
    /// Number of entities at the greatest depth, whose own facts were not followed.
    pub not_followed: usize,
}

impl Truncation {
    /// Returns whether no facts within the depth are missing.
    pub fn is_complete(&self) -> bool {
        !self.facts && !self.work && self.hubs.is_empty()
    }
}
