//! Connections that break and a server that crashes, while sessions are written to.

use super::{at, copy, create, log, says};
use lango_core::{Event, Patience, SessionStore, StoreError};
use lango_store::PostgresStore;
use lango_testkit::postgres::{self, Cluster};
use lango_testkit::session_store_contract::Sketch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Appends exchange after exchange until told to stop. Every one must be acknowledged; gives how many there were.
async fn write(
    store: Arc<PostgresStore>,
    id: String,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) -> u64 {
    let session = create(&store, &id).await;
    let held = store.hold(&session, Patience::Refuse).await;
    let held = held.unwrap_or_else(|error| panic!("{error}"));
    let mut sketch = Sketch::of(&session);
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        sketch = sketch.exchange(&written.to_string(), "answer");
        store.append(sketch.batch()).await.unwrap();
        written += 1;
        done.fetch_add(1, Ordering::Relaxed);
        let head = SessionStore::open(&*store, &session).await.unwrap();
        assert_eq!(
            head.next_seq,
            3 * written + 1,
            "an event is missing or there twice"
        );
    }
    assert!(held.is_had());
    written
}

/// No gap, none lost, none twice.
async fn assert_all_there(store: &PostgresStore, id: &str, written: u64) {
    let session = id.into();
    assert_eq!(store.verify(&session).await.unwrap(), 3 * written);
    let events: Vec<Event> = log(store, &session).await;
    let expected: Vec<String> = (0..written).map(|number| number.to_string()).collect();
    assert_eq!(says(&events), expected);
    let head = SessionStore::open(store, &session).await.unwrap();
    assert_eq!(head.turns, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_in_the_middle_lose_nothing_and_store_nothing_twice() {
    let address = postgres::empty();
    // Its own name for the server, so that no other test's connections are cut.
    let name = super::unique("cut");
    let store = Arc::new(at(&format!("{address}&application_name={name}")));
    let (stop, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let writers: Vec<_> = (0..3)
        .map(|number| {
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(write(Arc::clone(&store), format!("s_{number}"), stop, done))
        })
        .collect();
    for cut in 1..=40 {
        while done.load(Ordering::Relaxed) < cut * 4 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        super::cut(&address, &name).await;
    }
    stop.store(true, Ordering::Relaxed);
    for (number, writer) in writers.into_iter().enumerate() {
        let written = writer.await.unwrap();
        assert_all_there(&store, &format!("s_{number}"), written).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_under_load_loses_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start(&["fsync=on"]);
    let store = Arc::new(copy(&cluster.address(), Duration::from_secs(60)));
    let (stop, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let writers: Vec<_> = (0..3)
        .map(|number| {
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(write(Arc::clone(&store), format!("s_{number}"), stop, done))
        })
        .collect();
    for _ in 0..3 {
        let before = done.load(Ordering::Relaxed);
        while done.load(Ordering::Relaxed) < before + 20 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cluster = tokio::task::spawn_blocking(move || {
            cluster.stop_immediately();
            cluster.start_again();
            cluster
        })
        .await
        .unwrap();
    }
    let before = done.load(Ordering::Relaxed);
    while done.load(Ordering::Relaxed) < before + 20 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for (number, writer) in writers.into_iter().enumerate() {
        let written = writer.await.unwrap();
        assert_all_there(&store, &format!("s_{number}"), written).await;
    }
}

#[tokio::test]
async fn a_server_that_stays_away_is_waited_for_no_longer_than_a_lease() {
    let mut cluster = Cluster::start(&[]);
    let store = copy(&cluster.address(), Duration::from_secs(2));
    let session = create(&store, "s_1").await;
    let held = store.hold(&session, Patience::Refuse).await;
    let held = held.unwrap_or_else(|error| panic!("{error}"));
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    store.append(sketch.batch()).await.unwrap();
    cluster.stop_immediately();
    let away = store.append(sketch.exchange("two", "2").batch()).await;
    let away = away.unwrap_err();
    assert!(
        matches!(
            away,
            StoreError::Unreachable { .. } | StoreError::Lost { .. }
        ),
        "{away}"
    );
    let away = SessionStore::open(&store, &session).await.unwrap_err();
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away}");
    held.lost().await;
    assert!(!held.is_had());
    cluster.start_again();
    assert_eq!(log(&store, &session).await.len(), 3);
}
