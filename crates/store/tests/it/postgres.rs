//! Tests that only apply to a PostgreSQL database shared by many replicas.

mod attachments;
mod clock;
mod contention;
mod faults;
mod locks;
mod pgvector;
mod proxy;
mod replicas;
mod rows;
mod start;

use lango_core::{
    Event, EventBody, EventRange, NewSession, SessionId, SessionStore, StoreError, Timestamp,
    UserId,
};
use lango_store::{PostgresOptions, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::NoTls;

/// The name of a root agent, different from every default.
const ROOT: &str = "custom-root";

fn at(address: &str) -> Store {
    Store::at(address, ROOT.into()).unwrap()
}

/// A lease length that is short enough for a test to wait for, but long enough to be renewed on a busy machine.
const SHORT: Duration = Duration::from_secs(4);

/// Opens a replica with leases of this length.
fn replica(address: &str, lease: Duration) -> Store {
    let options = PostgresOptions {
        lease,
        ..PostgresOptions::default()
    };
    Store::postgres_with(address, ROOT.into(), options).unwrap()
}

async fn create(store: &Store, id: &str) -> SessionId {
    let id = SessionId::from(id);
    let session = NewSession {
        id: id.clone(),
        user: UserId::from("local"),
        created: Timestamp(1000),
    };
    store.create(session).await.unwrap();
    id
}

async fn log(store: &Store, session: &SessionId) -> Vec<Event> {
    let page = EventRange {
        from: 1,
        limit: usize::MAX,
    };
    store.read(session, page).await.unwrap()
}

/// Returns the texts of the user's messages.
fn user_messages(events: &[Event]) -> Vec<String> {
    let texts = events.iter().filter_map(|event| match &event.body {
        EventBody::UserMessage { text, .. } => Some(text.to_string()),
        _ => None,
    });
    texts.collect()
}

/// Returns a unique name.
fn unique(prefix: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}_{}_{number}", std::process::id())
}

/// Returns the fencing token of the lease of a session.
async fn fence(address: &str, session: &str) -> i64 {
    number(
        address,
        &format!("SELECT fence FROM holds WHERE session = '{session}'"),
    )
    .await
}

/// Counts the rows of a table.
async fn count(address: &str, table: &str) -> i64 {
    number(address, &format!("SELECT count(*) FROM {table}")).await
}

async fn number(address: &str, query: &str) -> i64 {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let number = client.query_one(query, &[]).await.unwrap().get(0);
    drop(client);
    connection.await.unwrap().unwrap();
    number
}

/// Terminates all connections with this application name, whatever they are doing.
async fn terminate_connections(address: &str, name: &str) {
    let terminate = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
    );
    execute(address, &terminate).await;
}

/// Runs statements on the server at an address.
pub(crate) async fn execute(address: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Returns the error of opening the database at an address.
async fn refusal(address: &str) -> StoreError {
    let opened = at(address).open_now().await;
    opened.expect_err("it should not open")
}
