//! Tests with rows that stay locked, as by a replica that was stopped in the middle of a transaction.

use super::{SHORT, number, replica};
use lango_core::{BoxLease, BusyPolicy, SessionId, SessionStore, StoreError};
use lango_store::Store;
use lango_testkit::postgres;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

const WAIT: BusyPolicy = BusyPolicy::Wait { max_waiters: 8 };

/// Locks the row of a session's lease, for as long as the returned client exists.
async fn lock(address: &str, session: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    let lock = format!("BEGIN; SELECT FROM holds WHERE session = '{session}' FOR UPDATE");
    client.batch_execute(&lock).await.unwrap();
    client
}

async fn acquire(store: &Store, session: &str) -> BoxLease {
    let lease = store
        .acquire(&SessionId::from(session), BusyPolicy::Refuse)
        .await;
    lease.unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until a query returns this number.
async fn until(address: &str, query: &str, expected: i64) {
    let reached = async {
        while number(address, query).await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(40), reached).await;
    assert!(reached.is_ok(), "{query} never became {expected}");
}

#[tokio::test]
async fn a_locked_lease_does_not_affect_other_leases() {
    let address = postgres::fresh_schema();
    let (left, right) = (replica(&address, SHORT), replica(&address, SHORT));
    let locked = acquire(&left, "s_1").await;
    let (second, third) = (acquire(&left, "s_2").await, acquire(&left, "s_3").await);
    let lock = lock(&address, "s_1").await;
    tokio::time::sleep(SHORT * 2).await;
    assert!(second.is_valid() && third.is_valid());
    for session in ["s_2", "s_3"] {
        let taken = right.acquire(&session.into(), BusyPolicy::Refuse).await;
        assert!(matches!(taken.err(), Some(StoreError::Busy { .. })));
    }
    // The locked lease does not prevent the release of another one.
    drop(locked);
    drop(third);
    let released =
        "SELECT count(*) FROM holds WHERE session = 's_3' AND until = '-infinity'::timestamptz";
    until(&address, released, 1).await;
    assert!(second.is_valid());
    drop(lock);
}

#[tokio::test]
async fn a_lease_that_is_locked_most_of_the_time_is_renewed_in_between() {
    let address = postgres::fresh_schema();
    let store = replica(&address, SHORT);
    let lease = acquire(&store, "s_1").await;
    let end = tokio::time::Instant::now() + SHORT * 2;
    let locking = |client: Client| async move {
        while tokio::time::Instant::now() < end {
            let lock = "COMMIT; BEGIN; SELECT FROM holds FOR UPDATE; SELECT pg_sleep(0.05)";
            client.batch_execute(lock).await.unwrap();
        }
    };
    let (one, other) = (lock(&address, "").await, lock(&address, "").await);
    tokio::join!(locking(one), locking(other));
    assert!(lease.is_valid());
}

#[tokio::test]
async fn a_lease_that_is_locked_when_it_is_dropped_is_released_later() {
    let address = postgres::fresh_schema();
    let name = super::unique("left");
    let named = format!("{address}&application_name={name}");
    let (left, right) = (
        replica(&named, Duration::from_secs(600)),
        replica(&address, SHORT),
    );
    let lease = acquire(&left, "s_1").await;
    let lock = lock(&address, "s_1").await;
    drop(lease);
    let tried = format!(
        "SELECT count(*) FROM pg_stat_activity
          WHERE application_name = '{name}' AND state = 'idle' AND query LIKE '%released AS%'"
    );
    until(&address, &tried, 1).await;
    lock.batch_execute("COMMIT").await.unwrap();
    let taken = tokio::time::timeout(
        Duration::from_secs(60),
        right.acquire(&SessionId::from("s_1"), WAIT),
    );
    assert!(taken.await.expect("well before the lease expires").is_ok());
}

#[tokio::test]
async fn a_waiter_for_a_locked_lease_does_not_block_the_queue() {
    let address = postgres::fresh_schema();
    let (left, right) = (replica(&address, SHORT), replica(&address, SHORT));
    let lease = acquire(&left, "s_1").await;
    let lock = lock(&address, "s_1").await;
    let session = SessionId::from("s_1");
    let taken = async || {
        drop(
            right
                .acquire(&session, WAIT)
                .await
                .map_err(|error| panic!("{error}")),
        )
    };
    let in_line = async {
        until(&address, "SELECT count(*) FROM hold_line", 2).await;
        drop(lease);
        lock.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(taken(), taken(), in_line);
}
