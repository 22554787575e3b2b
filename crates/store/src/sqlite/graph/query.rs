//! Looking facts up: by their names, around some entities, and what there is at all.

use super::facts::{entity_id, facts, numbers, predicate_id, user_id};
use super::statements::{
    ALL_NOW, ALL_ONCE, BY_ALL, BY_ENDS, BY_OBJECT, BY_OBJECT_AND_PREDICATE, BY_PREDICATE,
    BY_SUBJECT, BY_SUBJECT_AND_PREDICATE, COUNT_ENTITIES, COUNT_FACTS, EDGES_IN, EDGES_OUT,
    ENTITIES_BEFORE, ENTITIES_FROM, Lookup, PREDICATES_BEFORE, PREDICATES_FROM,
};
use crate::graph::{
    Fact, FactQuery, Found, GraphSize, MOST_FACTS, MOST_NAMES, Name, Noun, When, in_turn,
};
use crate::sqlite::failure::Failure;
use crate::sqlite::rows::unsigned;
use lango_core::UserId;
use rusqlite::{Connection, params};
use std::collections::HashSet;

/// Facts that fit what is bound.
pub(super) fn query(
    connection: &Connection,
    user: &UserId,
    query: &FactQuery,
) -> Result<Found, Failure> {
    let limit = query.limit.min(MOST_FACTS);
    let mut ids = fitting(connection, user, query, limit + 1)?;
    let more = ids.len() > limit;
    ids.truncate(limit);
    let facts = facts(connection, &ids)?;
    Ok(Found { facts, more })
}

fn fitting(
    connection: &Connection,
    user: &UserId,
    query: &FactQuery,
    most: usize,
) -> rusqlite::Result<Vec<i64>> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(Vec::new());
    };
    let entity = |name: &Name| entity_id(connection, user, name);
    let subject = query.subject.as_ref().map(entity).transpose()?;
    let object = query.object.as_ref().map(entity).transpose()?;
    let predicate = query.predicate.as_ref();
    let predicate = predicate
        .map(|name| predicate_id(connection, user, name))
        .transpose()?;
    if [subject, predicate, object].contains(&Some(None)) {
        // A name that nothing has.
        return Ok(Vec::new());
    }
    let [subject, predicate, object] = [subject, predicate, object].map(Option::flatten);
    let lookup = lookup(subject.is_some(), predicate.is_some(), object.is_some());
    let look = |when: When, most: usize| {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let bound = params![subject, predicate, object, most];
        match (lookup, when) {
            (Some(lookup), When::Now) => numbers(connection, lookup.now, bound),
            (Some(lookup), When::Ever) => numbers(connection, lookup.once, bound),
            (None, When::Now) => numbers(connection, ALL_NOW, params![user, most]),
            (None, When::Ever) => numbers(connection, ALL_ONCE, params![user, most]),
        }
    };
    let mut ids = look(When::Now, most)?;
    if query.when == When::Ever && ids.len() < most {
        ids.extend(look(When::Ever, most - ids.len())?);
    }
    Ok(ids)
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
pub(super) fn neighbours(
    connection: &Connection,
    user: &UserId,
    names: &[Name],
    limit: usize,
) -> Result<Vec<Fact>, Failure> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(Vec::new());
    };
    let limit = limit.min(MOST_FACTS);
    let mut known = HashSet::new();
    let mut around = Vec::new();
    for name in names.iter().take(MOST_NAMES) {
        let Some(entity) = entity_id(connection, user, name)? else {
            continue;
        };
        if known.insert(entity) {
            let both_ways = [
                some(connection, EDGES_OUT, entity, limit)?,
                some(connection, EDGES_IN, entity, limit)?,
            ];
            around.push(in_turn(&both_ways, limit));
        }
    }
    facts(connection, &in_turn(&around, limit))
}

fn some(
    connection: &Connection,
    edges: &str,
    entity: i64,
    most: usize,
) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(edges)?;
    let rows = statement.query_map([entity], |row| row.get(0))?;
    rows.take(most).collect()
}

/// Names in the order of the alphabet, from this one on and then those before it.
pub(super) fn near(
    connection: &Connection,
    user: &UserId,
    (noun, name): (Noun, &Name),
    most: usize,
) -> Result<Vec<Name>, Failure> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(Vec::new());
    };
    let (from, before, key) = match noun {
        Noun::Entity => (ENTITIES_FROM, ENTITIES_BEFORE, name.key()),
        Noun::Predicate => (PREDICATES_FROM, PREDICATES_BEFORE, name.predicate_key()),
    };
    let most = i64::try_from(most.min(MOST_FACTS)).unwrap_or(i64::MAX);
    let mut near = Vec::new();
    for query in [from, before] {
        let mut statement = connection.prepare_cached(query)?;
        let names = statement.query_map(params![user, key, most], |row| {
            Ok(Name::stored(row.get(0)?))
        })?;
        for name in names {
            near.push(name?);
        }
    }
    Ok(near)
}

/// How much there is.
pub(super) fn size(connection: &Connection, user: &UserId) -> Result<GraphSize, Failure> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(GraphSize::default());
    };
    let (all, ended) = connection
        .prepare_cached(COUNT_FACTS)?
        .query_row([user], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))?;
    let entities = connection
        .prepare_cached(COUNT_ENTITIES)?
        .query_row([user], |row| unsigned(row, 0))?;
    Ok(GraphSize {
        facts: all - ended,
        ended,
        entities,
    })
}
