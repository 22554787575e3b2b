//! Deletes facts in batches: each call is one short transaction and says whether there is more.
//!
//! Facts are deleted before what they are about, so that between two batches the graph is smaller but sound.

use super::relate::lock_user;
use super::statements::{
    FORGET_ENTITIES_OF_USER, FORGET_FACTS_OF_SOURCE, FORGET_FACTS_OF_USER,
    FORGET_PREDICATES_OF_USER, FORGET_SOURCE, FORGET_SOURCES_OF_USER, FORGET_UNUSED_ENTITIES,
    FORGET_UNUSED_PREDICATES, FORGET_USER, SOURCES_NAMED,
};
use crate::engine::{Failure, Tx, Value, values};
use lango_core::UserId;
use std::collections::BTreeSet;

/// Rows deleted in one transaction.
const BATCH: usize = 500;

/// What one batch deleted.
#[derive(Default)]
pub(super) struct Deleted {
    pub facts: u64,
    /// Whether there is more to delete.
    pub more: bool,
}

/// Deletes a batch of a user's graph.
pub(super) async fn user(tx: &mut Tx<'_>, user: &UserId) -> Result<Deleted, Failure> {
    let Some(user) = lock_user(tx, user).await? else {
        return Ok(Deleted::default());
    };
    let facts = tx
        .execute(FORGET_FACTS_OF_USER, values![user, BATCH])
        .await?;
    if facts > 0 {
        return Ok(Deleted { facts, more: true });
    }
    let tables = [
        FORGET_ENTITIES_OF_USER,
        FORGET_PREDICATES_OF_USER,
        FORGET_SOURCES_OF_USER,
    ];
    for table in tables {
        if tx.execute(table, values![user, BATCH]).await? > 0 {
            return Ok(Deleted {
                facts: 0,
                more: true,
            });
        }
    }
    tx.execute(FORGET_USER, values![user]).await?;
    Ok(Deleted::default())
}

/// Deletes a batch of a source's facts, and the entities and predicates that no other fact uses.
pub(super) async fn source(tx: &mut Tx<'_>, user: &UserId, name: &str) -> Result<Deleted, Failure> {
    let Some(user) = lock_user(tx, user).await? else {
        return Ok(Deleted::default());
    };
    let found = tx
        .query_opt(SOURCES_NAMED, values![user, name], |row| row.get(0))
        .await?;
    let Some(source): Option<i64> = found else {
        return Ok(Deleted::default());
    };
    let (mut entities, mut predicates) = (BTreeSet::new(), BTreeSet::new());
    let facts = tx
        .query(FORGET_FACTS_OF_SOURCE, values![source, BATCH], |row| {
            entities.extend([row.get::<i64>(0)?, row.get(2)?]);
            predicates.insert(row.get::<i64>(1)?);
            Ok(())
        })
        .await?;
    let facts = facts.len() as u64;
    if facts == 0 {
        tx.execute(FORGET_SOURCE, values![source]).await?;
    }
    for (unused, ids) in [
        (FORGET_UNUSED_ENTITIES, entities),
        (FORGET_UNUSED_PREDICATES, predicates),
    ] {
        let ids: Vec<_> = ids.into_iter().map(|id| [Value::Int(id)]).collect();
        tx.batch(unused, &[], &ids, |_| Ok(())).await?;
    }
    let left = tx
        .query_opt(SOURCES_NAMED, values![user, name], |_| Ok(()))
        .await?;
    Ok(Deleted {
        facts,
        more: facts > 0 || left.is_some(),
    })
}
