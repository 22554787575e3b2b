//! Replicas contend for sessions while leases are expired and connections are cut at random moments. Afterwards every acknowledged
//! batch must be stored once, no refused batch may be stored, and the batches of one lease must be contiguous.

use super::{SHORT, create, log, replica, user_messages};
use lango_core::{BusyPolicy, SessionId, SessionStore, StoreError};
use lango_store::Store;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::LogBuilder;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const REPLICAS: usize = 3;
const SESSIONS: [&str; 2] = ["s_1", "s_2"];

/// The results of one contender's appends.
#[derive(Default)]
struct AppendResults {
    stored: Vec<String>,
    refused: Vec<String>,
    /// Appends whose outcome is unknown.
    unknown: Vec<String>,
}

/// Acquires the lease of a session repeatedly, and appends up to three batches each time.
async fn contend(
    store: Arc<Store>,
    name: String,
    session: SessionId,
    stop: Arc<AtomicBool>,
) -> AppendResults {
    let mut written = AppendResults::default();
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Ok(lease) = store
            .acquire(&session, BusyPolicy::Wait { max_waiters: 64 })
            .await
        else {
            continue;
        };
        let Ok(head) = store.read_head(&session).await else {
            continue;
        };
        let mut builder = LogBuilder::new(&session).at(head.next_seq);
        for part in 0..3 {
            let text = format!("{name}.{turn} {part}");
            builder = builder.exchange(&text, "answer");
            match store.append(builder.batch()).await {
                Ok(()) => written.stored.push(text),
                Err(StoreError::Unreachable { .. }) => written.unknown.push(text),
                Err(StoreError::LeaseLost { .. } | StoreError::Conflict { .. }) => {
                    written.refused.push(text);
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        drop(lease);
    }
    written
}

/// Lets replicas contend while leases are expired and connections are cut. Returns the problems found afterwards.
async fn contend_on_replicas() -> Vec<String> {
    let address = postgres::fresh_schema();
    let name = super::unique("contention");
    let stores: Vec<_> = (0..REPLICAS)
        .map(|_| {
            Arc::new(replica(
                &format!("{address}&application_name={name}"),
                SHORT,
            ))
        })
        .collect();
    for session in SESSIONS {
        create(&stores[0], session).await;
    }
    let stop = Arc::<AtomicBool>::default();
    let mut contenders = Vec::new();
    for (number, store) in stores.iter().enumerate() {
        for session in SESSIONS {
            for task in 0..2 {
                let (store, stop) = (Arc::clone(store), Arc::clone(&stop));
                let name = format!("{number}/{task}");
                let contention = contend(store, name, session.into(), stop);
                contenders.push((session, tokio::spawn(contention)));
            }
        }
    }
    for round in 0..60 {
        tokio::time::sleep(Duration::from_millis(40)).await;
        if round % 10 == 9 {
            super::terminate_connections(&address, &name).await;
        }
        // This looks as if the owner had not renewed its lease in time.
        let ended =
            "UPDATE holds SET until = clock_timestamp() - interval '1 second' WHERE random() < 0.7";
        super::execute(&address, ended).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut known: Vec<(&str, AppendResults)> = Vec::new();
    for (session, contender) in contenders {
        known.push((session, contender.await.unwrap()));
    }
    let mut wrong = Vec::new();
    for session in SESSIONS {
        let of_session = known.iter().filter(|(of, _)| *of == session);
        let of_session: Vec<&AppendResults> = of_session.map(|(_, written)| written).collect();
        let messages = user_messages(&log(&stores[0], &session.into()).await);
        if stores[0].verify(&session.into()).await.ok() != Some(3 * messages.len() as u64) {
            wrong.push("the log is damaged".to_owned());
        }
        wrong.extend(check_log(&messages, &of_session));
    }
    wrong
}

/// Compares the messages in a log with the results of those who wrote it. Returns the problems.
fn check_log(messages: &[String], written: &[&AppendResults]) -> Vec<String> {
    let logged: HashSet<&String> = messages.iter().collect();
    let mut wrong = Vec::new();
    let mut check = |is_right: bool, problem: String| {
        if !is_right {
            wrong.push(problem);
        }
    };
    check(
        logged.len() == messages.len(),
        "a message is stored twice".to_owned(),
    );
    let stored = || written.iter().flat_map(|written| &written.stored);
    let refused = || written.iter().flat_map(|written| &written.refused);
    check(
        stored().all(|text| logged.contains(text)),
        "an acknowledged message is lost".to_owned(),
    );
    let has_refused = refused().any(|text| logged.contains(text));
    check(!has_refused, "a refused message is stored".to_owned());
    let unknown = written.iter().flat_map(|written| &written.unknown);
    let expected: HashSet<&String> = stored().chain(unknown).collect();
    check(
        logged.is_subset(&expected),
        "a message is stored that no contender wrote".to_owned(),
    );
    let leases = messages.iter().filter_map(|text| text.split(' ').next());
    let leases: Vec<&str> = leases.collect();
    let mut seen = HashSet::new();
    for part in leases.chunk_by(|left, right| left == right) {
        check(
            seen.insert(part[0]),
            format!("{} wrote after another contender took over", part[0]),
        );
    }
    let counts = (stored().count(), refused().count());
    check(
        counts.0 > 20 && counts.1 > 0,
        format!("there was no contention: {counts:?}"),
    );
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_of_different_leases_never_interleave() {
    assert_eq!(contend_on_replicas().await, [] as [String; 0]);
}

/// Returns the result of an append by a replica whose lease has expired, after another replica took over but before it wrote
/// anything. Runs the statements `planted` on the database first.
async fn append_after_takeover(planted: &str) -> Result<(), StoreError> {
    let address = postgres::fresh_schema();
    let lease = Duration::from_secs(60);
    let (first, second) = (replica(&address, lease), replica(&address, lease));
    let session = create(&first, "s_1").await;
    super::execute(&address, planted).await;
    let _former = first.acquire(&session, BusyPolicy::Refuse).await.unwrap();
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    first.append(builder.batch()).await.unwrap();
    let ended = "UPDATE holds SET until = clock_timestamp() - interval '1 second'";
    super::execute(&address, ended).await;
    let _owner = second.acquire(&session, BusyPolicy::Refuse).await.unwrap();
    first.append(builder.exchange("two", "2").batch()).await
}

#[tokio::test]
async fn fencing_rejects_appends_of_a_replaced_replica() {
    let refused = append_after_takeover("SELECT 1").await;
    assert!(
        matches!(refused, Err(StoreError::LeaseLost { .. })),
        "{refused:?}"
    );
    // This proves that the check can fail: if all leases have the same fencing token, the append succeeds.
    let planted = "CREATE FUNCTION same_fence() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.fence := 1; RETURN NEW; END';
        CREATE TRIGGER same_fence BEFORE INSERT OR UPDATE ON holds
        FOR EACH ROW EXECUTE FUNCTION same_fence()";
    let written = append_after_takeover(planted).await;
    assert!(written.is_ok(), "{written:?}");
}

/// While an append has passed its checks but is not committed, no other replica can take over the session. So the next owner sees
/// what it wrote. A trigger that waits for a lock pauses the append in the middle.
#[tokio::test]
async fn no_takeover_happens_between_the_check_and_the_commit_of_an_append() {
    const LOCK: i64 = 4711;
    let long = Duration::from_secs(120);
    for is_leased in [true, false] {
        let address = postgres::fresh_schema();
        let name = super::unique("trapped");
        let left = replica(&format!("{address}&application_name={name}"), long);
        let right = replica(&address, long);
        let session = create(&left, "s_1").await;
        let trap = format!(
            "CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_advisory_xact_lock({LOCK}); RETURN NEW; END $$;
             CREATE TRIGGER trap BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION trap()"
        );
        super::execute(&address, &trap).await;
        let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let lock = format!("SELECT pg_advisory_lock({LOCK})");
        client.batch_execute(&lock).await.unwrap();
        let lease = if is_leased {
            left.acquire(&session, BusyPolicy::Refuse).await.ok()
        } else {
            None
        };
        let renewed = format!(
            "SELECT count(*) FROM pg_stat_activity
              WHERE application_name = '{name}' AND state = 'idle' AND query LIKE '%renewed AS%'"
        );
        while is_leased && super::number(&address, &renewed).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The lease expires during the append.
        let end = "UPDATE holds SET until = clock_timestamp() + interval '4 seconds'";
        super::execute(&address, end).await;
        let append = left.append(LogBuilder::new(&session).exchange("one", "1").batch());
        let take_over = async {
            let waiting = format!(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = {LOCK}"
            );
            while super::number(&address, &waiting).await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if is_leased {
                tokio::time::sleep(Duration::from_millis(4100)).await;
            }
            let mut taken = right.acquire(&session, BusyPolicy::Wait { max_waiters: 1 });
            let early = tokio::time::timeout(Duration::from_millis(700), &mut taken).await;
            assert!(early.is_err(), "it was taken over in the middle");
            client
                .batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})"))
                .await
                .unwrap();
            let taken = taken.await.unwrap_or_else(|error| panic!("{error}"));
            let head = right.read_head(&session).await.unwrap();
            (taken, head.next_seq)
        };
        let (append, (_taken, next_seq)) = tokio::join!(append, take_over);
        append.unwrap();
        assert_eq!(next_seq, 4, "the next owner sees the whole log");
        drop(lease);
    }
}
