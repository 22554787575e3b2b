//! The walk along facts, over SQLite's rows.
//!
//! It reads the two indices of what holds and, if types matter, the entities it comes to. Only the facts that it found
//! are read whole, at the end.

use super::facts::{entity, entity_id, fact, predicate_id, user_id};
use super::statements::{EDGES_IN, EDGES_IN_WITH, EDGES_OUT, EDGES_OUT_WITH, ENTITY_BY_ID};
use crate::graph::{Direction, Edge, Name, Step, Traversal, Walk, Walked, Walker};
use crate::sqlite::failure::Failure;
use lango_core::{Text, UserId};
use rusqlite::Connection;
use std::ops::ControlFlow;

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
        vec![None]
    } else {
        let ids = walk
            .predicates
            .iter()
            .map(|name| predicate_id(connection, user, name));
        let mut ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
        // A name that nothing has leads nowhere.
        ids.retain(Option::is_some);
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let ways: &[(&str, &str)] = match walk.direction {
        Direction::Out => &[(EDGES_OUT, EDGES_OUT_WITH)],
        Direction::In => &[(EDGES_IN, EDGES_IN_WITH)],
        Direction::Both => &[(EDGES_OUT, EDGES_OUT_WITH), (EDGES_IN, EDGES_IN_WITH)],
    };
    let mut walker = Walker::new(start, walk);
    'walk: while let Some((entity, depth)) = walker.next() {
        for way in ways {
            let followed = follow(connection, &mut walker, (entity, depth), *way, &predicates)?;
            if followed.is_break() {
                break 'walk;
            }
        }
    }
    read(connection, walker.finish()).map(Some)
}

/// Takes the facts of one entity, one way.
fn follow(
    connection: &Connection,
    walker: &mut Walker,
    (entity, depth): (i64, usize),
    (all, with_predicate): (&str, &str),
    predicates: &[Option<i64>],
) -> Result<ControlFlow<()>, Failure> {
    let mut share = walker.share(entity);
    for predicate in predicates {
        let mut statement = connection.prepare_cached(match predicate {
            None => all,
            Some(_) => with_predicate,
        })?;
        let mut rows = match predicate {
            None => statement.query([entity])?,
            Some(predicate) => statement.query([entity, *predicate])?,
        };
        while let Some(row) = rows.next()? {
            let edge = Edge {
                fact: row.get(0)?,
                far: row.get(1)?,
            };
            let taken = walker.take(edge, depth, &mut share, |far| kind(connection, far))?;
            if taken.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if share.is_spent {
                walker.leave(entity);
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn kind(connection: &Connection, entity: i64) -> Result<Option<Name>, Failure> {
    let kind: Option<Text> = connection
        .prepare_cached(ENTITY_BY_ID)?
        .query_row([entity], |row| row.get(1))?;
    Ok(kind.map(Name::stored))
}

/// Reads what was found.
fn read(connection: &Connection, walked: Walked) -> Result<Traversal, Failure> {
    let steps = walked.found.iter().map(|(depth, id)| {
        let fact = fact(connection, *id)?;
        Ok(Step {
            depth: *depth,
            fact,
        })
    });
    let steps = steps.collect::<Result<_, Failure>>()?;
    let mut cuts = walked.cuts;
    for hub in &walked.hubs {
        cuts.hubs.push(entity(connection, *hub)?.name);
    }
    Ok(Traversal {
        start: entity(connection, walked.start)?,
        steps,
        cuts,
    })
}
