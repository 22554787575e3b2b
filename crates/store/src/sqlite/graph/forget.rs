//! Forgetting: rows that are gone, not hidden.
//!
//! A million of them cannot go in one short transaction, so each call takes a portion and says whether there are more.
//! Facts go before what they are about; what is left between two portions is a smaller graph, and a sound one.

use super::facts::{number, numbers, user_id};
use super::statements::{
    FORGET_ENTITIES_OF_USER, FORGET_FACTS_OF_SOURCE, FORGET_FACTS_OF_USER, FORGET_LONE_ENTITY,
    FORGET_LONE_PREDICATE, FORGET_PREDICATES_OF_USER, FORGET_SOURCE, FORGET_SOURCES_OF_USER,
    FORGET_USER, SOURCES_NAMED,
};
use crate::sqlite::failure::Failure;
use lango_core::UserId;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// How many rows go in one transaction.
const PORTION: i64 = 500;

/// What one portion took.
pub(super) struct Portion {
    /// How many facts are gone.
    pub facts: u64,
    /// Whether to come again.
    pub more: bool,
}

const NOTHING: Portion = Portion {
    facts: 0,
    more: false,
};

/// Takes a portion of all that a user's graph holds.
pub(super) fn user(connection: &Connection, user: &UserId) -> Result<Portion, Failure> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(NOTHING);
    };
    let tables = [
        FORGET_FACTS_OF_USER,
        FORGET_ENTITIES_OF_USER,
        FORGET_PREDICATES_OF_USER,
        FORGET_SOURCES_OF_USER,
    ];
    for table in tables {
        let gone = connection
            .prepare_cached(table)?
            .execute(params![user, PORTION])?;
        if gone > 0 {
            let facts = if table == FORGET_FACTS_OF_USER {
                gone as u64
            } else {
                0
            };
            return Ok(Portion { facts, more: true });
        }
    }
    connection.prepare_cached(FORGET_USER)?.execute([user])?;
    Ok(NOTHING)
}

/// Takes a portion of what a source said, and the entities and predicates that nothing else speaks of.
pub(super) fn source(
    connection: &Connection,
    user: &UserId,
    name: &str,
) -> Result<Portion, Failure> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(NOTHING);
    };
    let Some(source) = number(connection, SOURCES_NAMED, params![user, name])? else {
        return Ok(NOTHING);
    };
    let (mut entities, mut predicates) = (BTreeSet::new(), BTreeSet::new());
    let mut facts = 0;
    {
        let mut statement = connection.prepare_cached(FORGET_FACTS_OF_SOURCE)?;
        let mut rows = statement.query(params![source, PORTION])?;
        while let Some(row) = rows.next()? {
            facts += 1;
            entities.extend([row.get::<_, i64>(0)?, row.get(2)?]);
            predicates.insert(row.get::<_, i64>(1)?);
        }
    }
    for entity in entities {
        connection
            .prepare_cached(FORGET_LONE_ENTITY)?
            .execute([entity])?;
    }
    for predicate in predicates {
        connection
            .prepare_cached(FORGET_LONE_PREDICATE)?
            .execute([predicate])?;
    }
    if facts == 0 {
        connection
            .prepare_cached(FORGET_SOURCE)?
            .execute([source])?;
    }
    let more = facts > 0 || !numbers(connection, SOURCES_NAMED, params![user, name])?.is_empty();
    Ok(Portion { facts, more })
}
