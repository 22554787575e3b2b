//! Deletes facts in batches: each call is one short transaction and says whether there is more.
//!
//! Facts are deleted before what they are about, so that between two batches the graph is smaller but sound.

use super::query::rows_of;
use super::relate::lock_user;
use super::statements as sql;
use crate::engine::{Failure, Tx, values};
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
    let tables = [
        sql::FORGET_FACTS_OF_USER,
        sql::FORGET_ENTITIES_OF_USER,
        sql::FORGET_PREDICATES_OF_USER,
        sql::FORGET_SOURCES_OF_USER,
    ];
    for (place, table) in tables.into_iter().enumerate() {
        let rows = tx.execute(table, values![user, BATCH]).await?;
        if rows > 0 {
            let facts = if place == 0 { rows } else { 0 };
            return Ok(Deleted { facts, more: true });
        }
    }
    tx.execute(sql::FORGET_USER, values![user]).await?;
    Ok(Deleted::default())
}

/// Deletes a batch of a source's facts, and the entities and predicates that no other fact uses.
pub(super) async fn source(tx: &mut Tx<'_>, user: &UserId, name: &str) -> Result<Deleted, Failure> {
    let Some(user) = lock_user(tx, user).await? else {
        return Ok(Deleted::default());
    };
    let named = values![user, name];
    let found = tx.query_opt(sql::SOURCES_NAMED, named, |row| row.get::<i64>(0));
    let Some(source) = found.await? else {
        return Ok(Deleted::default());
    };
    let (mut entities, mut predicates) = (BTreeSet::new(), BTreeSet::new());
    let facts = tx
        .query(sql::FORGET_FACTS_OF_SOURCE, values![source, BATCH], |row| {
            entities.extend([row.get::<i64>(0)?, row.get(2)?]);
            predicates.insert(row.get::<i64>(1)?);
            Ok(())
        })
        .await?;
    let facts = facts.len() as u64;
    if facts == 0 {
        tx.execute(sql::FORGET_SOURCE, values![source]).await?;
    }
    for (unused, ids) in [
        (sql::FORGET_UNUSED_ENTITIES, entities),
        (sql::FORGET_UNUSED_PREDICATES, predicates),
    ] {
        tx.batch(unused, &[], &rows_of(&ids), |_| Ok(())).await?;
    }
    let left = tx.query_opt(sql::SOURCES_NAMED, named, |_| Ok(())).await?;
    let more = facts > 0 || left.is_some();
    Ok(Deleted { facts, more })
}
