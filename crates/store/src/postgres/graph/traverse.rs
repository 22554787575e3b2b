//! The walk along facts, over PostgreSQL's rows.
//!
//! The first facts of many entities are fetched in one go, each way; only of an entity from which most do not fit are the
//! others fetched too. Only the facts that it found are read whole, at the end.

use super::super::asking::rows;
use super::super::failure::Failure;
use super::super::rows::limit;
use super::super::text::optional_words;
use super::facts::{entities, entity_id, facts, predicate_id, user_id};
use super::statements::{EDGES_IN, EDGES_IN_WITH, EDGES_OUT, EDGES_OUT_WITH};
use crate::graph::{Direction, Edge, Name, Share, Step, Traversal, Walk, Walked, Walker};
use deadpool_postgres::Transaction;
use lango_core::UserId;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// How many entities' facts are fetched together.
const FETCHED_TOGETHER: usize = 32;

/// How many facts of an entity are fetched beyond those that may be taken: some lead back.
const SPARE: usize = 32;

/// Walks; gives nothing if there is no such start.
pub(super) async fn traverse(
    transaction: &Transaction<'_>,
    user: &UserId,
    walk: &Walk,
) -> Result<Option<Traversal>, Failure> {
    let Some(user) = user_id(transaction, user).await? else {
        return Ok(None);
    };
    let Some(start) = entity_id(transaction, user, &walk.start).await? else {
        return Ok(None);
    };
    let mut fetched = Fetched {
        transaction,
        ways: match walk.direction {
            Direction::Out => vec![Way::new(EDGES_OUT, EDGES_OUT_WITH)],
            Direction::In => vec![Way::new(EDGES_IN, EDGES_IN_WITH)],
            Direction::Both => vec![
                Way::new(EDGES_OUT, EDGES_OUT_WITH),
                Way::new(EDGES_IN, EDGES_IN_WITH),
            ],
        },
        predicates: predicates(transaction, user, walk).await?,
    };
    let mut walker = Walker::new(start, walk);
    'walk: while let Some((entity, depth)) = walker.next() {
        for way in 0..fetched.ways.len() {
            let followed = fetched.follow(&mut walker, (entity, depth), way).await?;
            if followed.is_break() {
                break 'walk;
            }
        }
    }
    read(transaction, walker.finish()).await.map(Some)
}

/// The predicates that are followed, if not all.
async fn predicates(
    transaction: &Transaction<'_>,
    user: i64,
    walk: &Walk,
) -> Result<Option<Vec<i64>>, Failure> {
    if walk.predicates.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    for name in &walk.predicates {
        // A name that nothing has leads nowhere.
        ids.extend(predicate_id(transaction, user, name).await?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// The facts that a walk will soon want.
struct Fetched<'a> {
    transaction: &'a Transaction<'a>,
    ways: Vec<Way>,
    predicates: Option<Vec<i64>>,
}

/// One of the ways that facts are followed.
struct Way {
    all: &'static str,
    with_predicates: &'static str,
    /// The first facts of entities, and whether those are all.
    first: HashMap<i64, Vec<Leading>>,
    /// How many of each were fetched.
    fetched: usize,
}

impl Way {
    fn new(all: &'static str, with_predicates: &'static str) -> Self {
        Self {
            all,
            with_predicates,
            first: HashMap::new(),
            fetched: 0,
        }
    }
}

/// A fact, and of what type the entity is that it leads to.
struct Leading {
    edge: Edge,
    kind: Option<Name>,
}

impl Fetched<'_> {
    /// Takes the facts of one entity, one way.
    async fn follow(
        &mut self,
        walker: &mut Walker,
        (entity, depth): (i64, usize),
        way: usize,
    ) -> Result<ControlFlow<()>, Failure> {
        let mut share = walker.share(entity);
        let (first, are_all) = self.first(walker, entity, way, &share).await?;
        let taken = first.len();
        let followed = take(walker, (entity, depth), &mut share, first);
        if are_all || share.is_spent || followed.is_break() {
            return Ok(followed);
        }
        let wanted = taken + share.looks + 1;
        let all = self.fetch(&[entity], way, wanted).await?;
        let rest = all.into_values().flatten().skip(taken).collect();
        Ok(take(walker, (entity, depth), &mut share, rest))
    }

    /// The first facts of an entity, and whether those are all.
    async fn first(
        &mut self,
        walker: &Walker,
        entity: i64,
        way: usize,
        share: &Share,
    ) -> Result<(Vec<Leading>, bool), Failure> {
        let most = (share.facts + SPARE).min(share.looks + 1);
        if !self.ways[way].first.contains_key(&entity) {
            let others = walker.ahead().take(FETCHED_TOGETHER - 1);
            let together: Vec<i64> = std::iter::once(entity).chain(others).collect();
            let mut fetched = self.fetch(&together, way, most).await?;
            for entity in together {
                fetched.entry(entity).or_default();
            }
            self.ways[way].first = fetched;
            self.ways[way].fetched = most;
        }
        let way = &mut self.ways[way];
        let first = way.first.remove(&entity).unwrap_or_default();
        let are_all = first.len() < way.fetched;
        Ok((first, are_all))
    }

    /// Up to so many facts of each entity, in the order in which they are followed.
    async fn fetch(
        &self,
        from: &[i64],
        way: usize,
        most: usize,
    ) -> Result<HashMap<i64, Vec<Leading>>, Failure> {
        let (way, most) = (&self.ways[way], limit(most));
        let found = match &self.predicates {
            None => rows(self.transaction, way.all, &[&from, &most]).await?,
            Some(ids) => rows(self.transaction, way.with_predicates, &[&from, &most, ids]).await?,
        };
        let mut fetched: HashMap<i64, Vec<Leading>> = HashMap::new();
        for row in &found {
            let edge = Edge {
                fact: row.try_get(1)?,
                far: row.try_get(2)?,
            };
            let kind = optional_words(row, 3)?;
            let kind = kind.map(|kind| Name::stored(kind.as_ref().into()));
            let entity = row.try_get(0)?;
            fetched
                .entry(entity)
                .or_default()
                .push(Leading { edge, kind });
        }
        Ok(fetched)
    }
}

fn take(
    walker: &mut Walker,
    (entity, depth): (i64, usize),
    share: &mut Share,
    facts: Vec<Leading>,
) -> ControlFlow<()> {
    for Leading { edge, kind } in facts {
        let taken: Result<_, Infallible> = walker.take(edge, depth, share, |_| Ok(kind));
        let Ok(taken) = taken;
        if taken.is_break() {
            return taken;
        }
        if share.is_spent {
            walker.leave(entity);
            break;
        }
    }
    ControlFlow::Continue(())
}

/// Reads what was found.
async fn read(transaction: &Transaction<'_>, walked: Walked) -> Result<Traversal, Failure> {
    let ids: Vec<i64> = walked.found.iter().map(|(_, id)| *id).collect();
    let facts = facts(transaction, &ids).await?;
    let depths = walked.found.iter().map(|(depth, _)| *depth);
    let steps = depths.zip(facts).map(|(depth, fact)| Step { depth, fact });
    let mut cuts = walked.cuts;
    for hub in entities(transaction, &walked.hubs).await? {
        cuts.hubs.push(hub.name);
    }
    let mut start = entities(transaction, &[walked.start]).await?;
    Ok(Traversal {
        start: start
            .pop()
            .ok_or_else(|| Failure::other("the start of a walk is gone"))?,
        steps: steps.collect(),
        cuts,
    })
}
