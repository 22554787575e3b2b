//! The stores behind the seams: one contract over both, then what only the file can promise.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod archive;
mod contract;
mod damage;
mod durability;
mod file;
mod graph;
mod graph_forget;
mod library;
mod memory;
mod mount;
mod moving;
mod old_database;
mod postgres;

use lango_core::{Batch, Event, NewSession, Page, SessionId, SessionStore, Timestamp, UserId};
use lango_store::SqliteStore;
use std::path::Path;

/// A root agent whose name is no default of anything.
const ROOT: &str = "house-keeper";

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, ROOT.into()).unwrap()
}

/// The error of opening a store, which has no picture of itself to show when it opens.
fn refusal(path: &Path) -> lango_core::StoreError {
    SqliteStore::open(path, ROOT.into())
        .err()
        .expect("it should not open")
}

async fn create(store: &SqliteStore, id: &str) -> SessionId {
    let id = SessionId::from(id);
    let session = NewSession {
        id: id.clone(),
        user: UserId::from("local"),
        created: Timestamp(1000),
    };
    store.create(session).await.unwrap();
    id
}

async fn append(store: &SqliteStore, batch: Batch) {
    store.append(batch).await.unwrap();
}

async fn log(store: &SqliteStore, session: &SessionId) -> Vec<Event> {
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
