//! Connections that break and a server that crashes, while sessions are written to.

use super::proxy::Proxy;
use super::{at, copy, create, log, says};
use lango_core::{BusyPolicy, Event, NewSession, SessionStore, StoreError, Timestamp, UserId};
use lango_store::Store;
use lango_testkit::postgres::{self, Cluster};
use lango_testkit::session_store_contract::Sketch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Appends exchange after exchange until told to stop. Every one must be acknowledged; gives how many there were.
async fn write(store: Arc<Store>, id: String, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) -> u64 {
    let session = create(&store, &id).await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    let mut sketch = Sketch::of(&session);
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        sketch = sketch.exchange(&written.to_string(), "answer");
        store.append(sketch.batch()).await.unwrap();
        written += 1;
        done.fetch_add(1, Ordering::Relaxed);
        let head = store.open(&session).await.unwrap();
        assert_eq!(
            head.next_seq,
            3 * written + 1,
            "an event is missing or there twice"
        );
    }
    assert!(lease.is_valid());
    written
}

/// No gap, none lost, none twice.
async fn assert_all_there(store: &Store, id: &str, written: u64) {
    let session = id.into();
    assert_eq!(store.verify(&session).await.unwrap(), 3 * written);
    let events: Vec<Event> = log(store, &session).await;
    let expected: Vec<String> = (0..written).map(|number| number.to_string()).collect();
    assert_eq!(says(&events), expected);
    let head = store.open(&session).await.unwrap();
    assert_eq!(head.turns, written);
}

/// Three sessions that are written to all the time.
struct Load {
    store: Arc<Store>,
    writers: Vec<JoinHandle<u64>>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

impl Load {
    fn on(store: Store) -> Self {
        let (store, stop) = (Arc::new(store), Arc::<AtomicBool>::default());
        let done = Arc::<AtomicU64>::default();
        let writer = |number| {
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(write(Arc::clone(&store), format!("s_{number}"), stop, done))
        };
        let writers = (0..3).map(writer).collect();
        Self {
            store,
            writers,
            stop,
            done,
        }
    }

    /// Waits until so many more are stored, or a writer gave up.
    async fn progress(&self, more: u64) {
        let goal = self.done.load(Ordering::Relaxed) + more;
        let is_going_on = || !self.writers.iter().any(JoinHandle::is_finished);
        while self.done.load(Ordering::Relaxed) < goal && is_going_on() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Stops, and sees whether all that was acknowledged is there.
    async fn check(self) {
        self.stop.store(true, Ordering::Relaxed);
        for (number, writer) in self.writers.into_iter().enumerate() {
            let written = writer.await.unwrap();
            assert_all_there(&self.store, &format!("s_{number}"), written).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_in_the_middle_lose_nothing_and_store_nothing_twice() {
    let address = postgres::empty();
    // Its own name for the server, so that no other test's connections are cut.
    let name = super::unique("cut");
    let load = Load::on(at(&format!("{address}&application_name={name}")));
    for _ in 0..40 {
        load.progress(4).await;
        super::cut(&address, &name).await;
    }
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_under_load_loses_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start(&["fsync=on"]);
    let load = Load::on(copy(&cluster.address(), Duration::from_secs(60)));
    for _ in 0..3 {
        load.progress(20).await;
        cluster = tokio::task::spawn_blocking(move || {
            cluster.stop_immediately();
            cluster.start_again();
            cluster
        })
        .await
        .unwrap();
    }
    load.progress(20).await;
    load.check().await;
}

#[tokio::test]
async fn what_was_carried_out_though_its_answer_was_lost_is_not_done_again() {
    let address = postgres::empty();
    let proxy = Proxy::to(&address).await;
    let (store, other) = (at(&proxy.address), at(&address));
    let lost = || proxy.lost.load(Ordering::Relaxed);

    proxy.lose("s_made");
    let session = create(&store, "s_made").await;
    assert_eq!(lost(), 1);
    let again = NewSession {
        id: session.clone(),
        user: UserId::from("local"),
        created: Timestamp(1000),
    };
    let again = store.create(again).await.unwrap_err();
    assert!(matches!(again, StoreError::Exists { .. }), "{again}");

    proxy.lose("s_made");
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(lost(), 2);

    let mut sketch = Sketch::of(&session);
    for number in 0..5 {
        let words = format!("words {number} that go and never come back");
        proxy.lose(&words);
        sketch = sketch.exchange(&words, "answer");
        store.append(sketch.batch()).await.unwrap();
        assert_eq!(lost(), 3 + number);
        assert_eq!(store.verify(&session).await.unwrap(), 3 * (number + 1));
    }

    // The same words from somebody whose answer was not lost are a second time.
    let end = store.open(&session).await.unwrap().next_seq;
    let again = Sketch::of(&session)
        .at(end - 3)
        .exchange("again", "1")
        .batch();
    let again = store.append(again).await.unwrap_err();
    assert!(matches!(again, StoreError::Conflict { .. }), "{again}");

    // Lost, and then taken over before it could be asked what became of it: it was stored, and that is the truth.
    proxy.lose("stored and taken over");
    let batch = sketch.exchange("stored and taken over", "answer").batch();
    let append = store.append(batch);
    let taken = async {
        while lost() < 8 {
            tokio::task::yield_now().await;
        }
        let ended = "UPDATE holds SET until = '-infinity' WHERE session = 's_made'";
        super::execute(&address, ended).await;
        other.acquire(&session, BusyPolicy::Refuse).await
    };
    let (append, taken) = tokio::join!(append, taken);
    append.unwrap();
    assert!(taken.is_ok());
    assert_eq!(other.verify(&session).await.unwrap(), 18);
    drop(lease);
}

#[tokio::test]
async fn a_way_that_is_lost_without_a_word_costs_one_try_and_no_lease() {
    let length = Duration::from_secs(9);
    let proxy = Proxy::to(&postgres::empty()).await;
    let store = copy(&proxy.address, length);
    let session = create(&store, "s_1").await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    futures_util::future::join_all((0..8).map(|_| store.open(&session))).await;
    let made = proxy.made.load(Ordering::Relaxed);
    assert!(made > 6, "there are only {made} connections to lose");
    proxy.silence();
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    store.append(sketch.batch()).await.unwrap();
    tokio::time::sleep(length).await;
    assert!(lease.is_valid());
}

#[tokio::test]
async fn a_server_that_stays_away_is_waited_for_no_longer_than_a_lease() {
    let mut cluster = Cluster::start(&[]);
    let store = copy(&cluster.address(), Duration::from_secs(2));
    let session = create(&store, "s_1").await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    store.append(sketch.batch()).await.unwrap();
    cluster.stop_immediately();
    let second = sketch.exchange("two", "2").batch();
    let away = store.append(second.clone()).await.unwrap_err();
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away}");
    let away = store.open(&session).await.unwrap_err();
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away}");
    lease.lost().await;
    assert!(!lease.is_valid());
    cluster.start_again();
    assert_eq!(log(&store, &session).await.len(), 3);

    // Nobody has the session: it was the database that was away. Then somebody does.
    let away = store.append(second.clone()).await.unwrap_err();
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away}");
    assert!(away.to_string().contains("s_1"), "{away}");
    let other = copy(&cluster.address(), Duration::from_secs(2));
    let taken = other.acquire(&session, BusyPolicy::Refuse).await;
    assert!(taken.is_ok());
    let lost = store.append(second).await.unwrap_err();
    assert!(matches!(lost, StoreError::Lost { .. }), "{lost}");
}

#[tokio::test]
async fn a_standby_that_is_promoted_in_time_is_waited_for() {
    let address = postgres::empty();
    at(&address).open_now().await.unwrap();
    let role = "lango_standby";
    super::execute(&address, &format!("CREATE ROLE {role} LOGIN SUPERUSER")).await;
    let standby = format!("ALTER ROLE {role} SET default_transaction_read_only = on");
    super::execute(&address, &standby).await;
    let as_standby = address.replace("postgres://postgres@", &format!("postgres://{role}@"));
    let other = copy(&as_standby, Duration::from_secs(9));
    let promoted = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let promote = format!("ALTER ROLE {role} SET default_transaction_read_only = off");
        super::execute(&address, &promote).await;
    };
    let created = create(&other, "s_2");
    let (_, id) = tokio::join!(promoted, created);
    assert_eq!(log(&other, &id).await, []);
    drop(other);
    super::execute(&address, &format!("DROP ROLE {role}")).await;
}
