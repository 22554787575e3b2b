//! `lango store` through the real binary: backups, moves between databases, and compaction.

use crate::archive::add_turns;
use crate::lango::{Lango, TIMEOUT, finish_child, text};
use lango_core::{BusyPolicy, SessionId, SessionStore};
use lango_store::Store;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

fn with_setting<'a>(key: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["-c", key], arguments].concat()
}

/// Returns the export of all sessions of a store.
fn exported(lango: &Lango, key: &str) -> String {
    lango
        .run(&with_setting(key, &["sessions", "export", "--all"]))
        .ok()
        .stdout
}

fn default_store(lango: &Lango) -> String {
    format!("session.store=sqlite:{}", lango.database().display())
}

#[test]
fn a_backup_during_running_turns_is_consistent() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                add_turns(&lango.database(), &session, 5);
            }
        });
        for round in 0..5 {
            let file = format!("copy-{round}.db");
            let ran = lango.run(&["store", "backup", &file]).ok();
            assert!(ran.stdout.contains(&file), "{ran:#?}");
            let path = lango.workspace().join(&file);
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600);
            let store = format!("session.store=sqlite:{file}");
            lango
                .run(&with_setting(&store, &["sessions", "verify", "--all"]))
                .ok();
            lango
                .run(&with_setting(
                    &store,
                    &["run", "-q", "--session", &session, "hello"],
                ))
                .ok();
        }
        has_ended.store(true, Ordering::Relaxed);
    });
    let parts = fs::read_dir(lango.workspace()).unwrap();
    let parts = parts.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|is| is == "part")
    });
    assert_eq!(parts.count(), 0);
}

#[test]
fn a_backup_does_not_overwrite_files() {
    let lango = Lango::new();
    lango
        .run(&["store", "backup", "x.db"])
        .refused(2, &["nothing is stored yet"]);
    lango.session("hello");
    lango.file("x.db", "mine");
    lango
        .run(&["store", "backup", "x.db"])
        .refused(2, &["x.db", "already exists"]);
    assert_eq!(fs::read(lango.workspace().join("x.db")).unwrap(), b"mine");
    let ran = lango.run(&["store", "backup", "nowhere/x.db"]);
    assert!(matches!(ran.code, Some(1..=3)), "{ran:#?}");
    assert!(ran.stderr.contains("nowhere/x.db"), "{ran:#?}");
}

#[test]
fn everything_is_moved_and_sessions_can_be_continued() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    lango.file(
        "docs/deploy.md",
        "# Deploying\n\nThe zeppelin lands at noon.\n",
    );
    lango.run(&["knowledge", "add", "docs"]).ok();
    let from = format!("sqlite:{}", lango.database().display());
    let ran = lango.run(&["store", "move", &from, "sqlite:new.db"]).ok();
    assert!(ran.stdout.contains("moved 1 session, "), "{ran:#?}");
    let place = format!("sqlite:{}", lango.workspace().join("new.db").display());
    let next = format!("next: set session.store = \"{place}\"");
    assert!(ran.stdout.contains(&next), "{ran:#?}");
    let new = "session.store=sqlite:new.db";
    assert_eq!(
        exported(&lango, new),
        exported(&lango, &default_store(&lango))
    );
    lango
        .run(&with_setting(new, &["run", "--session", &session, "hello"]))
        .ok();
    let found = lango
        .run(&with_setting(
            new,
            &["knowledge", "search", "zeppelin", "--json"],
        ))
        .ok()
        .json();
    assert!(
        text(&found["hits"][0]["snippet"]).contains("zeppelin"),
        "{found}"
    );
    lango
        .run(&["store", "move", &from, "sqlite:new.db"])
        .refused(2, &["not empty"]);
    lango
        .run(&["store", "move", &from, &from])
        .refused(2, &["the same"]);
    lango
        .run(&["store", "move", "sqlite:nix.db", "sqlite:b.db"])
        .refused(2, &["there is no database", "nix.db"]);
    lango
        .run(&["store", "move", "mysql:x", "sqlite:b.db"])
        .refused(2, &["`sqlite:` and the path of a file"]);
    assert!(!lango.workspace().join("nix.db").exists());
}

#[test]
fn a_killed_move_is_resumed_where_it_stopped() {
    let lango = Lango::new();
    let session = lango.session("hello");
    for _ in 0..8 {
        add_turns(&lango.database(), &session, 1500);
    }
    let from = format!("sqlite:{}", lango.database().display());
    let arguments = ["store", "move", &from, "sqlite:new.db"];
    let path = lango.workspace().join("new.db");
    let mut kills = 0;
    for so_far in [1_i64, 4000, 12_000] {
        let mut command = lango.command(&arguments);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        // A write lock on the target stops the move in the middle, until the process is killed.
        let stopped = loop {
            assert!(started.elapsed() < TIMEOUT, "the move does not start");
            let Ok(target) = Connection::open(&path) else {
                continue;
            };
            let count = target.query_row("SELECT count(*) FROM events", [], |row| {
                row.get::<_, i64>(0)
            });
            if count.is_ok_and(|count| count >= so_far)
                && target.execute_batch("BEGIN IMMEDIATE").is_ok()
            {
                break target;
            }
        };
        child.kill().unwrap();
        kills += i32::from(finish_child(child, b"").signal == Some(9));
        drop(stopped);
    }
    assert_eq!(kills, 3, "the move finished before the kill");
    let ran = lango.run(&arguments).ok();
    assert!(
        ran.stderr.starts_with("resuming the move from sqlite:"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("moved 1 session, 36003 events"),
        "{ran:#?}"
    );
    let new = "session.store=sqlite:new.db";
    assert_eq!(
        exported(&lango, new),
        exported(&lango, &default_store(&lango))
    );
    lango
        .run(&with_setting(new, &["sessions", "verify", "--all"]))
        .ok();
    lango
        .run(&with_setting(new, &["run", "--session", &session, "hello"]))
        .ok();
}

#[test]
fn a_database_in_use_is_not_moved() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = Store::sqlite(lango.database(), "lango-orchestrator".into()).unwrap();
    let id = SessionId::from(session.as_str());
    let lease = runtime
        .block_on(store.acquire(&id, BusyPolicy::Refuse))
        .unwrap();
    let from = format!("sqlite:{}", lango.database().display());
    let arguments = ["store", "move", &from, "sqlite:new.db"];
    lango
        .run(&arguments)
        .refused(2, &["is in use", "stop the process"]);
    drop(lease);
    lango.run(&arguments).ok();
}

#[test]
fn everything_is_moved_to_postgresql_and_back() {
    let lango = Lango::new();
    lango.session("what files are here?");
    lango.session("hello");
    let from = format!("sqlite:{}", lango.database().display());
    let server = lango_testkit::postgres::fresh_schema();
    // An address with a password, which this server does not require.
    let secret = server.replacen("postgres@", "postgres:s3cret@", 1);
    let ran = lango.run(&["store", "move", &from, &secret]).ok();
    assert!(ran.stdout.contains("moved 2 sessions, "), "{ran:#?}");
    let next = format!("next: set session.store = \"{server}\"");
    assert!(ran.stdout.contains(&next), "{ran:#?}");
    lango
        .run(&["store", "move", &from, &server])
        .refused(2, &["not empty"]);
    lango
        .run(&["store", "move", &server, "sqlite:back.db"])
        .ok();
    let back = exported(&lango, "session.store=sqlite:back.db");
    assert_eq!(back, exported(&lango, &default_store(&lango)));
}

#[test]
fn damage_is_moved_unchanged_and_reported() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let database = Connection::open(lango.database()).unwrap();
    let tampering = "UPDATE events SET author = 'user' WHERE seq = 2";
    assert_eq!(database.execute(tampering, []).unwrap(), 1);
    drop(database);
    let from = format!("sqlite:{}", lango.database().display());
    let ran = lango
        .run(&["store", "move", &from, "sqlite:new.db"])
        .exits(1);
    assert!(
        ran.stderr
            .contains("1 session damaged, as they were before the move"),
        "{ran:#?}"
    );
    let key = "session.store=sqlite:new.db";
    lango
        .run(&with_setting(key, &["sessions", "verify", &session]))
        .exits(1);
}

#[test]
fn compacting_removes_all_deleted_data_from_the_file() {
    let lango = Lango::new();
    lango.session("hello");
    let database = Connection::open(lango.database()).unwrap();
    database
        .execute_batch(
            "CREATE TABLE junk (text); INSERT INTO junk VALUES ('marimbaphone'); DROP TABLE junk;",
        )
        .unwrap();
    drop(database);
    let ran = lango.run(&["store", "compact"]).ok();
    assert!(
        ran.stdout.contains("it contains no deleted data"),
        "{ran:#?}"
    );
    let left = lango
        .stored_files()
        .into_iter()
        .any(|(_, bytes)| bytes.windows(12).any(|window| window == b"marimbaphone"));
    assert!(!left);
}

#[test]
fn sessions_in_postgresql_are_exported_imported_verified_and_deleted() {
    let lango = Lango::new();
    let (one, two) = (
        lango.session("what files are here?"),
        lango.session("hello \u{1}\u{9b}"),
    );
    let server = format!("session.store={}", lango_testkit::postgres::fresh_schema());
    let out = exported(&lango, &default_store(&lango));
    let import = with_setting(&server, &["sessions", "import", "-"]);
    let ran = lango.piped(&import, &out).ok();
    assert!(ran.stderr.contains("imported 2 sessions, "), "{ran:#?}");
    let ran = lango.piped(&import, &out).ok();
    assert!(
        ran.stderr.contains("2 sessions already here and identical"),
        "{ran:#?}"
    );
    lango
        .run(&with_setting(&server, &["sessions", "verify", "--all"]))
        .ok();
    assert_eq!(exported(&lango, &server), out);
    lango
        .run(&with_setting(&server, &["run", "--session", &one, "hello"]))
        .ok();
    let delete = ["sessions", "delete", "--yes", &two];
    let ran = lango.run(&with_setting(&server, &delete)).ok();
    assert!(ran.stdout.starts_with("deleted 1 session; "), "{ran:#?}");
    let list = with_setting(&server, &["sessions", "list", "--json"]);
    let listed = lango.run(&list).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let old = ["sessions", "delete", "--yes", "--older-than", "1ms"];
    lango.run(&with_setting(&server, &old)).ok();
    assert_eq!(lango.run(&list).ok().json(), serde_json::json!([]));
    let ran = lango.run(&with_setting(&server, &["store", "backup", "x.db"]));
    ran.refused(2, &["on a database server", "pg_dump"]);
    assert!(!lango.workspace().join("x.db").exists());
}

#[test]
fn doctor_reports_the_vector_index_and_compact_builds_it() {
    let lango = Lango::new();
    let server = format!(
        "session.store={}",
        lango_testkit::postgres::fresh_schema_with_pgvector()
    );
    let vectors = || {
        let found = lango
            .run(&with_setting(&server, &["doctor", "--json"]))
            .json();
        let found = found.as_array().unwrap().clone();
        let line = found.into_iter().find(|line| line["name"] == "vectors");
        line.unwrap()["detail"].as_str().unwrap().to_owned()
    };
    let detail = vectors();
    assert!(detail.starts_with("plain (pgvector 0."), "{detail}");
    assert!(
        detail.ends_with("is used from 20000 vectors on)"),
        "{detail}"
    );
    // Insert so many vectors that a start does not index them.
    let address = server.strip_prefix("session.store=").unwrap().to_owned();
    let many = r#"INSERT INTO library_maker VALUES (1, '{"provider": "p", "model": "m", "dimensions": 4, "version": 1}');
        INSERT INTO library_collections ("user", name, vectors) VALUES ('ada', 'c', 4000000);
        INSERT INTO library_vectors SELECT (1::bigint << 32) + n, decode(substr(md5(n::text), 1, 8), 'hex')
          FROM generate_series(1, 500) AS n"#;
    execute(&address, many);
    let detail = vectors();
    assert!(detail.contains("`lango store compact`"), "{detail}");
    let ran = lango
        .run(&with_setting(&server, &["store", "compact"]))
        .ok();
    assert!(
        ran.stdout
            .contains("all vectors are indexed by pgvector 0."),
        "{ran:#?}"
    );
    let detail = vectors();
    assert!(detail.starts_with("pgvector 0."), "{detail}");
}

/// Runs SQL statements on the PostgreSQL server at an address.
fn execute(address: &str, statements: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connected = tokio_postgres::connect(address, tokio_postgres::NoTls);
        let (client, connection) = connected.await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
    });
}

#[test]
fn a_killed_move_to_postgresql_is_resumed_where_it_stopped() {
    let lango = Lango::new();
    let session = lango.session("hello");
    for _ in 0..4 {
        add_turns(&lango.database(), &session, 1500);
    }
    let from = format!("sqlite:{}", lango.database().display());
    let server = lango_testkit::postgres::fresh_schema();
    let arguments = ["store", "move", &from, &server];
    let mut command = lango.command(&arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // A lock on the table stops the move in the middle, until the process is killed.
    let (client, connection) = runtime
        .block_on(tokio_postgres::connect(&server, tokio_postgres::NoTls))
        .unwrap();
    let connection = runtime.spawn(connection);
    let started = Instant::now();
    runtime.block_on(async {
        loop {
            assert!(started.elapsed() < TIMEOUT, "the move does not start");
            let count = client.query_one("SELECT count(*) FROM events", &[]).await;
            if count.is_ok_and(|row| row.get::<_, i64>(0) >= 1000) {
                break client
                    .batch_execute("BEGIN; LOCK TABLE events")
                    .await
                    .unwrap();
            }
        }
    });
    child.kill().unwrap();
    assert_eq!(finish_child(child, b"").signal, Some(9));
    drop(client);
    runtime.block_on(connection).unwrap().unwrap();
    let ran = lango.run(&arguments).ok();
    assert!(
        ran.stderr.starts_with("resuming the move from sqlite:"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("moved 1 session, 18003 events"),
        "{ran:#?}"
    );
    let key = format!("session.store={server}");
    assert_eq!(
        exported(&lango, &key),
        exported(&lango, &default_store(&lango))
    );
}
