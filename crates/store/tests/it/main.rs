//! Tests of the store: the contract suite for every database, then what only SQLite or PostgreSQL promises.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![allow(
    clippy::duplicate_mod,
    reason = "the same tests run over every kind of database"
)]

mod access_tokens;
mod archive;
mod attachments;
mod contract;
mod damage;
mod database;
mod durability;
mod export_format;
mod file;
mod fork;
mod live_changes;
mod mount;
mod old_database;
mod payment;
mod postgres;
mod transfer;
mod vault;
mod web_cache;

#[path = "."]
mod on_sqlite {
    mod graph;
    mod knowledge_replicas;
    mod library;
    mod memory;

    const KIND: crate::database::DatabaseKind = crate::database::DatabaseKind::Sqlite;
}

#[path = "."]
mod on_postgres {
    mod graph;
    mod knowledge_replicas;
    mod library;
    mod memory;

    const KIND: crate::database::DatabaseKind = crate::database::DatabaseKind::Postgres;
}

#[path = "."]
mod on_pgvector {
    mod graph;
    mod knowledge_replicas;
    mod library;

    const KIND: crate::database::DatabaseKind = crate::database::DatabaseKind::Pgvector;
}

use database::ROOT;
use lango_core::{
    Event, EventBatch, EventRange, NewSession, SessionId, SessionStore, Timestamp, UserId,
};
use lango_store::Store;
use std::path::Path;

fn open(path: &Path) -> Store {
    Store::open_sqlite(path, ROOT.into()).unwrap()
}

/// Returns the error of opening a store. (`Store` has no `Debug`, so `unwrap_err` cannot be used.)
fn refusal(path: &Path) -> lango_core::StoreError {
    Store::open_sqlite(path, ROOT.into())
        .err()
        .expect("it should not open")
}

async fn create(store: &dyn SessionStore, id: &str) -> SessionId {
    let id = SessionId::from(id);
    let session = NewSession {
        id: id.clone(),
        user: UserId::from("local"),
        created: Timestamp(1000),
    };
    store.create(session).await.unwrap();
    id
}

async fn append(store: &dyn SessionStore, batch: EventBatch) {
    store.append(batch).await.unwrap();
}

async fn log(store: &Store, session: &SessionId) -> Vec<Event> {
    store
        .read(
            session,
            EventRange {
                from: 1,
                limit: usize::MAX,
            },
        )
        .await
        .unwrap()
}
