//! Deletes facts in batches: each call is one short transaction and says whether there is more.
//!
//! Facts are deleted before what they are about, so that between two batches the graph is smaller but sound.

use super::query::rows_of;
use super::relate::lock_user;
use super::statements as sql;
use crate::Answer;
use crate::engine::{Result, Tx, values};
use crate::store::Store;
use lango_core::{StoreError, UserId};
use std::collections::BTreeSet;

/// Rows deleted in one transaction.
const BATCH: usize = 500;

impl Store {
    /// Deletes a user's graph in batches and returns how many facts it had.
    pub async fn forget_graph(&self, user: &UserId) -> Result<u64, StoreError> {
        in_batches(|| {
            self.engine
                .write(user.clone(), |tx, user| Box::pin(forget_batch(tx, user)))
        })
        .await
    }

    /// Deletes the facts of a source, trusted or not, with the entities and predicates that only they use, in batches.
    /// Returns the number of deleted facts.
    pub async fn forget_source(&self, user: &UserId, source: &str) -> Result<u64, StoreError> {
        in_batches(|| {
            let given = (user.clone(), source.to_owned());
            self.engine.write(given, |tx, (user, source)| {
                Box::pin(forget_batch_of_source(tx, user, source))
            })
        })
        .await
    }
}

/// Deletes batches until there is nothing more; returns the number of facts.
async fn in_batches<'a>(batch: impl Fn() -> Answer<'a, Deleted>) -> Result<u64, StoreError> {
    let mut facts = 0;
    loop {
        let deleted = batch().await?;
        facts += deleted.facts;
        if !deleted.more {
            return Ok(facts);
        }
    }
}

#[derive(Default)]
struct Deleted {
    pub facts: u64,
    pub more: bool,
}

/// Deletes a batch of a user's graph.
async fn forget_batch(tx: &mut Tx<'_>, user: &UserId) -> Result<Deleted> {
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
async fn forget_batch_of_source(tx: &mut Tx<'_>, user: &UserId, name: &str) -> Result<Deleted> {
    let Some(user) = lock_user(tx, user).await? else {
        return Ok(Deleted::default());
    };
    let named = values![user, name];
    let found = tx.value::<i64>(sql::SOURCES_NAMED, named);
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
    let left = tx.exists(sql::SOURCES_NAMED, named).await?;
    let more = facts > 0 || left;
    Ok(Deleted { facts, more })
}
