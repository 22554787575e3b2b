//! The walk along facts: breadth first, over numbers alone.
//!
//! It asks for the facts of one entity after the other and decides which are taken, so that its work is bounded by its
//! limits, not by how much there is. Where the facts come from is for the database.

use super::{Cuts, Name, Walk, WalkLimits};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;

/// How many facts of one entity are looked at each way; more only matter where most do not fit.
const MOST_LOOKED_AT_PER_ENTITY: usize = 2_000;

/// How many facts one walk looks at.
const MOST_LOOKED_AT: usize = 20_000;

/// A walk under way.
pub(crate) struct Walker {
    kinds: HashSet<String>,
    limits: WalkLimits,
    start: i64,
    /// Facts with their depth.
    found: Vec<(usize, i64)>,
    /// The same facts.
    seen: HashSet<i64>,
    /// Entities that were or will be followed.
    visited: HashSet<i64>,
    /// Entities to be followed, with their distance from the start.
    queue: VecDeque<(i64, usize)>,
    /// Whether an entity is of a type that is wanted.
    fitting: HashMap<i64, bool>,
    hubs: Vec<i64>,
    looked_at: usize,
    cuts: Cuts,
}

/// A fact that leads on from an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The fact.
    pub fact: i64,
    /// The entity at its other end.
    pub far: i64,
}

/// What a walk found, in numbers.
pub(crate) struct Walked {
    /// Where it started.
    pub start: i64,
    /// Facts with their depth, in the order of finding.
    pub found: Vec<(usize, i64)>,
    /// Entities with more facts than were taken from them.
    pub hubs: Vec<i64>,
    /// What was left out; without the names of the hubs.
    pub cuts: Cuts,
}

impl Walker {
    /// A walk from this entity.
    pub(crate) fn new(start: i64, walk: &Walk) -> Self {
        Self {
            kinds: walk.kinds.iter().map(Name::key).collect(),
            limits: walk.limits.within_bounds(),
            start,
            found: Vec::new(),
            seen: HashSet::new(),
            visited: HashSet::from([start]),
            queue: VecDeque::from([(start, 0)]),
            fitting: HashMap::new(),
            hubs: Vec::new(),
            looked_at: 0,
            cuts: Cuts::default(),
        }
    }

    /// The entity whose facts are to be followed next, each way, and how far from the start those lead.
    pub(crate) fn next(&mut self) -> Option<(i64, usize)> {
        while let Some((entity, distance)) = self.queue.pop_front() {
            if distance < self.limits.depth {
                return Some((entity, distance + 1));
            }
            self.cuts.not_followed += 1;
        }
        None
    }

    /// Entities that will be followed soon, so that their facts can be fetched together.
    pub(crate) fn ahead(&self) -> impl Iterator<Item = i64> {
        let followed = |(_, distance): &&(i64, usize)| *distance < self.limits.depth;
        self.queue
            .iter()
            .filter(followed)
            .map(|(entity, _)| *entity)
    }

    /// What may be taken from one entity, one way.
    pub(crate) fn share(&self, entity: i64) -> Share {
        let facts = if entity == self.start {
            self.limits.facts
        } else {
            self.limits.facts_per_entity
        };
        Share {
            facts,
            looks: MOST_LOOKED_AT_PER_ENTITY,
            is_spent: false,
        }
    }

    /// Takes a fact of an entity, or passes it over. `kind` says of what type the far entity is; it is asked at most once for
    /// an entity, and only where types matter. The walk is over at a break.
    pub(crate) fn take<E>(
        &mut self,
        edge: Edge,
        depth: usize,
        share: &mut Share,
        kind: impl FnOnce(i64) -> Result<Option<Name>, E>,
    ) -> Result<ControlFlow<()>, E> {
        if self.looked_at == MOST_LOOKED_AT {
            self.cuts.work = true;
            return Ok(ControlFlow::Break(()));
        }
        if share.looks == 0 {
            share.is_spent = true;
            return Ok(ControlFlow::Continue(()));
        }
        self.looked_at += 1;
        share.looks -= 1;
        if self.seen.contains(&edge.fact) || !self.fits(edge.far, kind)? {
            return Ok(ControlFlow::Continue(()));
        }
        if self.found.len() == self.limits.facts {
            self.cuts.facts = true;
            return Ok(ControlFlow::Break(()));
        }
        if share.facts == 0 {
            share.is_spent = true;
            return Ok(ControlFlow::Continue(()));
        }
        share.facts -= 1;
        self.seen.insert(edge.fact);
        self.found.push((depth, edge.fact));
        if self.visited.insert(edge.far) {
            self.queue.push_back((edge.far, depth));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// An entity has more than may be taken from it one way.
    pub(crate) fn leave(&mut self, entity: i64) {
        if self.hubs.last() != Some(&entity) {
            self.hubs.push(entity);
        }
    }

    /// What was found.
    pub(crate) fn finish(self) -> Walked {
        Walked {
            start: self.start,
            found: self.found,
            hubs: self.hubs,
            cuts: self.cuts,
        }
    }

    fn fits<E>(
        &mut self,
        entity: i64,
        kind: impl FnOnce(i64) -> Result<Option<Name>, E>,
    ) -> Result<bool, E> {
        if self.kinds.is_empty() {
            return Ok(true);
        }
        if let Some(fits) = self.fitting.get(&entity) {
            return Ok(*fits);
        }
        let fits = kind(entity)?.is_some_and(|kind| self.kinds.contains(&kind.key()));
        self.fitting.insert(entity, fits);
        Ok(fits)
    }
}

/// What may still be taken from one entity, one way.
pub(crate) struct Share {
    /// Facts that may be taken.
    pub facts: usize,
    /// Facts that may be looked at.
    pub looks: usize,
    /// Whether there is more than may be taken.
    pub is_spent: bool,
}
