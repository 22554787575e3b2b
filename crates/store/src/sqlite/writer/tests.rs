//! Groups of jobs in one commit: a job that fails is rolled back alone.

use super::*;
use crate::log;
use crate::sqlite::now;
use lango_core::{Batch, NewSession, SessionId, Timestamp, UserId};
use lango_testkit::session_store_contract::Sketch;

/// Opens a connection as the thread does, with one empty session for each of the jobs `0..=9`.
fn open_with_sessions(folder: &tempfile::TempDir) -> (Connection, PathBuf) {
    let path = folder.path().join("lango.db");
    let mut connection = open_writer(&path).unwrap();
    let sessions: Vec<_> = (0..10).map(|job| create(job, Timestamp(0))).collect();
    assert_stored(&mut connection, &path, &sessions);
    (connection, path)
}

fn create(job: u32, created: Timestamp) -> Work {
    let session = NewSession {
        id: session(job),
        user: UserId::from("local"),
        created,
    };
    let change = move |connection: &mut Connection| {
        now(connection, &session, |tx, session| {
            Box::pin(log::create(tx, session))
        })
    };
    Work {
        change: Box::new(change),
        durability: Durability::Process,
    }
}

fn session(job: u32) -> SessionId {
    SessionId::new(format!("s_{job}"))
}

fn append(job: u32, text: &str) -> Work {
    append_batch(Sketch::of(&session(job)).exchange(text, "1").batch())
}

fn append_batch(events: Batch) -> Work {
    let durability = log::durability_of(&events);
    let change = move |connection: &mut Connection| {
        now(connection, &events, |tx, events| {
            Box::pin(log::append_here(tx, events))
        })
    };
    Work {
        change: Box::new(change),
        durability,
    }
}

/// An append that fails after its events were written: two requests have one id.
fn append_that_fails_late(job: u32) -> Work {
    let sketch = Sketch::of(&session(job)).ask("one");
    append_batch(sketch.request("p_1", None).request("p_1", None).batch())
}

fn store(connection: &mut Connection, path: &Path, group: &[Work]) -> Vec<Result<(), StoreError>> {
    let mut wal = WriteAheadLog::take_over(connection, path).unwrap();
    store_with(connection, path, &mut wal, group)
}

fn store_with(
    connection: &mut Connection,
    path: &Path,
    wal: &mut WriteAheadLog,
    group: &[Work],
) -> Vec<Result<(), StoreError>> {
    let group: Vec<&Work> = group.iter().collect();
    let results = store_group(connection, path, wal, &group);
    assert!(connection.is_autocommit(), "a transaction was left open");
    results
}

fn assert_stored(connection: &mut Connection, path: &Path, group: &[Work]) {
    let results = store(connection, path, group);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// How many events and turns another connection sees of each job.
fn seen(path: &Path) -> Vec<(i64, i64)> {
    let connection = Connection::open(path).unwrap();
    let count = |table: &str, job: u32| {
        let query = format!("SELECT count(*) FROM {table} WHERE session = 's_{job}'");
        connection.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    (0..10)
        .map(|job| (count("events", job), count("turns", job)))
        .collect()
}

#[test]
fn a_failing_job_does_not_affect_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open_with_sessions(&folder);
    let group = [
        append(0, "one"),
        append_that_fails_late(1),
        create(2, Timestamp(5)),
        append(0, "again"),
        append(3, "one"),
    ];
    let results = store(&mut connection, &path, &group);
    assert!(matches!(
        &results[..],
        [
            Ok(()),
            Err(StoreError::Failed { .. }),
            Err(StoreError::Exists { .. }),
            Err(StoreError::Conflict { .. }),
            Ok(())
        ]
    ));
    let mut expected = vec![(0, 0); 10];
    (expected[0], expected[3]) = ((3, 1), (3, 1));
    assert_eq!(seen(&path), expected);
    assert_stored(&mut connection, &path, &[append(1, "one")]);
}

#[test]
fn only_jobs_that_must_survive_the_machine_wait_for_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open_with_sessions(&folder);
    let exchange = Sketch::of(&session(0)).exchange("one", "1").batch();
    for (event, is_synced) in exchange.iter().zip([true, false, true]) {
        let work = append_batch([event.clone()].into());
        let results = store_with(&mut connection, &path, &mut failing_disk(), &[work]);
        assert_eq!(results[0].is_err(), is_synced, "{:?}", event.body);
    }
    let [quiet, binding] = [append(1, "one"), append(2, "one")];
    assert_eq!(durability_of(&[&quiet, &binding]), Durability::Machine);
}

/// A log whose sync fails, because it is a pipe.
fn failing_disk() -> WriteAheadLog {
    let (reader, _writer) = std::io::pipe().unwrap();
    WriteAheadLog::of(std::os::fd::OwnedFd::from(reader).into())
}

#[test]
fn after_a_failed_sync_all_writes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open_with_sessions(&folder);
    let mut wal = failing_disk();
    let group = [append(0, "one"), append(1, "one")];
    let results = store_with(&mut connection, &path, &mut wal, &group);
    assert!(results.iter().all(Result::is_err), "{results:?}");
    let results = store_with(
        &mut connection,
        &path,
        &mut wal,
        &[create(10, Timestamp(0))],
    );
    let error = results[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("start lango again"), "{error}");
    let sessions: i64 = connection
        .query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sessions, 10);
}

#[test]
fn a_commit_that_fails_is_an_error_for_all_jobs_and_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open_with_sessions(&folder);
    // A reference to nothing that SQLite checks at the commit and not before.
    connection
        .execute_batch(
            "CREATE TABLE trap (session TEXT REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED);
             CREATE TEMP TRIGGER spring AFTER INSERT ON events WHEN new.session = 's_1'
             BEGIN INSERT INTO trap VALUES ('nobody'); END;",
        )
        .unwrap();
    let group = [append(0, "one"), append(1, "one"), append(2, "one")];
    let results = store(&mut connection, &path, &group);
    assert!(results.iter().all(Result::is_err), "{results:?}");
    assert_eq!(seen(&path), [(0, 0); 10]);
    let group = [append(0, "one"), append(2, "one")];
    assert_stored(&mut connection, &path, &group);
    assert_eq!(seen(&path)[..3], [(3, 1), (0, 0), (3, 1)]);
}

#[test]
fn a_full_disk_fails_the_jobs_and_later_ones_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open_with_sessions(&folder);
    let pages: i64 = connection
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    let allow = |connection: &Connection, pages: i64| {
        connection
            .execute_batch(&format!("PRAGMA max_page_count = {pages}"))
            .unwrap()
    };
    allow(&connection, pages + 1);
    let large = append(1, &"long ".repeat(100_000));
    let results = store(&mut connection, &path, &[append(0, "one"), large]);
    assert!(
        matches!(&results[1], Err(StoreError::Full { .. })),
        "{results:?}"
    );
    // SQLite decides whether the small one survives; the answer must match.
    assert_eq!(seen(&path)[0].0 == 3, results[0].is_ok());
    assert_eq!(seen(&path)[1], (0, 0));
    allow(&connection, pages + 1000);
    let large = append(1, &"long ".repeat(100_000));
    assert_stored(&mut connection, &path, &[large, append(2, "one")]);
}
