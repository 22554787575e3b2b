//! The breadth-first walk along facts, on ids only.
//!
//! The walker asks for the edges of one entity after another and decides which to take, so its work is bounded by its limits, not
//! by the size of the graph.

use super::{MAX_FACTS, Name, Truncation, Walk, WalkLimits};
use crate::backend::records;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use lango_core::Text;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Maximum number of edges of one entity that are inspected in each direction. It is reached only if most edges do not match.
const MAX_INSPECTED_PER_ENTITY: usize = 2_000;

/// Maximum number of edges that one walk inspects.
const MAX_INSPECTED: usize = 20_000;

pub(super) struct Walker {
    kinds: HashSet<String>,
    limits: WalkLimits,
    pub start: i64,
    /// Facts with their depth, in the order of the walk.
    pub found: Vec<(usize, i64)>,
    /// The same facts, for lookups.
    seen: HashSet<i64>,
    /// Entities that have been followed or will be.
    visited: HashSet<i64>,
    /// Entities to follow, with their distance from the start.
    queue: VecDeque<(i64, usize)>,
    /// For each inspected entity, whether it has one of the wanted types.
    matching: HashMap<i64, bool>,
    /// Entities with more edges than were taken.
    pub hubs: Vec<i64>,
    inspected: usize,
    /// The truncation so far, without the names of the hubs.
    pub truncation: Truncation,
}

/// A fact that leads from one entity to another.
#[derive(Clone)]
pub(super) struct Edge {
    pub fact: i64,
    /// The entity at the other end.
    pub far: i64,
    /// The type of that entity, if the walk filters by type.
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
                depth: walk.limits.depth.min(WalkLimits::MAX_DEPTH),
                facts: walk.limits.facts.min(MAX_FACTS),
                ..walk.limits
            },
            start,
            found: Vec::new(),
            seen: HashSet::new(),
            visited: HashSet::from_iter([start]),
            queue: VecDeque::from([(start, 0)]),
            matching: HashMap::new(),
            hubs: Vec::new(),
            inspected: 0,
            truncation: Truncation::default(),
        }
    }

    /// Returns the entity to follow next, and the depth of its facts.
    pub(super) fn next(&mut self) -> Option<(i64, usize)> {
        while let Some((entity, distance)) = self.queue.pop_front() {
            if distance < self.limits.depth {
                return Some((entity, distance + 1));
            }
            self.truncation.not_followed += 1;
        }
        None
    }

    /// Returns entities that will be followed soon, so that their edges can be fetched together.
    pub(super) fn ahead(&self) -> impl Iterator<Item = i64> {
        let followed = |(_, distance): &&(i64, usize)| *distance < self.limits.depth;
        self.queue
            .iter()
            .filter(followed)
            .map(|(entity, _)| *entity)
    }

    /// Returns the limits for one entity in one direction.
    pub(super) fn quota(&self, entity: i64) -> Quota {
        let edges = if entity == self.start {
            self.limits.facts
        } else {
            self.limits.facts_per_entity
        };
        Quota {
            edges,
            inspections: MAX_INSPECTED_PER_ENTITY,
            is_spent: false,
        }
    }

    /// Takes edges of an entity until its quota is spent. A break ends the walk.
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
        if self.inspected == MAX_INSPECTED {
            self.truncation.work = true;
            return ControlFlow::Break(());
        }
        if quota.inspections == 0 {
            quota.is_spent = true;
            return ControlFlow::Continue(());
        }
        self.inspected += 1;
        quota.inspections -= 1;
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
        let is_wanted = |kind: &Text| kinds.contains(&Name::from_stored(kind.clone()).key());
        *self
            .matching
            .entry(edge.far)
            .or_insert_with(|| edge.kind.as_ref().is_some_and(is_wanted))
    }
}

/// The remaining limits for one entity in one direction.
pub(super) struct Quota {
    /// Number of edges that may still be taken.
    pub edges: usize,
    /// Number of edges that may still be inspected.
    pub inspections: usize,
    /// Whether there are more edges than the limits allow.
    pub is_spent: bool,
}
