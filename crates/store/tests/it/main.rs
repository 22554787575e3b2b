//! The stores behind the seams: one contract over both, then what only the file can promise.

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
mod durability;
mod file;
mod fork;
mod live_changes;
mod mount;
mod moving;
mod old_database;
mod payment;
mod place;
mod postgres;
mod vault;
mod web_cache;

#[path = "."]
mod on_sqlite {
    mod graph;
    mod knowledge_copies;
    mod library;
    mod memory;

    const KIND: crate::place::Kind = crate::place::Kind::Sqlite;
}

#[path = "."]
mod on_postgres {
    mod graph;
    mod knowledge_copies;
    mod library;
    mod memory;

    const KIND: crate::place::Kind = crate::place::Kind::Postgres;
}

#[path = "."]
mod on_pgvector {
    mod graph;
    mod knowledge_copies;
    mod library;

    const KIND: crate::place::Kind = crate::place::Kind::Pgvector;
}

use lango_core::{Batch, Event, NewSession, Page, SessionId, SessionStore, Timestamp, UserId};
use lango_store::Store;
use place::ROOT;
use std::path::Path;

fn open(path: &Path) -> Store {
    Store::open_sqlite(path, ROOT.into()).unwrap()
}

/// The error of opening a store, which has no picture of itself to show when it opens.
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

async fn append(store: &dyn SessionStore, batch: Batch) {
    store.append(batch).await.unwrap();
}

async fn log(store: &Store, session: &SessionId) -> Vec<Event> {
    store
        .read(
            session,
            Page {
                from: 1,
                limit: usize::MAX,
            },
        )
        .await
        .unwrap()
}
