//! The walk along facts: breadth first, over ids alone.
//!
//! It asks for the edges of one entity after the other and decides which are taken, so that its work is bounded by its
//! limits, not by the size of the graph.

use super::{MOST_FACTS, Name, Truncation, Walk, WalkLimits};
use crate::engine::records;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use lango_core::Text;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Edges of one entity that are looked at in each direction; more only matter where most do not match.
const MOST_LOOKED_AT_PER_ENTITY: usize = 2_000;

/// Edges that one walk looks at.
const MOST_LOOKED_AT: usize = 20_000;

pub(super) struct Walker {
    kinds: HashSet<String>,
    limits: WalkLimits,
    pub start: i64,
    /// Facts with their depth, in the order of the walk.
    pub found: Vec<(usize, i64)>,
    /// The same facts.
    seen: HashSet<i64>,
    /// Entities that were or will be followed.
    visited: HashSet<i64>,
    /// Entities to follow, with their distance from the start.
    queue: VecDeque<(i64, usize)>,
    /// Whether an entity has one of the wanted types.
    matching: HashMap<i64, bool>,
    /// Entities with more edges than were taken.
    pub hubs: Vec<i64>,
    looked_at: usize,
    /// Without the names of the hubs.
    pub truncation: Truncation,
}

/// A fact that leads on from an entity.
#[derive(Clone)]
pub(super) struct Edge {
    pub fact: i64,
    /// The entity at its other end.
    pub far: i64,
    /// The type of that, if types matter.
    pub kind: Option<Text>,
}

records! {
    Edge { fact, far, kind }
}

impl Walker {
    pub(super) fn new(start: i64, walk: &Walk) -> Self {
        Self {
            kinds: walk.kinds.iter().map(Name::key).collect(),
            limits: WalkLimits {
                depth: walk.limits.depth.min(WalkLimits::MOST_DEPTH),
                facts: walk.limits.facts.min(MOST_FACTS),
                ..walk.limits
            },
            start,
            found: Vec::new(),
            seen: HashSet::new(),
            visited: HashSet::from_iter([start]),
            queue: VecDeque::from([(start, 0)]),
            matching: HashMap::new(),
            hubs: Vec::new(),
            looked_at: 0,
            truncation: Truncation::default(),
        }
    }

    /// The entity to follow next, in each direction, and how far from the start its edges lead.
    pub(super) fn next(&mut self) -> Option<(i64, usize)> {
        while let Some((entity, distance)) = self.queue.pop_front() {
            if distance < self.limits.depth {
                return Some((entity, distance + 1));
            }
            self.truncation.not_followed += 1;
        }
        None
    }

    /// Entities that will be followed soon, so that their edges can be fetched together.
    pub(super) fn ahead(&self) -> impl Iterator<Item = i64> {
        let followed = |(_, distance): &&(i64, usize)| *distance < self.limits.depth;
        self.queue
            .iter()
            .filter(followed)
            .map(|(entity, _)| *entity)
    }

    /// What may be taken from one entity in one direction.
    pub(super) fn quota(&self, entity: i64) -> Quota {
        let edges = if entity == self.start {
            self.limits.facts
        } else {
            self.limits.facts_per_entity
        };
        Quota {
            edges,
            looks: MOST_LOOKED_AT_PER_ENTITY,
            is_spent: false,
        }
    }

    /// Takes edges of an entity until its quota is spent. The walk is over at a break.
    pub(super) fn take_all(
        &mut self,
        (entity, depth): (i64, usize),
        quota: &mut Quota,
        edges: impl IntoIterator<Item = Edge>,
    ) -> ControlFlow<()> {
        for edge in edges {
            self.take(edge, depth, quota)?;
            if quota.is_spent {
                if self.hubs.last() != Some(&entity) {
                    self.hubs.push(entity);
                }
                break;
            }
        }
        ControlFlow::Continue(())
    }

    fn take(&mut self, edge: Edge, depth: usize, quota: &mut Quota) -> ControlFlow<()> {
        if self.looked_at == MOST_LOOKED_AT {
            self.truncation.work = true;
            return ControlFlow::Break(());
        }
        if quota.looks == 0 {
            quota.is_spent = true;
            return ControlFlow::Continue(());
        }
        self.looked_at += 1;
        quota.looks -= 1;
        if self.seen.contains(&edge.fact) || !self.matches(&edge) {
            return ControlFlow::Continue(());
        }
        if self.found.len() == self.limits.facts {
            self.truncation.facts = true;
            return ControlFlow::Break(());
        }
        if quota.edges == 0 {
            quota.is_spent = true;
            return ControlFlow::Continue(());
        }
        quota.edges -= 1;
        self.seen.insert(edge.fact);
        self.found.push((depth, edge.fact));
        if self.visited.insert(edge.far) {
            self.queue.push_back((edge.far, depth));
        }
        ControlFlow::Continue(())
    }

    fn matches(&mut self, edge: &Edge) -> bool {
        if self.kinds.is_empty() {
            return true;
        }
        let kinds = &self.kinds;
        let is_wanted = |kind: &Text| kinds.contains(&Name::stored(kind.clone()).key());
        *self
            .matching
            .entry(edge.far)
            .or_insert_with(|| edge.kind.as_ref().is_some_and(is_wanted))
    }
}

/// What may still be taken from one entity in one direction.
pub(super) struct Quota {
    /// Edges that may be taken.
    pub edges: usize,
    /// Edges that may be looked at.
    pub looks: usize,
    /// Whether there is more than may be taken.
    pub is_spent: bool,
}
