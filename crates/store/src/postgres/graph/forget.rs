//! Forgetting facts, a portion at a time.

use super::super::asking::{execute, number, numbers, rows};

use super::super::failure::Failure;
use super::super::text::Words;
use super::relate::hold_user;
use super::statements::{
    FORGET_ENTITIES_OF_USER, FORGET_FACTS_OF_SOURCE, FORGET_FACTS_OF_USER, FORGET_LONE_ENTITIES,
    FORGET_LONE_PREDICATES, FORGET_PREDICATES_OF_USER, FORGET_SOURCE, FORGET_SOURCES_OF_USER,
    FORGET_USER, SOURCES_NAMED,
};
use deadpool_postgres::Transaction;
use lango_core::UserId;
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
pub(super) async fn user(transaction: &Transaction<'_>, user: &UserId) -> Result<Portion, Failure> {
    let Some(user) = hold_user(transaction, user).await? else {
        return Ok(NOTHING);
    };
    let tables = [
        FORGET_FACTS_OF_USER,
        FORGET_ENTITIES_OF_USER,
        FORGET_PREDICATES_OF_USER,
        FORGET_SOURCES_OF_USER,
    ];
    for table in tables {
        let gone = execute(transaction, table, &[&user, &PORTION]).await?;
        if gone > 0 {
            let facts = if table == FORGET_FACTS_OF_USER {
                gone
            } else {
                0
            };
            return Ok(Portion { facts, more: true });
        }
    }
    execute(transaction, FORGET_USER, &[&user]).await?;
    Ok(NOTHING)
}

/// Takes a portion of what a source said, and the entities and predicates that nothing else speaks of.
pub(super) async fn source(
    transaction: &Transaction<'_>,
    user: &UserId,
    name: &str,
) -> Result<Portion, Failure> {
    let Some(user) = hold_user(transaction, user).await? else {
        return Ok(NOTHING);
    };
    let name = Words(name);
    let Some(source) = number(transaction, SOURCES_NAMED, &[&user, &name]).await? else {
        return Ok(NOTHING);
    };
    let gone = rows(transaction, FORGET_FACTS_OF_SOURCE, &[&source, &PORTION]).await?;
    let (mut entities, mut predicates) = (BTreeSet::new(), BTreeSet::new());
    for row in &gone {
        entities.extend([row.try_get::<_, i64>(0)?, row.try_get(2)?]);
        predicates.insert(row.try_get::<_, i64>(1)?);
    }
    let entities: Vec<i64> = entities.into_iter().collect();
    let predicates: Vec<i64> = predicates.into_iter().collect();
    execute(transaction, FORGET_LONE_ENTITIES, &[&entities]).await?;
    execute(transaction, FORGET_LONE_PREDICATES, &[&predicates]).await?;
    if gone.is_empty() {
        execute(transaction, FORGET_SOURCE, &[&source]).await?;
    }
    let left = numbers(transaction, SOURCES_NAMED, &[&user, &name]).await?;
    Ok(Portion {
        facts: gone.len() as u64,
        more: !gone.is_empty() || !left.is_empty(),
    })
}
