//! Copies that contend for sessions while leases are taken away and connections cut at random moments. The oracle: every
//! batch that was acknowledged is there once, none that was refused is, and the batches of one hold stand together.

use super::{SHORT, copy, create, log, says};
use lango_core::{BusyPolicy, SessionId, SessionStore, StoreError};
use lango_store::Store;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::Sketch;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const COPIES: usize = 3;
const SESSIONS: [&str; 2] = ["s_1", "s_2"];

/// What one contender knows of what it wrote.
#[derive(Default)]
struct Written {
    stored: Vec<String>,
    refused: Vec<String>,
    /// Whether it is there nobody can know.
    unknown: Vec<String>,
}

/// Holds a session again and again, and writes three batches each time, or as many as it is let.
async fn contend(
    store: Arc<Store>,
    name: String,
    session: SessionId,
    stop: Arc<AtomicBool>,
) -> Written {
    let mut written = Written::default();
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
        let Ok(head) = store.open(&session).await else {
            continue;
        };
        let mut sketch = Sketch::of(&session).at(head.next_seq);
        for part in 0..3 {
            let words = format!("{name}.{turn} {part}");
            sketch = sketch.exchange(&words, "answer");
            match store.append(sketch.batch()).await {
                Ok(()) => written.stored.push(words),
                Err(StoreError::Unreachable { .. }) => written.unknown.push(words),
                Err(StoreError::Lost { .. } | StoreError::Conflict { .. }) => {
                    written.refused.push(words);
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        drop(lease);
    }
    written
}

/// Lets copies contend while leases are taken away and connections cut, and gives what is wrong afterwards.
async fn contest() -> Vec<String> {
    let address = postgres::empty();
    let name = super::unique("contest");
    let stores: Vec<_> = (0..COPIES)
        .map(|_| Arc::new(copy(&format!("{address}&application_name={name}"), SHORT)))
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
                let contest = contend(store, name, session.into(), stop);
                contenders.push((session, tokio::spawn(contest)));
            }
        }
    }
    for round in 0..60 {
        tokio::time::sleep(Duration::from_millis(40)).await;
        if round % 10 == 9 {
            super::cut(&address, &name).await;
        }
        // As if the holder had been silent for the length of a lease.
        let ended =
            "UPDATE holds SET until = clock_timestamp() - interval '1 second' WHERE random() < 0.7";
        super::execute(&address, ended).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut known: Vec<(&str, Written)> = Vec::new();
    for (session, contender) in contenders {
        known.push((session, contender.await.unwrap()));
    }
    let mut wrong = Vec::new();
    for session in SESSIONS {
        let of_session = known.iter().filter(|(of, _)| *of == session);
        let of_session: Vec<&Written> = of_session.map(|(_, written)| written).collect();
        let said = says(&log(&stores[0], &session.into()).await);
        if stores[0].verify(&session.into()).await.ok() != Some(3 * said.len() as u64) {
            wrong.push("the log is damaged".to_owned());
        }
        wrong.extend(judge(&said, &of_session));
    }
    wrong
}

/// What is wrong with a log, by what those who wrote it know.
fn judge(said: &[String], written: &[&Written]) -> Vec<String> {
    let there: HashSet<&String> = said.iter().collect();
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    check(
        there.len() == said.len(),
        "something is there twice".to_owned(),
    );
    let stored = || written.iter().flat_map(|written| &written.stored);
    let refused = || written.iter().flat_map(|written| &written.refused);
    check(
        stored().all(|words| there.contains(words)),
        "something is lost".to_owned(),
    );
    let is_refused = refused().any(|words| there.contains(words));
    check(
        !is_refused,
        "something that was refused is there".to_owned(),
    );
    let unknown = written.iter().flat_map(|written| &written.unknown);
    let expected: HashSet<&String> = stored().chain(unknown).collect();
    check(
        there.is_subset(&expected),
        "nobody wrote what is there".to_owned(),
    );
    let holds = said.iter().filter_map(|words| words.split(' ').next());
    let holds: Vec<&str> = holds.collect();
    let mut seen = HashSet::new();
    for part in holds.chunk_by(|left, right| left == right) {
        check(
            seen.insert(part[0]),
            format!("{} wrote after it was succeeded", part[0]),
        );
    }
    let counts = (stored().count(), refused().count());
    check(
        counts.0 > 20 && counts.1 > 0,
        format!("there was no contest: {counts:?}"),
    );
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_never_mix_whatever_is_taken_away_or_cut() {
    assert_eq!(contest().await, [] as [String; 0]);
}

/// What becomes of an append by a copy whose lease ended, once another has taken over and before that one wrote anything.
/// `planted` is done to the database first.
async fn append_of_a_copy_that_was_succeeded(planted: &str) -> Result<(), StoreError> {
    let address = postgres::empty();
    let lease = Duration::from_secs(60);
    let (first, second) = (copy(&address, lease), copy(&address, lease));
    let session = create(&first, "s_1").await;
    super::execute(&address, planted).await;
    let _former = first.acquire(&session, BusyPolicy::Refuse).await.unwrap();
    let mut sketch = Sketch::of(&session).exchange("one", "1");
    first.append(sketch.batch()).await.unwrap();
    let ended = "UPDATE holds SET until = clock_timestamp() - interval '1 second'";
    super::execute(&address, ended).await;
    let _holder = second.acquire(&session, BusyPolicy::Refuse).await.unwrap();
    first.append(sketch.exchange("two", "2").batch()).await
}

#[tokio::test]
async fn a_copy_that_was_succeeded_writes_nothing_because_of_its_fence() {
    let refused = append_of_a_copy_that_was_succeeded("SELECT 1").await;
    assert!(
        matches!(refused, Err(StoreError::Lost { .. })),
        "{refused:?}"
    );
    // Where every hold has the same number, checking it says nothing: then it is written, and this check sees it.
    let planted = "CREATE FUNCTION same_fence() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.fence := 1; RETURN NEW; END';
        CREATE TRIGGER same_fence BEFORE INSERT OR UPDATE ON holds
        FOR EACH ROW EXECUTE FUNCTION same_fence()";
    let written = append_of_a_copy_that_was_succeeded(planted).await;
    assert!(written.is_ok(), "{written:?}");
}

/// An append that passed its checks and is not committed yet keeps everybody from taking the session over, so that whoever
/// does sees what it wrote. It is stopped in the middle by a trigger that waits for a lock of ours.
#[tokio::test]
async fn nobody_takes_over_between_the_check_of_an_append_and_its_commit() {
    const LOCK: i64 = 4711;
    let long = Duration::from_secs(120);
    for is_held in [true, false] {
        let address = postgres::empty();
        let name = super::unique("trapped");
        let left = copy(&format!("{address}&application_name={name}"), long);
        let right = copy(&address, long);
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
        let lease = match is_held {
            true => left.acquire(&session, BusyPolicy::Refuse).await.ok(),
            false => None,
        };
        let renewed = format!(
            "SELECT count(*) FROM pg_stat_activity
              WHERE application_name = '{name}' AND state = 'idle' AND query LIKE '%renewed AS%'"
        );
        while is_held && super::number(&address, &renewed).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // It runs out while the append is under way.
        let end = "UPDATE holds SET until = clock_timestamp() + interval '4 seconds'";
        super::execute(&address, end).await;
        let append = left.append(Sketch::of(&session).exchange("one", "1").batch());
        let take_over = async {
            let waiting = format!(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = {LOCK}"
            );
            while super::number(&address, &waiting).await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if is_held {
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
            let head = right.open(&session).await.unwrap();
            (taken, head.next_seq)
        };
        let (append, (_taken, next_seq)) = tokio::join!(append, take_over);
        append.unwrap();
        assert_eq!(next_seq, 4, "whoever takes over sees all there is");
        drop(lease);
    }
}
