//! Walks along facts, over rows.
//!
//! The first edges of many entities are fetched at once where a statement costs a round trip. The remaining edges of an entity
//! are fetched only if most of the first ones do not match. Whole facts are read at the end.

use super::query::{entities, entity_id, facts, predicate_id, user_id};
use super::statements::{EDGES_IN, EDGES_IN_WITH, EDGES_OUT, EDGES_OUT_WITH};
use super::walker::{Edge, Quota, WalkResult, Walker};
use super::{Direction, Step, Traversal, Walk};
use crate::engine::{Failure, Sql, Tx, Value, values};
use lango_core::UserId;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Entities whose edges are fetched together from a remote database.
const FETCHED_TOGETHER: usize = 32;

/// Edges of an entity that are fetched beyond its quota, because some lead back.
const SPARE: usize = 32;

/// Walks from the start; returns nothing if there is no such entity.
pub(super) async fn traverse(
    tx: &mut Tx<'_>,
    user: &UserId,
    walk: &Walk,
) -> Result<Option<Traversal>, Failure> {
    let Some(user) = user_id(tx, user).await? else {
        return Ok(None);
    };
    let Some(start) = entity_id(tx, user, &walk.start).await? else {
        return Ok(None);
    };
    let predicates = predicates(tx, user, walk).await?;
    let (out, in_) = match predicates {
        None => (EDGES_OUT, EDGES_IN),
        Some(_) => (EDGES_OUT_WITH, EDGES_IN_WITH),
    };
    let statements = match walk.direction {
        Direction::Out => vec![out],
        Direction::In => vec![in_],
        Direction::Both => vec![out, in_],
    };
    let mut edges = Edges {
        tx,
        has_kinds: !walk.kinds.is_empty(),
        predicates,
        directions: statements.into_iter().map(Fetched::new).collect(),
    };
    let mut walker = Walker::new(start, walk);
    'walk: while let Some((entity, depth)) = walker.next() {
        for direction in 0..edges.directions.len() {
            let followed = edges
                .follow(&mut walker, (entity, depth), direction)
                .await?;
            if followed.is_break() {
                break 'walk;
            }
        }
    }
    read(edges.tx, walker.finish()).await.map(Some)
}

/// The predicates to follow, sorted; nothing for all of them.
async fn predicates(tx: &mut Tx<'_>, user: i64, walk: &Walk) -> Result<Option<Vec<i64>>, Failure> {
    if walk.predicates.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    for name in &walk.predicates {
        ids.extend(predicate_id(tx, user, name).await?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// Fetches the edges that a walk needs.
struct Edges<'a, 'c> {
    tx: &'a mut Tx<'c>,
    /// Whether the walk needs the types of far entities.
    has_kinds: bool,
    predicates: Option<Vec<i64>>,
    directions: Vec<Fetched>,
}

/// Edges in one direction that were fetched ahead.
struct Fetched {
    statement: Sql,
    /// By near entity.
    edges: HashMap<i64, Vec<Edge>>,
    /// The limit they were fetched with.
    limit: usize,
}

impl Fetched {
    fn new(statement: Sql) -> Self {
        Self {
            statement,
            edges: HashMap::new(),
            limit: 0,
        }
    }
}

impl Edges<'_, '_> {
    /// Takes the edges of one entity in one direction.
    async fn follow(
        &mut self,
        walker: &mut Walker,
        (entity, depth): (i64, usize),
        direction: usize,
    ) -> Result<ControlFlow<()>, Failure> {
        let mut quota = walker.quota(entity);
        let (first, are_all) = self.first(walker, entity, direction, &quota).await?;
        let taken = first.len();
        let followed = walker.take_all((entity, depth), &mut quota, first);
        if are_all || quota.is_spent || followed.is_break() {
            return Ok(followed);
        }
        let limit = taken + quota.looks + 1;
        let mut rest = self.fetch(&[entity], direction, limit).await?;
        let rest = rest.remove(&entity).unwrap_or_default();
        let rest = rest.into_iter().skip(taken);
        Ok(walker.take_all((entity, depth), &mut quota, rest))
    }

    /// The first edges of an entity, and whether those are all.
    async fn first(
        &mut self,
        walker: &Walker,
        entity: i64,
        direction: usize,
        quota: &Quota,
    ) -> Result<(Vec<Edge>, bool), Failure> {
        let limit = (quota.edges + SPARE).min(quota.looks + 1);
        if !self.tx.is_remote() {
            let mut fetched = self.fetch(&[entity], direction, limit).await?;
            let first = fetched.remove(&entity).unwrap_or_default();
            let are_all = first.len() < limit;
            return Ok((first, are_all));
        }
        if !self.directions[direction].edges.contains_key(&entity) {
            let others = walker.ahead().take(FETCHED_TOGETHER - 1);
            let together: Vec<i64> = std::iter::once(entity).chain(others).collect();
            let mut edges = self.fetch(&together, direction, limit).await?;
            for entity in together {
                edges.entry(entity).or_default();
            }
            self.directions[direction].edges = edges;
            self.directions[direction].limit = limit;
        }
        let fetched = &mut self.directions[direction];
        let first = fetched.edges.remove(&entity).unwrap_or_default();
        let are_all = first.len() < fetched.limit;
        Ok((first, are_all))
    }

    /// Up to so many edges of each entity, in the order in which they are followed.
    async fn fetch(
        &mut self,
        near: &[i64],
        direction: usize,
        limit: usize,
    ) -> Result<HashMap<i64, Vec<Edge>>, Failure> {
        let statement = self.directions[direction].statement;
        let near: Vec<_> = near.iter().map(|entity| [Value::Int(*entity)]).collect();
        let shared = values![limit, self.has_kinds, self.predicates];
        let shared = match self.predicates {
            None => &shared[..2],
            Some(_) => shared,
        };
        let mut edges: HashMap<i64, Vec<Edge>> = HashMap::new();
        self.tx
            .batch(statement, shared, &near, |row| {
                let edge = Edge {
                    fact: row.get(1)?,
                    far: row.get(2)?,
                    kind: row.get(3)?,
                };
                edges.entry(row.get(0)?).or_default().push(edge);
                Ok(())
            })
            .await?;
        Ok(edges)
    }
}

/// Reads the facts of a walk.
async fn read(tx: &mut Tx<'_>, walked: WalkResult) -> Result<Traversal, Failure> {
    let ids: Vec<i64> = walked.found.iter().map(|(_, id)| *id).collect();
    let facts = facts(tx, &ids).await?;
    let depths = walked.found.iter().map(|(depth, _)| *depth);
    let steps = depths.zip(facts).map(|(depth, fact)| Step { depth, fact });
    let mut truncation = walked.truncation;
    for hub in entities(tx, &walked.hubs).await? {
        truncation.hubs.push(hub.name);
    }
    let start = entities(tx, &[walked.start]).await?.pop();
    Ok(Traversal {
        start: start.ok_or_else(|| Failure::other("the start of a walk does not exist"))?,
        steps: steps.collect(),
        truncation,
    })
}
