//! Tests of the SQLite file: its permissions, its lock files, and files that are foreign, damaged or too new.

use super::{append, create, log, open, refusal};
use lango_core::{BusyPolicy, SessionId, SessionStore, StoreError};
use lango_testkit::session_store_contract::LogBuilder;
use rusqlite::Connection;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Barrier;
use std::{fs, thread};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    append(
        &store,
        LogBuilder::new(&session).exchange("one", "1").batch(),
    )
    .await;
    for suffix in ["", "-wal", "-shm"] {
        assert_eq!(
            mode(Path::new(&format!("{}{suffix}", path.display()))),
            0o600,
            "`{suffix}`"
        );
    }
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(path.parent().unwrap().parent().unwrap()), 0o700);
}

#[tokio::test]
async fn the_lock_file_of_a_session_stays_for_its_next_turn_and_is_removed_with_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let (one, other) = (open(&path), open(&path));
    let session = create(&one, "s_1").await;
    let locks = || fs::read_dir(path.with_extension("locks")).map_or(0, Iterator::count);
    for _ in 0..3 {
        let lease = one.acquire(&session, BusyPolicy::Refuse).await.unwrap();
        assert!(other.acquire(&session, BusyPolicy::Refuse).await.is_err());
        drop(lease);
        assert_eq!(locks(), 1);
        let lease = other.acquire(&session, BusyPolicy::Refuse).await.unwrap();
        assert!(one.acquire(&session, BusyPolicy::Refuse).await.is_err());
        drop(lease);
    }
    // Another process found it unlocked and removed it.
    assert_eq!(one.count_leases().await.unwrap(), 0);
    assert_eq!(locks(), 0);
    let lease = one.acquire(&session, BusyPolicy::Refuse).await.unwrap();
    assert!(other.acquire(&session, BusyPolicy::Refuse).await.is_err());
    drop(lease);
    // The least recently used ones are removed.
    for number in 0..1100 {
        let session = SessionId::from(format!("s_{number}").as_str());
        drop(one.acquire(&session, BusyPolicy::Refuse).await.unwrap());
    }
    assert!((1..=1024).contains(&locks()), "{}", locks());
    drop((one, other));
    assert_eq!(locks(), 0);
}

#[tokio::test]
async fn a_file_that_others_can_read_is_restricted_to_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    drop(open(&path));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&path));
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn closing_a_store_leaves_a_single_file_that_can_be_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with space?%23#.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    append(
        &store,
        LogBuilder::new(&session).exchange("one", "1").batch(),
    )
    .await;
    assert_eq!(log(&store, &session).await.len(), 3);
    drop(store);
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["with space?%23#.db"]);
    assert_eq!(log(&open(&path), &session).await.len(), 3);
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    fs::write(&path, "").unwrap();
    create(&open(&path), "s_1").await;
    assert!(open(&path).read_head(&SessionId::from("s_1")).await.is_ok());
}

#[tokio::test]
async fn a_session_is_locked_once_even_if_the_file_is_opened_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("lango.db"), folder.path().join("link"));
    let store = open(&path);
    let session = create(&store, "s_1").await;
    symlink(&path, &link).unwrap();
    let _lease = store.acquire(&session, BusyPolicy::Refuse).await.unwrap();
    let refused = open(&link).acquire(&session, BusyPolicy::Refuse).await;
    assert!(matches!(refused, Err(StoreError::Busy { .. })));
}

#[tokio::test]
async fn a_file_left_by_a_crash_during_its_creation_becomes_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let crashed = folder.path().join("crashed.db");
    let connection = Connection::open(&crashed).unwrap();
    let write = |sql| connection.execute_batch(sql).unwrap();
    let journal = folder.path().join("lango.db-journal");
    write("BEGIN; PRAGMA application_id = 0x6c616e67");
    fs::copy(folder.path().join("crashed.db-journal"), journal).unwrap();
    write("COMMIT");
    fs::copy(&crashed, &path).unwrap();
    create(&open(&path), "s_1").await;
    assert!(open(&path).read_head(&SessionId::from("s_1")).await.is_ok());
}

#[test]
fn a_file_of_another_program_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("foreign.db");
    let journals = folder.path().join("journals.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE songs (title); PRAGMA user_version = 2")
        .unwrap();
    // This connection stays open, so that the write-ahead log is not empty.
    let open_connection = Connection::open(&journals).unwrap();
    open_connection
        .execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA application_id = 7; CREATE TABLE songs (title)",
        )
        .unwrap();
    let files = [
        ("notes.txt", "dear diary".to_owned()),
        ("long.txt", "la ".repeat(5000)),
        ("x.db", "S".to_owned()),
    ];
    for (name, content) in &files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let content = || {
        let mut paths: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        paths
            .into_iter()
            .map(|path| (mode(&path), fs::read(&path).unwrap(), path))
            .collect::<Vec<_>>()
    };
    let before = content();
    for name in ["foreign.db", "journals.db", "notes.txt", "long.txt", "x.db"] {
        let error = refusal(&folder.path().join(name));
        assert!(
            matches!(error, StoreError::Foreign { .. }),
            "{name}: {error}"
        );
    }
    assert!(content() == before, "a file was changed or created");
}

#[test]
fn a_database_of_a_newer_lango_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    drop(open(&path));
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    assert!(matches!(
        refusal(&path),
        StoreError::TooNew {
            found: 99,
            known: 19,
            ..
        }
    ));
    let version: u32 = Connection::open(&path)
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
}

#[test]
fn an_unreadable_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        refusal(folder.path()),
        StoreError::Unreadable { .. }
    ));

    let below_a_file = folder.path().join("file/lango.db");
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(matches!(
        refusal(&below_a_file),
        StoreError::Unreadable { .. }
    ));

    let broken = folder.path().join("broken.db");
    drop(open(&broken));
    let mut bytes = fs::read(&broken).unwrap();
    bytes[100..].fill(0xaa);
    fs::write(&broken, bytes).unwrap();
    let error = refusal(&broken);
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
}

#[test]
fn stores_that_open_at_the_same_time_share_one_new_database() {
    const STARTS: usize = 8;
    for _ in 0..30 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lango.db");
        let barrier = Barrier::new(STARTS);
        thread::scope(|scope| {
            let start = || {
                barrier.wait();
                drop(open(&path));
            };
            let starts: Vec<_> = (0..STARTS).map(|_| scope.spawn(start)).collect();
            starts.into_iter().for_each(|start| start.join().unwrap());
        });
    }
}
