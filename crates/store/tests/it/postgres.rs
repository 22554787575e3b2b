//! What only a database that many copies share can promise.

mod attachments;
mod clock;
mod contest;
mod copies;
mod faults;
mod locks;
mod pgvector;
mod proxy;
mod rows;
mod start;

use lango_core::{
    Event, EventBody, NewSession, Page, SessionId, SessionStore, StoreError, Timestamp, UserId,
};
use lango_store::{PostgresOptions, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::NoTls;

/// A root agent whose name is no default of anything.
const ROOT: &str = "house-keeper";

/// The store at an address.
fn at(address: &str) -> Store {
    Store::at(address, ROOT.into()).unwrap()
}

/// A lease that a test can wait for, and that a busy machine still renews in time.
const SHORT: Duration = Duration::from_secs(4);

/// A copy with leases of this length.
fn copy(address: &str, lease: Duration) -> Store {
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
    let page = Page {
        from: 1,
        limit: usize::MAX,
    };
    store.read(session, page).await.unwrap()
}

/// What the person said.
fn says(events: &[Event]) -> Vec<String> {
    let said = events.iter().filter_map(|event| match &event.body {
        EventBody::UserMessage { text, .. } => Some(text.to_string()),
        _ => None,
    });
    said.collect()
}

/// A name that nothing else has.
fn unique(prefix: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}_{}_{number}", std::process::id())
}

/// The number of the hold on a session.
async fn fence(address: &str, session: &str) -> i64 {
    number(
        address,
        &format!("SELECT fence FROM holds WHERE session = '{session}'"),
    )
    .await
}

/// How many rows a table has.
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

/// Cuts all connections of this name, in the middle of whatever they are at.
async fn cut(address: &str, name: &str) {
    let cut = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
    );
    execute(address, &cut).await;
}

/// Runs statements on the server at an address.
pub async fn execute(address: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// The error of opening it.
async fn refusal(address: &str) -> StoreError {
    let opened = at(address).open_now().await;
    opened.expect_err("it should not open")
}
