//! Tests in which the database's clock is set back: no lease lasts longer than its length because of that, and none is lost.
//!
//! The schema has its own `clock_timestamp()`, which hides the system's and which a test can change.

use super::{SHORT, execute, replica, unique};
use lango_core::{BusyPolicy, SessionId, SessionStore as _, StoreError};
use lango_testkit::postgres;
use std::time::{Duration, Instant};

/// Creates a schema whose clock is off by the seconds in its table `clock_offset`. Returns its address and name.
async fn with_movable_clock() -> (String, String) {
    let plain = postgres::schema_address(&postgres::server_address(), "public");
    let schema = unique("clock");
    let server = postgres::server_address();
    execute(
        &plain,
        &format!(
            "CREATE SCHEMA {schema};
             CREATE TABLE {schema}.clock_offset (seconds DOUBLE PRECISION);
             INSERT INTO {schema}.clock_offset VALUES (0);
             CREATE FUNCTION {schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
                'SELECT pg_catalog.clock_timestamp() + (SELECT make_interval(secs => seconds) FROM {schema}.clock_offset)'"
        ),
    )
    .await;
    let path = format!("{schema}%2Cpg_catalog");
    (postgres::schema_address(&server, &path), schema)
}

async fn set_back(address: &str, schema: &str) {
    let set = format!("UPDATE {schema}.clock_offset SET seconds = -3600");
    execute(address, &set).await;
}

#[tokio::test]
async fn the_lease_of_a_dead_replica_expires_in_time_if_the_clock_is_set_back() {
    let (address, schema) = with_movable_clock().await;
    let store = replica(&address, SHORT);
    let _other = store
        .acquire(&SessionId::from("s_other"), BusyPolicy::Refuse)
        .await
        .unwrap();
    let dead = format!(
        "INSERT INTO holds (session, holder, fence, until, seconds)
         VALUES ('s_1', 'dead', nextval('hold_fences'), clock_timestamp() + make_interval(secs => {0}), {0})",
        SHORT.as_secs()
    );
    execute(&address, &dead).await;
    set_back(&address, &schema).await;
    let started = Instant::now();
    let waiting = BusyPolicy::Wait { max_waiters: 8 };
    let acquired = store.acquire(&SessionId::from("s_1"), waiting);
    let acquired = tokio::time::timeout(SHORT * 6, acquired).await;
    assert!(
        acquired.is_ok_and(|lease| lease.is_ok()),
        "it is still leased"
    );
    assert!(
        started.elapsed() >= SHORT - Duration::from_secs(1),
        "it was taken too early"
    );
}

#[tokio::test]
async fn the_lease_of_a_live_replica_survives_when_the_clock_is_set_back() {
    let (address, schema) = with_movable_clock().await;
    let (left, right) = (replica(&address, SHORT), replica(&address, SHORT));
    let session = SessionId::from("s_1");
    let lease = left.acquire(&session, BusyPolicy::Refuse).await.unwrap();
    let _other = right
        .acquire(&SessionId::from("s_other"), BusyPolicy::Refuse)
        .await
        .unwrap();
    set_back(&address, &schema).await;
    let started = Instant::now();
    while started.elapsed() < SHORT * 3 {
        assert!(lease.is_valid());
        let taken = right.acquire(&session, BusyPolicy::Refuse).await;
        assert!(matches!(taken.err(), Some(StoreError::Busy { .. })));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
