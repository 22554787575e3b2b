//! Rows that somebody has locked and does not let go of, as a copy that was stopped in the middle would.

use super::{SHORT, copy, number};
use lango_core::{BoxLease, BusyPolicy, SessionId, SessionStore, StoreError};
use lango_store::Store;
use lango_testkit::postgres;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

const WAIT: BusyPolicy = BusyPolicy::Wait { max_waiters: 8 };

/// Somebody who has locked the row of a session's hold.
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

/// Waits until a query gives this number.
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
async fn a_lease_that_somebody_has_locked_takes_no_other_one_down() {
    let address = postgres::empty();
    let (left, right) = (copy(&address, SHORT), copy(&address, SHORT));
    let locked = acquire(&left, "s_1").await;
    let (second, third) = (acquire(&left, "s_2").await, acquire(&left, "s_3").await);
    let lock = lock(&address, "s_1").await;
    tokio::time::sleep(SHORT * 2).await;
    assert!(second.is_valid() && third.is_valid());
    for session in ["s_2", "s_3"] {
        let taken = right.acquire(&session.into(), BusyPolicy::Refuse).await;
        assert!(matches!(taken.err(), Some(StoreError::Busy { .. })));
    }
    // Nor does it keep another one from being let go of.
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
    let address = postgres::empty();
    let store = copy(&address, SHORT);
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
async fn a_lease_that_was_locked_when_it_was_given_up_is_let_go_of_later() {
    let address = postgres::empty();
    let name = super::unique("left");
    let named = format!("{address}&application_name={name}");
    let (left, right) = (
        copy(&named, Duration::from_secs(600)),
        copy(&address, SHORT),
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
    assert!(taken.await.expect("well before the lease ends").is_ok());
}

#[tokio::test]
async fn nobody_who_waits_for_a_lock_keeps_others_from_the_line() {
    let address = postgres::empty();
    let (left, right) = (copy(&address, SHORT), copy(&address, SHORT));
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
