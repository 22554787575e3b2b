//! Tests of group commits: a failing job is rolled back without affecting the others.

use super::*;
use crate::log;
use crate::sqlite::run_now;
use lango_core::{EventBatch, NewSession, SessionId, Timestamp, UserId};
use lango_testkit::session_store_contract::LogBuilder;

/// Opens a connection as the writer thread does, and creates an empty session for each of the jobs `0..=9`.
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
        run_now(connection, &session, |tx, session| {
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
    append_batch(LogBuilder::new(&session(job)).exchange(text, "1").batch())
}

fn append_batch(events: EventBatch) -> Work {
    let durability = log::durability_of(&events);
    let change = move |connection: &mut Connection| {
        run_now(connection, &events, |tx, events| {
            Box::pin(log::append_here(tx, events))
        })
    };
    Work {
        change: Box::new(change),
        durability,
    }
}

/// Returns an append that fails after its events were written, because two requests have the same id.
fn append_that_fails_late(job: u32) -> Work {
    let builder = LogBuilder::new(&session(job)).ask("one");
    append_batch(builder.request("p_1", None).request("p_1", None).batch())
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

/// Returns the number of events and turns of each job that another connection sees.
fn count_visible(path: &Path) -> Vec<(i64, i64)> {
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
    assert_eq!(count_visible(&path), expected);
    assert_stored(&mut connection, &path, &[append(1, "one")]);
}

#[test]
fn only_jobs_that_must_survive_the_machine_wait_for_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open_with_sessions(&folder);
    let exchange = LogBuilder::new(&session(0)).exchange("one", "1").batch();
    for (event, is_synced) in exchange.iter().zip([true, false, true]) {
        let work = append_batch([event.clone()].into());
        let results = store_with(&mut connection, &path, &mut failing_disk(), &[work]);
        assert_eq!(results[0].is_err(), is_synced, "{:?}", event.body);
    }
    let [one, two] = [append(1, "one"), append(2, "one")];
    assert_eq!(durability_of(&[&one, &two]), Durability::Machine);
}

/// Returns a write-ahead log whose sync fails, because it is a pipe.
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
fn a_failing_commit_is_an_error_for_all_jobs_and_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open_with_sessions(&folder);
    // SQLite checks this dangling reference only when it commits.
    connection
        .execute_batch(
            "CREATE TABLE trap (session TEXT REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED);
             CREATE TEMP TRIGGER spring AFTER INSERT ON events WHEN new.session = 's_1'
             BEGIN INSERT INTO trap VALUES ('s_missing'); END;",
        )
        .unwrap();
    let group = [append(0, "one"), append(1, "one"), append(2, "one")];
    let results = store(&mut connection, &path, &group);
    assert!(results.iter().all(Result::is_err), "{results:?}");
    assert_eq!(count_visible(&path), [(0, 0); 10]);
    let group = [append(0, "one"), append(2, "one")];
    assert_stored(&mut connection, &path, &group);
    assert_eq!(count_visible(&path)[..3], [(3, 1), (0, 0), (3, 1)]);
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
    // SQLite decides whether the small append succeeds; the reported result must match.
    assert_eq!(count_visible(&path)[0].0 == 3, results[0].is_ok());
    assert_eq!(count_visible(&path)[1], (0, 0));
    allow(&connection, pages + 1000);
    let large = append(1, &"long ".repeat(100_000));
    assert_stored(&mut connection, &path, &[large, append(2, "one")]);
}
