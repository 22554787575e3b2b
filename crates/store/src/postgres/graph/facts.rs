//! From rows of the graph to values, and from names to the numbers they are kept under.

use super::super::asking::{number, rows, trust};
use super::super::failure::Failure;
use super::super::rows::{text, unsigned};
use super::super::text::{Words, optional_words};
use super::statements::{ENTITIES, ENTITY, FACTS, PREDICATE, USER};
use crate::graph::{Confidence, Entity, Fact, Name};
use deadpool_postgres::Transaction;
use lango_core::{Source, Timestamp, UserId};
use std::collections::HashMap;
use tokio_postgres::Row;

/// The facts with these numbers, in this order.
pub(super) async fn facts(
    transaction: &Transaction<'_>,
    ids: &[i64],
) -> Result<Vec<Fact>, Failure> {
    let rows = rows(transaction, FACTS, &[&ids]).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        found.insert(row.try_get::<_, i64>(0)?, fact(row)?);
    }
    let missing = |id: &i64| Failure::other(format!("fact {id} has lost its names"));
    let facts = ids
        .iter()
        .map(|id| found.remove(id).ok_or_else(|| missing(id)));
    facts.collect()
}

/// The fact with this number.
pub(super) async fn one_fact(transaction: &Transaction<'_>, id: i64) -> Result<Fact, Failure> {
    let mut facts = facts(transaction, &[id]).await?;
    facts
        .pop()
        .ok_or_else(|| Failure::other(format!("fact {id} is gone")))
}

fn fact(row: &Row) -> Result<Fact, Failure> {
    Ok(Fact {
        subject: entity_in(row, 1)?,
        predicate: Name::stored(text(row, 3)?),
        object: entity_in(row, 4)?,
        source: Source {
            name: text(row, 6)?,
            trust: trust(row, 7)?,
        },
        // What is not from 0 to 1 was never written; it deserves no belief.
        confidence: Confidence::new(row.try_get(8)?).unwrap_or(Confidence::NONE),
        created: Timestamp(unsigned(row, 9)?),
        valid_from: Timestamp(unsigned(row, 10)?),
        valid_to: match row.try_get::<_, Option<i64>>(11)? {
            None => None,
            Some(_) => Some(Timestamp(unsigned(row, 11)?)),
        },
    })
}

/// The entities with these numbers, in this order.
pub(super) async fn entities(
    transaction: &Transaction<'_>,
    ids: &[i64],
) -> Result<Vec<Entity>, Failure> {
    let rows = rows(transaction, ENTITIES, &[&ids]).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        found.insert(row.try_get::<_, i64>(0)?, entity_in(row, 1)?);
    }
    let missing = |id: &i64| Failure::other(format!("entity {id} is gone"));
    let entities = ids
        .iter()
        .map(|id| found.remove(id).ok_or_else(|| missing(id)));
    entities.collect()
}

fn entity_in(row: &Row, column: usize) -> Result<Entity, Failure> {
    let kind = optional_words(row, column + 1)?;
    Ok(Entity {
        name: Name::stored(text(row, column)?),
        kind: kind.map(|kind| Name::stored(kind.as_ref().into())),
    })
}

/// A user's number; nothing if they have no facts.
pub(super) async fn user_id(
    transaction: &Transaction<'_>,
    user: &UserId,
) -> Result<Option<i64>, Failure> {
    number(transaction, USER, &[&Words(user.as_str())]).await
}

/// The number of an entity.
pub(super) async fn entity_id(
    transaction: &Transaction<'_>,
    user: i64,
    name: &Name,
) -> Result<Option<i64>, Failure> {
    number(transaction, ENTITY, &[&user, &Words(&name.key())]).await
}

/// The number of a predicate.
pub(super) async fn predicate_id(
    transaction: &Transaction<'_>,
    user: i64,
    name: &Name,
) -> Result<Option<i64>, Failure> {
    let key = name.predicate_key();
    number(transaction, PREDICATE, &[&user, &Words(&key)]).await
}
