//! The walk along facts: breadth first, over numbers alone.
//!
//! It reads the two indices of what holds and, if types matter, the entities it comes to. Only the facts that it found
//! are read whole, at the end. So its work is bounded by its limits, not by how much there is.

use super::facts::{entity, entity_id, fact, predicate_id, user_id};
use super::statements::{EDGES_IN, EDGES_IN_WITH, EDGES_OUT, EDGES_OUT_WITH, ENTITY_BY_ID};
use crate::graph::{Cuts, Direction, Name, Step, Traversal, Walk, WalkLimits};
use crate::sqlite::failure::Failure;
use lango_core::{Text, UserId};
use rusqlite::Connection;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;

/// How many facts of one entity are looked at each way; more only matter where most do not fit.
const MOST_LOOKED_AT_PER_ENTITY: usize = 2_000;

/// How many facts one walk looks at.
const MOST_LOOKED_AT: usize = 20_000;

/// Walks; gives nothing if there is no such start.
pub(super) fn traverse(
    connection: &Connection,
    user: &UserId,
    walk: &Walk,
) -> Result<Option<Traversal>, Failure> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(None);
    };
    let Some(start) = entity_id(connection, user, &walk.start)? else {
        return Ok(None);
    };
    let predicates = if walk.predicates.is_empty() {
        Predicates::All
    } else {
        let ids = walk
            .predicates
            .iter()
            .filter_map(|name| predicate_id(connection, user, name).transpose());
        let mut ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
        ids.sort_unstable();
        ids.dedup();
        Predicates::Some(ids)
    };
    let mut walker = Walker {
        connection,
        direction: walk.direction,
        predicates,
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
    };
    walker.walk()?;
    walker.finish().map(Some)
}

enum Predicates {
    All,
    Some(Vec<i64>),
}

struct Walker<'a> {
    connection: &'a Connection,
    direction: Direction,
    predicates: Predicates,
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

impl Walker<'_> {
    fn walk(&mut self) -> Result<(), Failure> {
        while let Some((entity, distance)) = self.queue.pop_front() {
            if distance == self.limits.depth {
                self.cuts.not_followed += 1;
            } else if self.follow(entity, distance + 1)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the facts of one entity, each way.
    fn follow(&mut self, entity: i64, depth: usize) -> Result<ControlFlow<()>, Failure> {
        let ways: &[(&str, &str)] = match self.direction {
            Direction::Out => &[(EDGES_OUT, EDGES_OUT_WITH)],
            Direction::In => &[(EDGES_IN, EDGES_IN_WITH)],
            Direction::Both => &[(EDGES_OUT, EDGES_OUT_WITH), (EDGES_IN, EDGES_IN_WITH)],
        };
        for (all, with_predicate) in ways {
            let mut share = Share::of(self, entity);
            let predicates = match &self.predicates {
                Predicates::All => vec![None],
                Predicates::Some(ids) => ids.iter().copied().map(Some).collect(),
            };
            for predicate in predicates {
                let mut statement = match predicate {
                    None => self.connection.prepare_cached(all)?,
                    Some(_) => self.connection.prepare_cached(with_predicate)?,
                };
                let mut rows = match predicate {
                    None => statement.query([entity])?,
                    Some(predicate) => statement.query([entity, predicate])?,
                };
                while let Some(row) = rows.next()? {
                    let edge = (row.get(0)?, row.get(1)?);
                    match self.take(edge, depth, &mut share)? {
                        Taken::Next => {}
                        Taken::EntityDone => break,
                        Taken::WalkDone => return Ok(ControlFlow::Break(())),
                    }
                }
                if share.is_spent {
                    self.hubs.push(entity);
                    break;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn take(
        &mut self,
        (fact, far): (i64, i64),
        depth: usize,
        share: &mut Share,
    ) -> Result<Taken, Failure> {
        if self.looked_at == MOST_LOOKED_AT {
            self.cuts.work = true;
            return Ok(Taken::WalkDone);
        }
        if share.looks == 0 {
            share.is_spent = true;
            return Ok(Taken::EntityDone);
        }
        self.looked_at += 1;
        share.looks -= 1;
        if self.seen.contains(&fact) || !self.fits(far)? {
            return Ok(Taken::Next);
        }
        if self.found.len() == self.limits.facts {
            self.cuts.facts = true;
            return Ok(Taken::WalkDone);
        }
        if share.facts == 0 {
            share.is_spent = true;
            return Ok(Taken::EntityDone);
        }
        share.facts -= 1;
        self.seen.insert(fact);
        self.found.push((depth, fact));
        if self.visited.insert(far) {
            self.queue.push_back((far, depth));
        }
        Ok(Taken::Next)
    }

    fn fits(&mut self, entity: i64) -> Result<bool, Failure> {
        if self.kinds.is_empty() {
            return Ok(true);
        }
        if let Some(fits) = self.fitting.get(&entity) {
            return Ok(*fits);
        }
        let kind: Option<Text> = self
            .connection
            .prepare_cached(ENTITY_BY_ID)?
            .query_row([entity], |row| row.get(1))?;
        let fits = kind.is_some_and(|kind| self.kinds.contains(&Name::stored(kind).key()));
        self.fitting.insert(entity, fits);
        Ok(fits)
    }

    /// Reads what was found.
    fn finish(mut self) -> Result<Traversal, Failure> {
        let steps = self.found.iter().map(|(depth, id)| {
            let fact = fact(self.connection, *id)?;
            Ok(Step {
                depth: *depth,
                fact,
            })
        });
        let steps = steps.collect::<Result<_, Failure>>()?;
        self.hubs.dedup();
        for hub in &self.hubs {
            self.cuts.hubs.push(entity(self.connection, *hub)?.name);
        }
        Ok(Traversal {
            start: entity(self.connection, self.start)?,
            steps,
            cuts: self.cuts,
        })
    }
}

/// What may still be taken from one entity, one way.
struct Share {
    facts: usize,
    looks: usize,
    is_spent: bool,
}

impl Share {
    fn of(walker: &Walker<'_>, entity: i64) -> Self {
        let facts = if entity == walker.start {
            walker.limits.facts
        } else {
            walker.limits.facts_per_entity
        };
        Self {
            facts,
            looks: MOST_LOOKED_AT_PER_ENTITY,
            is_spent: false,
        }
    }
}

enum Taken {
    Next,
    EntityDone,
    WalkDone,
}
