//! Copies that contend for sessions while leases are taken away and connections cut at random moments. The oracle: every
//! batch that was acknowledged is there once, none that was refused is, and the batches of one hold stand together.

use super::{SHORT, copy, create, log, says};
use lango_core::{Patience, SessionId, SessionStore, StoreError};
use lango_store::PostgresStore;
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
    store: Arc<PostgresStore>,
    name: String,
    session: SessionId,
    stop: Arc<AtomicBool>,
) -> Written {
    let mut written = Written::default();
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Ok(held) = store.hold(&session, Patience::Wait { most: 64 }).await else {
            continue;
        };
        let Ok(head) = SessionStore::open(&*store, &session).await else {
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
        drop(held);
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_never_mix_whatever_is_taken_away_or_cut() {
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
    for session in SESSIONS {
        let of_session = || {
            let known = known.iter().filter(|(of, _)| *of == session);
            known.map(|(_, written)| written)
        };
        let id = SessionId::from(session);
        let said = says(&log(&stores[0], &id).await);
        assert_eq!(stores[0].verify(&id).await.unwrap(), 3 * said.len() as u64);
        let there: HashSet<&String> = said.iter().collect();
        assert_eq!(there.len(), said.len(), "something is there twice");
        for written in of_session() {
            assert!(written.stored.iter().all(|words| there.contains(words)));
            assert!(!written.refused.iter().any(|words| there.contains(words)));
        }
        let expected: HashSet<&String> = of_session()
            .flat_map(|written| written.stored.iter().chain(&written.unknown))
            .collect();
        assert!(there.is_subset(&expected));
        let holds: Vec<&str> = said
            .iter()
            .filter_map(|words| words.split(' ').next())
            .collect();
        let mut seen = HashSet::new();
        for part in holds.chunk_by(|left, right| left == right) {
            assert!(
                seen.insert(part[0]),
                "{} wrote after it was succeeded",
                part[0]
            );
        }
        let stored: usize = of_session().map(|written| written.stored.len()).sum();
        let refused: usize = of_session().map(|written| written.refused.len()).sum();
        assert!(
            stored > 20 && refused > 0,
            "{stored} stored, {refused} refused"
        );
    }
}
