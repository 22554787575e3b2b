//! Looks facts up: by their names, around some entities, and how many there are.

use super::statements::{
    ALL, BY_ALL, BY_ENDS, BY_OBJECT, BY_OBJECT_AND_PREDICATE, BY_PREDICATE, BY_SUBJECT,
    BY_SUBJECT_AND_PREDICATE, COUNT_ENTITIES, COUNT_FACTS, EDGES_IN, EDGES_OUT, ENTITIES,
    ENTITIES_BEFORE, ENTITIES_BY_KEY, ENTITIES_FROM, ENTITY, FACTS, Lookup, PREDICATE,
    PREDICATES_BEFORE, PREDICATES_FROM, USER,
};
use super::{
    Confidence, Entity, Fact, FactPage, FactQuery, GraphSize, MOST_FACTS, Name, NameKind, Validity,
};
use crate::engine::{Failure, Row, Tx, Value, values};
use crate::stored::source;
use lango_core::{Text, UserId};
use std::collections::{HashMap, HashSet};

/// How many names are looked up at once; further ones are ignored.
const MOST_NAMES: usize = 256;

/// The facts that match a query.
pub(super) async fn query(
    tx: &mut Tx<'_>,
    user: &UserId,
    query: &FactQuery,
) -> Result<FactPage, Failure> {
    let limit = query.limit.min(MOST_FACTS);
    let mut ids = matching(tx, user, query, limit + 1).await?;
    let more = ids.len() > limit;
    ids.truncate(limit);
    let facts = facts(tx, &ids).await?;
    Ok(FactPage { facts, more })
}

async fn matching(
    tx: &mut Tx<'_>,
    user: &UserId,
    query: &FactQuery,
    limit: usize,
) -> Result<Vec<i64>, Failure> {
    let Some(user) = user_id(tx, user).await? else {
        return Ok(Vec::new());
    };
    let mut bound = Vec::new();
    let names = [&query.subject, &query.predicate, &query.object];
    for (place, name) in names.into_iter().enumerate() {
        let Some(name) = name else { continue };
        let id = match place {
            1 => predicate_id(tx, user, name).await?,
            _ => entity_id(tx, user, name).await?,
        };
        let Some(id) = id else {
            return Ok(Vec::new());
        };
        bound.push(id);
    }
    let lookup = lookup(names.map(Option::is_some));
    if bound.is_empty() {
        bound.push(user);
    }
    let mut ids = look_up(tx, lookup.current, &bound, limit).await?;
    if query.validity == Validity::Any && ids.len() < limit {
        ids.extend(look_up(tx, lookup.ended, &bound, limit - ids.len()).await?);
    }
    Ok(ids)
}

async fn look_up(
    tx: &mut Tx<'_>,
    statement: crate::engine::Sql,
    bound: &[i64],
    limit: usize,
) -> Result<Vec<i64>, Failure> {
    let values = bound.iter().map(|id| Value::Int(*id));
    let values: Vec<_> = values.chain([Value::Int(limit as i64)]).collect();
    tx.query(statement, &values, |row| row.get(0)).await
}

/// The statements for a query with these of subject, predicate and object.
fn lookup(given: [bool; 3]) -> Lookup {
    match given {
        [true, true, true] => BY_ALL,
        [true, true, false] => BY_SUBJECT_AND_PREDICATE,
        [true, false, true] => BY_ENDS,
        [true, false, false] => BY_SUBJECT,
        [false, true, true] => BY_OBJECT_AND_PREDICATE,
        [false, true, false] => BY_PREDICATE,
        [false, false, true] => BY_OBJECT,
        [false, false, false] => ALL,
    }
}

/// Facts around the entities that have one of the names, a fair share of each.
pub(super) async fn neighbours(
    tx: &mut Tx<'_>,
    user: &UserId,
    names: &[Name],
    limit: usize,
) -> Result<Vec<Fact>, Failure> {
    let Some(user) = user_id(tx, user).await? else {
        return Ok(Vec::new());
    };
    let limit = limit.min(MOST_FACTS);
    let keys: Vec<String> = names.iter().take(MOST_NAMES).map(Name::key).collect();
    let mut seen = HashSet::new();
    let unique = keys.iter().filter(|key| seen.insert(key.as_str()));
    let rows: Vec<_> = unique.map(|key| [Value::Text(key)]).collect();
    let found = tx
        .batch(ENTITIES_BY_KEY, values![user], &rows, |row| {
            Ok((row.get::<String>(1)?, row.get::<i64>(0)?))
        })
        .await?;
    let mut ids: HashMap<String, i64> = found.into_iter().collect();
    let entities: Vec<i64> = keys.iter().filter_map(|key| ids.remove(key)).collect();
    let rows: Vec<_> = entities.iter().map(|id| [Value::Int(*id)]).collect();
    let mut edges: HashMap<i64, [Vec<i64>; 2]> = HashMap::new();
    for (direction, statement) in [EDGES_OUT, EDGES_IN].into_iter().enumerate() {
        tx.batch(statement, values![limit, false], &rows, |row| {
            edges.entry(row.get(0)?).or_default()[direction].push(row.get(1)?);
            Ok(())
        })
        .await?;
    }
    let around = entities.iter().filter_map(|entity| edges.get(entity));
    let around: Vec<_> = around.map(|both| in_turn(both, limit)).collect();
    facts(tx, &in_turn(&around, limit)).await
}

/// The first of each list, the second of each and so on, without duplicates.
fn in_turn(lists: &[Vec<i64>], limit: usize) -> Vec<i64> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let ranks = (0..longest).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank)));
    let mut taken = HashSet::new();
    let unique = ranks.filter(|id| taken.insert(**id));
    unique.take(limit).copied().collect()
}

/// Names in the order of the alphabet, from this one on and then those before it.
pub(super) async fn near(
    tx: &mut Tx<'_>,
    user: &UserId,
    (kind, name): (NameKind, &Name),
    limit: usize,
) -> Result<Vec<Name>, Failure> {
    let Some(user) = user_id(tx, user).await? else {
        return Ok(Vec::new());
    };
    let (from, before, key) = match kind {
        NameKind::Entity => (ENTITIES_FROM, ENTITIES_BEFORE, name.key()),
        NameKind::Predicate => (PREDICATES_FROM, PREDICATES_BEFORE, name.predicate_key()),
    };
    let limit = limit.min(MOST_FACTS);
    let values = values![user, key, limit];
    let name = |row: Row<'_>| Ok(Name::stored(row.get(0)?));
    let mut near = tx.query(from, values, name).await?;
    near.extend(tx.query(before, values, name).await?);
    Ok(near)
}

/// The size of a user's graph.
pub(super) async fn size(tx: &mut Tx<'_>, user: &UserId) -> Result<GraphSize, Failure> {
    let Some(user) = user_id(tx, user).await? else {
        return Ok(GraphSize::default());
    };
    let facts = tx
        .query_opt(COUNT_FACTS, values![user], |row| {
            Ok((row.get::<u64>(0)?, row.get::<u64>(1)?))
        })
        .await?;
    let (all, ended) = facts.unwrap_or_default();
    let entities = tx
        .query_opt(COUNT_ENTITIES, values![user], |row| row.get(0))
        .await?;
    Ok(GraphSize {
        facts: all - ended,
        ended,
        entities: entities.unwrap_or_default(),
    })
}

/// The facts with these ids, in this order.
pub(super) async fn facts(tx: &mut Tx<'_>, ids: &[i64]) -> Result<Vec<Fact>, Failure> {
    let rows: Vec<_> = ids.iter().map(|id| [Value::Int(*id)]).collect();
    let found = tx
        .batch(FACTS, &[], &rows, |row| Ok((row.get(0)?, fact_in(row)?)))
        .await?;
    in_order(ids, found)
}

/// The fact with this id.
pub(super) async fn fact(tx: &mut Tx<'_>, id: i64) -> Result<Fact, Failure> {
    let fact = facts(tx, &[id]).await?.pop();
    fact.ok_or_else(|| Failure::other(format!("fact {id} does not exist")))
}

/// The entities with these ids, in this order.
pub(super) async fn entities(tx: &mut Tx<'_>, ids: &[i64]) -> Result<Vec<Entity>, Failure> {
    let rows: Vec<_> = ids.iter().map(|id| [Value::Int(*id)]).collect();
    let found = tx
        .batch(ENTITIES, &[], &rows, |row| {
            Ok((row.get(0)?, entity_in(row, 1)?))
        })
        .await?;
    in_order(ids, found)
}

fn in_order<T>(ids: &[i64], found: Vec<(i64, T)>) -> Result<Vec<T>, Failure> {
    let mut found: HashMap<i64, T> = found.into_iter().collect();
    let missing = |id: &i64| Failure::other(format!("row {id} of the graph does not exist"));
    let ordered = ids
        .iter()
        .map(|id| found.remove(id).ok_or_else(|| missing(id)));
    ordered.collect()
}

fn fact_in(row: Row<'_>) -> Result<Fact, Failure> {
    Ok(Fact {
        subject: entity_in(row, 1)?,
        predicate: Name::stored(row.get(3)?),
        object: entity_in(row, 4)?,
        source: source(row, 6)?,
        // Only numbers from 0 to 1 are ever written.
        confidence: Confidence::new(row.get(8)?).unwrap_or(Confidence::NONE),
        created: row.get(9)?,
        valid_from: row.get(10)?,
        valid_to: row.get(11)?,
    })
}

fn entity_in(row: Row<'_>, column: usize) -> Result<Entity, Failure> {
    Ok(Entity {
        name: Name::stored(row.get(column)?),
        kind: row.get::<Option<Text>>(column + 1)?.map(Name::stored),
    })
}

/// A user's id; nothing if they have no facts.
pub(super) async fn user_id(tx: &mut Tx<'_>, user: &UserId) -> Result<Option<i64>, Failure> {
    tx.query_opt(USER, values![user], |row| row.get(0)).await
}

/// The id of an entity.
pub(super) async fn entity_id(
    tx: &mut Tx<'_>,
    user: i64,
    name: &Name,
) -> Result<Option<i64>, Failure> {
    tx.query_opt(ENTITY, values![user, name.key()], |row| row.get(0))
        .await
}

/// The id of a predicate.
pub(super) async fn predicate_id(
    tx: &mut Tx<'_>,
    user: i64,
    name: &Name,
) -> Result<Option<i64>, Failure> {
    let key = name.predicate_key();
    tx.query_opt(PREDICATE, values![user, key], |row| row.get(0))
        .await
}
