//! Looking facts up: by their names, around some entities, and what there is at all.

use super::super::asking::{numbers, row, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::{limit as number_of, text, unsigned};
use super::super::text::Words;
use super::facts::{entity_id, facts, predicate_id, user_id};
use super::statements::{
    ALL_NOW, ALL_ONCE, BY_ALL, BY_ENDS, BY_OBJECT, BY_OBJECT_AND_PREDICATE, BY_PREDICATE,
    BY_SUBJECT, BY_SUBJECT_AND_PREDICATE, COUNT_ENTITIES, COUNT_FACTS, EDGES_IN, EDGES_OUT,
    ENTITIES_BEFORE, ENTITIES_FROM, ENTITIES_WITH_KEYS, Lookup, PREDICATES_BEFORE, PREDICATES_FROM,
};
use crate::graph::{
    Fact, FactQuery, Found, GraphSize, MOST_FACTS, MOST_NAMES, Name, Noun, When, in_turn,
};
use deadpool_postgres::Transaction;
use lango_core::UserId;
use std::collections::HashMap;
use tokio_postgres::types::ToSql;

/// Facts that fit what is bound.
pub(super) async fn query(
    transaction: &Transaction<'_>,
    user: &UserId,
    query: &FactQuery,
) -> Result<Found, Failure> {
    let limit = query.limit.min(MOST_FACTS);
    let mut ids = fitting(transaction, user, query, limit + 1).await?;
    let more = ids.len() > limit;
    ids.truncate(limit);
    let facts = facts(transaction, &ids).await?;
    Ok(Found { facts, more })
}

async fn fitting(
    transaction: &Transaction<'_>,
    user: &UserId,
    query: &FactQuery,
    most: usize,
) -> Result<Vec<i64>, Failure> {
    let Some(user) = user_id(transaction, user).await? else {
        return Ok(Vec::new());
    };
    let mut bound = Vec::new();
    for name in [&query.subject, &query.object] {
        bound.push(match name {
            None => None,
            Some(name) => Some(entity_id(transaction, user, name).await?),
        });
    }
    let predicate = match &query.predicate {
        None => None,
        Some(name) => Some(predicate_id(transaction, user, name).await?),
    };
    bound.insert(1, predicate);
    if bound.contains(&Some(None)) {
        // A name that nothing has.
        return Ok(Vec::new());
    }
    let lookup = lookup(bound[0].is_some(), bound[1].is_some(), bound[2].is_some());
    let bound: Vec<i64> = match lookup {
        Some(_) => bound.into_iter().flatten().flatten().collect(),
        None => vec![user],
    };
    let (now, once) = lookup.map_or((ALL_NOW, ALL_ONCE), |lookup| (lookup.now, lookup.once));
    let mut ids = look(transaction, now, &bound, most).await?;
    if query.when == When::Ever && ids.len() < most {
        ids.extend(look(transaction, once, &bound, most - ids.len()).await?);
    }
    Ok(ids)
}

async fn look(
    transaction: &Transaction<'_>,
    statement: &str,
    bound: &[i64],
    most: usize,
) -> Result<Vec<i64>, Failure> {
    let most = number_of(most);
    let values = bound.iter().chain([&most]);
    let values: Vec<_> = values.map(|value| value as &(dyn ToSql + Sync)).collect();
    numbers(transaction, statement, &values).await
}

/// The statements for a query that binds these.
fn lookup(subject: bool, predicate: bool, object: bool) -> Option<&'static Lookup> {
    match (subject, predicate, object) {
        (true, true, true) => Some(&BY_ALL),
        (true, true, false) => Some(&BY_SUBJECT_AND_PREDICATE),
        (true, false, true) => Some(&BY_ENDS),
        (true, false, false) => Some(&BY_SUBJECT),
        (false, true, true) => Some(&BY_OBJECT_AND_PREDICATE),
        (false, true, false) => Some(&BY_PREDICATE),
        (false, false, true) => Some(&BY_OBJECT),
        (false, false, false) => None,
    }
}

/// Facts around the entities that have one of the names, a fair share of each.
pub(super) async fn neighbours(
    transaction: &Transaction<'_>,
    user: &UserId,
    names: &[Name],
    limit: usize,
) -> Result<Vec<Fact>, Failure> {
    let Some(user) = user_id(transaction, user).await? else {
        return Ok(Vec::new());
    };
    let limit = limit.min(MOST_FACTS);
    let keys: Vec<String> = names.iter().take(MOST_NAMES).map(Name::key).collect();
    let keys: Vec<Words<'_>> = keys.iter().map(|key| Words(key)).collect();
    let entities = numbers(transaction, ENTITIES_WITH_KEYS, &[&user, &keys]).await?;
    let mut ways = HashMap::new();
    for (way, edges) in [EDGES_OUT, EDGES_IN].into_iter().enumerate() {
        for row in &rows(transaction, edges, &[&entities, &number_of(limit)]).await? {
            let (entity, fact): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            let both: &mut [Vec<i64>; 2] = ways.entry(entity).or_default();
            both[way].push(fact);
        }
    }
    let around = entities.iter().filter_map(|entity| ways.get(entity));
    let around: Vec<_> = around.map(|both| in_turn(both, limit)).collect();
    facts(transaction, &in_turn(&around, limit)).await
}

/// Names in the order of the alphabet, from this one on and then those before it.
pub(super) async fn near(
    transaction: &Transaction<'_>,
    user: &UserId,
    (noun, name): (Noun, &Name),
    most: usize,
) -> Result<Vec<Name>, Failure> {
    let Some(user) = user_id(transaction, user).await? else {
        return Ok(Vec::new());
    };
    let (from, before, key) = match noun {
        Noun::Entity => (ENTITIES_FROM, ENTITIES_BEFORE, name.key()),
        Noun::Predicate => (PREDICATES_FROM, PREDICATES_BEFORE, name.predicate_key()),
    };
    let values: Values<'_> = &[&user, &Words(&key), &number_of(most.min(MOST_FACTS))];
    let mut near = Vec::new();
    for query in [from, before] {
        for row in &rows(transaction, query, values).await? {
            near.push(Name::stored(text(row, 0)?));
        }
    }
    Ok(near)
}

/// How much there is.
pub(super) async fn size(
    transaction: &Transaction<'_>,
    user: &UserId,
) -> Result<GraphSize, Failure> {
    let Some(user) = user_id(transaction, user).await? else {
        return Ok(GraphSize::default());
    };
    let nothing = || Failure::other("nothing was counted");
    let facts = row(transaction, COUNT_FACTS, &[&user]).await?;
    let facts = facts.ok_or_else(nothing)?;
    let (all, ended) = (unsigned(&facts, 0)?, unsigned(&facts, 1)?);
    let entities = row(transaction, COUNT_ENTITIES, &[&user]).await?;
    let entities = unsigned(&entities.ok_or_else(nothing)?, 0)?;
    Ok(GraphSize {
        facts: all - ended,
        ended,
        entities,
    })
}
