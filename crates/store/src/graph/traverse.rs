//! Runs a walk on the database.
//!
//! If a statement costs a round trip, the first edges of many entities are fetched together. The remaining edges of an entity are
//! fetched only if most of the first ones do not match. The facts themselves are read at the end.

use super::query::{entities, facts, name_id, rows_of, user_id};
use super::statements as sql;
use super::walker::{Edge, Walker};
use super::{Direction, NameKind, Traversal, TraversalStep, Walk};
use crate::StoreFuture;
use crate::backend::{FromRow as _, Result, Row, Sql, ToValue as _, Tx, bulk_row, work};
use crate::store::Store;
use foldhash::{HashMap, HashMapExt as _};
use lango_core::UserId;
use std::ops::ControlFlow;

impl Store {
    /// Returns the facts around an entity, nearest first, or `None` if the entity does not exist. Each fact is returned once and
    /// each entity followed once, even if there are cycles.
    pub fn traverse(&self, user: &UserId, walk: Walk) -> StoreFuture<'_, Option<Traversal>> {
        let args = (user.clone(), walk);
        work!(self.backend.snapshot(args), |tx, user, walk| {
            let Some(user) = user_id(tx, user).await? else {
                return Ok(None);
            };
            let Some(start) = name_id(tx, user, NameKind::Entity, &walk.start).await? else {
                return Ok(None);
            };
            let predicates = predicates(tx, user, walk).await?;
            let (out, in_) = match predicates {
                None => (sql::EDGES_OUT, sql::EDGES_IN),
                Some(_) => (sql::EDGES_OUT_WITH, sql::EDGES_IN_WITH),
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
                ahead: vec![HashMap::new(); statements.len()],
                statements,
            };
            let mut walker = Walker::new(start, walk);
            'walk: while let Some(entity) = walker.next() {
                for direction in 0..edges.statements.len() {
                    if edges
                        .follow(&mut walker, entity, direction)
                        .await?
                        .is_break()
                    {
                        break 'walk;
                    }
                }
            }
            read(edges.tx, walker).await.map(Some)
        })
    }
}

/// Returns the sorted ids of the predicates to follow, or `None` for all predicates.
async fn predicates(tx: &mut Tx<'_>, user: i64, walk: &Walk) -> Result<Option<Vec<i64>>> {
    if walk.predicates.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    for name in &walk.predicates {
        ids.extend(name_id(tx, user, NameKind::Predicate, name).await?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

struct Edges<'a, 'c> {
    tx: &'a mut Tx<'c>,
    /// Whether the walk needs the types of far entities.
    has_kinds: bool,
    predicates: Option<Vec<i64>>,
    /// One statement for each direction.
    statements: Vec<Sql>,
    /// For each direction, the prefetched edges by near entity.
    ahead: Vec<HashMap<i64, Vec<Edge>>>,
}

impl Edges<'_, '_> {
    /// Takes the edges of one entity in one direction.
    async fn follow(
        &mut self,
        walker: &mut Walker,
        (entity, depth): (i64, usize),
        direction: usize,
    ) -> Result<ControlFlow<()>> {
        let mut quota = walker.quota(entity);
        // A statement costs PostgreSQL a round trip, and SQLite about as much as a row. A few more edges than the quota are
        // fetched, because some lead to visited entities.
        let is_remote = self.tx.is_remote();
        let (entities, spare) = if is_remote { (32, 32) } else { (1, 4) };
        let limit = (quota.edges + spare).min(quota.inspections + 1);
        if !self.ahead[direction].contains_key(&entity) {
            let near = std::iter::once(entity).chain(walker.ahead());
            let near: Vec<i64> = near.take(entities).collect();
            self.ahead[direction] = self.fetch(&near, direction, limit).await?;
        }
        let first = self.ahead[direction].remove(&entity).unwrap_or_default();
        let taken = first.len();
        let followed = walker.take_all((entity, depth), &mut quota, first);
        if taken < limit || quota.is_spent || followed.is_break() {
            return Ok(followed);
        }
        let limit = taken + quota.inspections + 1;
        let mut rest = self.fetch(&[entity], direction, limit).await?;
        let rest = rest.remove(&entity).unwrap_or_default();
        let rest = rest.into_iter().skip(taken);
        Ok(walker.take_all((entity, depth), &mut quota, rest))
    }

    /// Reads up to `limit` edges of each entity, in the order in which they are followed.
    async fn fetch(
        &mut self,
        near: &[i64],
        direction: usize,
        limit: usize,
    ) -> Result<HashMap<i64, Vec<Edge>>> {
        let mut shared = bulk_row![limit, self.has_kinds];
        shared.extend(self.predicates.iter().map(|ids| ids.to_value()));
        let unknown = near.iter().map(|entity| (*entity, Vec::new()));
        let mut fetched: HashMap<i64, Vec<Edge>> = unknown.collect();
        let add = |row: Row<'_>| {
            let edges = fetched.entry(row.get(0)?).or_default();
            edges.push(Edge::read(row, &mut 1)?);
            Ok(())
        };
        let statement = self.statements[direction];
        let near = rows_of(near);
        self.tx.batch(statement, &shared, &near, add).await?;
        Ok(fetched)
    }
}

async fn read(tx: &mut Tx<'_>, walked: Walker) -> Result<Traversal> {
    let ids: Vec<i64> = walked.found.iter().map(|(_, id)| *id).collect();
    let facts = facts(tx, &ids).await?;
    let depths = walked.found.iter().map(|(depth, _)| *depth);
    let steps = depths
        .zip(facts)
        .map(|(depth, fact)| TraversalStep { depth, fact });
    let mut truncation = walked.truncation;
    let hubs = entities(tx, &walked.hubs).await?;
    truncation.hubs = hubs.into_iter().map(|hub| hub.name).collect();
    Ok(Traversal {
        start: entities(tx, &[walked.start]).await?.remove(0),
        steps: steps.collect(),
        truncation,
    })
}
