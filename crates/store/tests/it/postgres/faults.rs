//! Tests in which connections break or the server crashes while sessions are written.

use super::proxy::Proxy;
use super::{at, create, log, replica, user_messages};
use lango_core::{BusyPolicy, Event, NewSession, SessionStore, StoreError, Timestamp, UserId};
use lango_store::Store;
use lango_testkit::postgres::{self, Cluster};
use lango_testkit::session_store_contract::LogBuilder;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Appends exchanges until `stop` is set. Every append must be acknowledged. Returns their number.
async fn write(store: Arc<Store>, id: String, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) -> u64 {
    let session = create(&store, &id).await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    let mut builder = LogBuilder::new(&session);
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        builder = builder.exchange(&written.to_string(), "answer");
        store.append(builder.batch()).await.unwrap();
        written += 1;
        done.fetch_add(1, Ordering::Relaxed);
        let head = store.read_head(&session).await.unwrap();
        assert_eq!(
            head.next_seq,
            3 * written + 1,
            "an event is missing or stored twice"
        );
    }
    assert!(lease.is_valid());
    written
}

/// Asserts that every exchange is stored exactly once, without gaps.
async fn assert_all_stored(store: &Store, id: &str, written: u64) {
    let session = id.into();
    assert_eq!(store.verify(&session).await.unwrap(), 3 * written);
    let events: Vec<Event> = log(store, &session).await;
    let expected: Vec<String> = (0..written).map(|number| number.to_string()).collect();
    assert_eq!(user_messages(&events), expected);
    let head = store.read_head(&session).await.unwrap();
    assert_eq!(head.turns, written);
}

/// Three sessions that are written continuously.
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

    /// Waits until `more` exchanges are stored, or a writer has failed.
    async fn progress(&self, more: u64) {
        let goal = self.done.load(Ordering::Relaxed) + more;
        let is_running = || !self.writers.iter().any(JoinHandle::is_finished);
        while self.done.load(Ordering::Relaxed) < goal && is_running() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Stops the writers, and asserts that everything acknowledged is stored.
    async fn check(self) {
        self.stop.store(true, Ordering::Relaxed);
        for (number, writer) in self.writers.into_iter().enumerate() {
            let written = writer.await.unwrap();
            assert_all_stored(&self.store, &format!("s_{number}"), written).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminated_connections_lose_nothing_and_store_nothing_twice() {
    let address = postgres::fresh_schema();
    // A unique application name, so that connections of other tests are not cut.
    let name = super::unique("cut");
    let load = Load::on(at(&format!("{address}&application_name={name}")));
    for _ in 0..40 {
        load.progress(4).await;
        super::terminate_connections(&address, &name).await;
    }
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_crash_under_load_loses_no_acknowledged_writes() {
    let mut cluster = Cluster::start(&["fsync=on"]);
    let load = Load::on(replica(&cluster.address(), Duration::from_secs(60)));
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
async fn a_request_whose_reply_was_lost_is_not_executed_twice() {
    let address = postgres::fresh_schema();
    let proxy = Proxy::to(&address).await;
    let (store, other) = (at(&proxy.address), at(&address));
    let lost = || proxy.lost.load(Ordering::Relaxed);

    proxy.lose("s_lost");
    let session = create(&store, "s_lost").await;
    assert_eq!(lost(), 1);
    let again = NewSession {
        id: session.clone(),
        user: UserId::from("local"),
        created: Timestamp(1000),
    };
    let again = store.create(again).await.unwrap_err();
    assert!(matches!(again, StoreError::Exists { .. }), "{again}");

    proxy.lose("s_lost");
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(lost(), 2);

    let mut builder = LogBuilder::new(&session);
    for number in 0..5 {
        let text = format!("request {number} whose reply is lost");
        proxy.lose(&text);
        builder = builder.exchange(&text, "answer");
        store.append(builder.batch()).await.unwrap();
        assert_eq!(lost(), 3 + number);
        assert_eq!(store.verify(&session).await.unwrap(), 3 * (number + 1));
    }

    // The same append from a caller whose reply was not lost is a conflict.
    let end = store.read_head(&session).await.unwrap().next_seq;
    let again = LogBuilder::new(&session)
        .at(end - 3)
        .exchange("again", "1")
        .batch();
    let again = store.append(again).await.unwrap_err();
    assert!(matches!(again, StoreError::Conflict { .. }), "{again}");

    // The reply is lost, and another replica takes over before the retry. The append succeeds, because it was stored.
    proxy.lose("stored and taken over");
    let batch = builder.exchange("stored and taken over", "answer").batch();
    let append = store.append(batch);
    let taken = async {
        while lost() < 8 {
            tokio::task::yield_now().await;
        }
        let ended = "UPDATE holds SET until = '-infinity' WHERE session = 's_lost'";
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
async fn silent_connections_cost_one_attempt_and_no_lease() {
    let length = Duration::from_secs(9);
    let proxy = Proxy::to(&postgres::fresh_schema()).await;
    let store = replica(&proxy.address, length);
    let session = create(&store, "s_1").await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    futures_util::future::join_all((0..8).map(|_| store.read_head(&session))).await;
    let made = proxy.made.load(Ordering::Relaxed);
    assert!(made > 6, "there are only {made} connections");
    proxy.silence();
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    store.append(builder.batch()).await.unwrap();
    tokio::time::sleep(length).await;
    assert!(lease.is_valid());
}

#[tokio::test]
async fn retries_end_when_the_lease_has_expired() {
    let mut cluster = Cluster::start(&[]);
    let store = replica(&cluster.address(), Duration::from_secs(2));
    let session = create(&store, "s_1").await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let lease = lease.unwrap_or_else(|error| panic!("{error}"));
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    store.append(builder.batch()).await.unwrap();
    cluster.stop_immediately();
    let second = builder.exchange("two", "2").batch();
    let away = store.append(second.clone()).await.unwrap_err();
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away}");
    let away = store.read_head(&session).await.unwrap_err();
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away}");
    lease.lost().await;
    assert!(!lease.is_valid());
    cluster.start_again();
    assert_eq!(log(&store, &session).await.len(), 3);

    // No other replica has the session, so the error is that the database was unreachable. Then another replica acquires it.
    let away = store.append(second.clone()).await.unwrap_err();
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away}");
    assert!(away.to_string().contains("s_1"), "{away}");
    let other = replica(&cluster.address(), Duration::from_secs(2));
    let taken = other.acquire(&session, BusyPolicy::Refuse).await;
    assert!(taken.is_ok());
    let lost = store.append(second).await.unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { .. }), "{lost}");
}

#[tokio::test]
async fn writes_wait_for_a_standby_to_be_promoted() {
    let address = postgres::fresh_schema();
    at(&address).open_now().await.unwrap();
    let role = "lango_standby";
    super::execute(&address, &format!("CREATE ROLE {role} LOGIN SUPERUSER")).await;
    let standby = format!("ALTER ROLE {role} SET default_transaction_read_only = on");
    super::execute(&address, &standby).await;
    let as_standby = address.replace("postgres://postgres@", &format!("postgres://{role}@"));
    let other = replica(&as_standby, Duration::from_secs(9));
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
