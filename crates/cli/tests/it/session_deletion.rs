//! Deletion of sessions by id and by age: nothing is left in any table or in the bytes of the file.

use crate::archive::waiting_session;
use crate::lango::{Lango, TIMEOUT, text};
use crate::serve::TestServer;
use crate::terminal::Terminal;
use lango_core::{
    BusyPolicy, Provenance, SessionId, SessionStore, TaskRecord, TaskStore, Timestamp, Trust,
    UserId,
};
use lango_store::{DocumentPart, NewChunk, NewDocument, Store};
use rusqlite::Connection;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A word that occurs nowhere else.
const MARKER: &str = "xylophonic";

/// Returns whether any file in the home contains a word.
fn is_in_files(lango: &Lango, word: &str) -> bool {
    let files = lango.stored_files();
    files.iter().any(|(_, bytes)| {
        let word = word.as_bytes();
        bytes.windows(word.len()).any(|window| window == word)
    })
}

fn ids(lango: &Lango) -> Vec<String> {
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    let all = listed.as_array().unwrap().clone();
    all.iter().map(|one| text(&one["id"]).to_owned()).collect()
}

/// Adds a document that only this session can search, and a task of one of its turns.
fn attach(lango: &Lango, session: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::sqlite(lango.database(), "lango-orchestrator".into()).unwrap();
        let (user, id) = (UserId::from("local"), SessionId::from(session));
        let collection = store.collection(&user, "notes", Some(&id)).await.unwrap();
        let chunk = |at: u64| NewChunk {
            heading: format!("{MARKER} heading"),
            text: format!("{MARKER} words {at}"),
            position: at,
            words: 3,
            vector: None,
        };
        let document = NewDocument {
            collection,
            source: Provenance {
                name: format!("{MARKER}.md").into(),
                trust: Trust::Trusted,
            },
            title: MARKER.into(),
            hash: [7; 32],
            size: 9,
            added: Timestamp(1),
        };
        let piece = DocumentPart {
            document: Arc::new(document),
            before: 0,
            is_last: true,
            chunks: (0..30).map(chunk).collect(),
        };
        store.write_documents(vec![piece], None).await.unwrap();
        let turn = lango.events(session)[0]["turn"].clone();
        let task = TaskRecord {
            id: text(&turn).into(),
            user,
            context: "conversation".into(),
            state: "completed".into(),
            is_running: false,
            updated: Timestamp(5),
            body: MARKER.into(),
            revision: 1,
            attempts: 0,
        };
        store.insert(task, MARKER).await.unwrap();
    });
}

#[test]
fn a_deleted_session_leaves_nothing_in_the_tables_or_in_the_file() {
    let lango = Lango::new();
    let others: Vec<String> = (0..4)
        .map(|number| lango.session(&format!("what files are here? {number}")))
        .collect();
    let long = format!("remember {MARKER} and {MARKER} {}", "again ".repeat(3000));
    let session = lango.session(MARKER);
    for other in &others {
        // Interleave the turns, so that the sessions share database pages.
        for question in [MARKER, long.as_str(), "what files are here?"] {
            lango
                .piped(&["run", "-q", "--session", &session, "-"], question)
                .ok();
            lango.run(&["run", "-q", "--session", other, "hello"]).ok();
        }
    }
    attach(&lango, &session);
    assert!(is_in_files(&lango, MARKER));
    let before: Vec<Vec<Value>> = others.iter().map(|id| lango.events(id)).collect();
    let ran = lango.run(&["sessions", "delete", &session, "--yes"]).ok();
    assert_eq!(
        ran.stdout,
        "deleted 1 session; no data of it is left in the database file\n"
    );
    assert!(!is_in_files(&lango, MARKER), "its text is still stored");
    assert!(!is_in_files(&lango, &session), "its id is still stored");
    let database = Connection::open(lango.database()).unwrap();
    for table in [
        "library_documents",
        "library_chunks",
        "library_collections",
        "tasks",
    ] {
        let count: i64 = database
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(count, 0, "{table}");
    }
    let after: Vec<Vec<Value>> = others.iter().map(|id| lango.events(id)).collect();
    assert_eq!(after, before);
    lango.run(&["sessions", "verify", "--all"]).ok();
    lango
        .run(&["sessions", "show", &session])
        .refused(2, &[&session]);
}

#[test]
fn a_deleted_session_leaves_nothing_while_a_server_has_the_database_open() {
    let server = TestServer::start();
    let session = server.lango.session(MARKER);
    assert!(!server.ask("hello").is_empty());
    let delete = ["sessions", "delete", "--yes", &session];
    let ran = server.lango.run(&delete).ok();
    assert!(ran.stdout.contains("no data of it is left"), "{ran:#?}");
    assert!(!is_in_files(&server.lango, MARKER));
    assert!(!server.ask("hello again").is_empty());
}

#[test]
fn a_busy_session_is_not_deleted_and_neither_are_others_of_the_same_command() {
    let lango = Lango::new();
    let (one, two) = (lango.session("a"), lango.session("b"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = Store::sqlite(lango.database(), "lango-orchestrator".into()).unwrap();
    let id = SessionId::from(two.as_str());
    let lease = runtime
        .block_on(store.acquire(&id, BusyPolicy::Refuse))
        .unwrap();
    let ran = lango.run(&["sessions", "delete", "--yes", &one, &two]);
    ran.refused(1, &[&two, "busy"]);
    assert_eq!(ids(&lango).len(), 2);
    let ran = lango
        .run(&["sessions", "delete", "--yes", "--older-than", "1ms"])
        .ok();
    assert!(
        ran.stderr
            .contains("1 session not deleted, because a turn is running"),
        "{ran:#?}"
    );
    assert_eq!(ids(&lango), [two.as_str()]);
    drop(lease);
    lango.run(&["sessions", "delete", "--yes", &two]).ok();
    assert!(ids(&lango).is_empty());
}

#[test]
fn deletion_needs_a_confirmation_and_without_a_terminal_nothing_is_deleted() {
    let lango = Lango::new();
    let session = lango.session("my title");
    let ran = lango.run(&["sessions", "delete", &session]);
    ran.refused(2, &["no terminal", "--yes"]);
    let ran = lango.run(&["sessions", "delete", "--older-than", "1ms"]);
    ran.refused(2, &["no terminal", "--yes"]);
    let mut terminal = Terminal::start(&lango, 100, &["sessions", "delete", &session], &[]);
    let asked = terminal.wait_for("[y/N] ");
    assert!(
        asked.contains(&session) && asked.contains("my title"),
        "{asked}"
    );
    terminal.press("n\r");
    let (code, printed) = terminal.end();
    assert!(printed.contains("nothing was deleted"), "{printed}");
    assert!(!printed.contains("error:"), "{printed}");
    assert_eq!(code, Some(0));
    assert_eq!(ids(&lango).len(), 1);
    let mut terminal = Terminal::start(&lango, 100, &["sessions", "delete", &session], &[]);
    terminal.wait_for("[y/N] ");
    terminal.press("y\r");
    assert_eq!(terminal.end().0, Some(0));
    assert!(ids(&lango).is_empty());
    lango
        .run(&["sessions", "delete", "--yes", "s_nope"])
        .refused(2, &["s_nope"]);
}

/// Makes a session older by this many days.
fn make_old(lango: &Lango, session: &str, days: i64) {
    let database = Connection::open(lango.database()).unwrap();
    let sql = "UPDATE sessions SET updated = updated - ?2 * 86400000 WHERE id = ?1";
    let changed = database.execute(sql, rusqlite::params![session, days]);
    assert_eq!(changed.unwrap(), 1);
}

#[test]
fn old_sessions_can_be_deleted_except_those_that_wait_for_an_approval() {
    let lango = Lango::new();
    let waits = waiting_session(&lango);
    let [old, older, new] = ["old", "older", "new"].map(|title| lango.session(title));
    for (session, days) in [(&waits, 50), (&old, 31), (&older, 40)] {
        make_old(&lango, session, days);
    }
    let delete = ["sessions", "delete", "--yes"];
    let ran = lango
        .run(&[&delete[..], &["--older-than", "35d"]].concat())
        .ok();
    assert!(ran.stdout.starts_with("deleted 1 session; "), "{ran:#?}");
    let ran = lango.run(&[&delete[..], &["--expired"]].concat());
    ran.refused(2, &["session.ttl is not set", "--older-than"]);
    let expired = [&["-c", "session.ttl=30d"], &delete[..], &["--expired"]].concat();
    let ran = lango.run(&expired).ok();
    assert!(ran.stdout.starts_with("deleted 1 session; "), "{ran:#?}");
    let ran = lango.run(&expired).ok();
    assert_eq!(ran.stdout, "no session or task is that old\n");
    let mut left = ids(&lango);
    left.sort();
    let mut expected = [new, waits.clone()];
    expected.sort();
    assert_eq!(left, expected);
    // By id it can be deleted, together with its approval request.
    lango.run(&[&delete[..], &[&waits]].concat()).ok();
    let listed = lango.run(&["approvals", "list", "--json"]).ok().json();
    assert_eq!(listed["waiting"], serde_json::json!([]));
}

#[test]
fn a_server_deletes_expired_sessions_and_keeps_the_others() {
    let lango = Lango::new();
    let waits = waiting_session(&lango);
    let (old, new) = (lango.session("old"), lango.session("new"));
    make_old(&lango, &waits, 3);
    make_old(&lango, &old, 3);
    let server = TestServer::start_with(lango, &["-c", "session.ttl=2d"]);
    let started = Instant::now();
    loop {
        let mut left = ids(&server.lango);
        left.sort();
        let mut expected = [waits.clone(), new.clone()];
        expected.sort();
        if left == expected {
            break;
        }
        assert!(started.elapsed() < TIMEOUT, "{left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!server.ask("hello").is_empty());
    server.lango.run(&["sessions", "verify", "--all"]).ok();
}

#[test]
fn without_a_ttl_a_server_keeps_everything_and_a_project_cannot_set_one() {
    let lango = Lango::new();
    let old = lango.session("old");
    make_old(&lango, &old, 9000);
    lango.file("lango.toml", "session.ttl = \"1s\"\n");
    let ran = lango.run(&["sessions", "delete", "--yes", "--expired"]);
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    let server = TestServer::start_with(lango, &[]);
    assert!(!server.ask("hello").is_empty());
    assert_eq!(ids(&server.lango), [old]);
}

#[test]
fn an_invalid_ttl_is_refused() {
    let lango = Lango::new();
    for (ttl, why) in [
        ("0d", "greater than zero"),
        ("soon", "a duration"),
        ("90", "unit"),
    ] {
        let key = format!("session.ttl={ttl}");
        lango
            .run(&["-c", &key, "sessions", "list"])
            .refused(2, &["session.ttl", why]);
    }
    let shown = lango
        .run(&["-c", "session.ttl=720h", "config", "show"])
        .ok()
        .stdout;
    assert!(shown.contains("session.ttl = \"30d\""), "{shown}");
}

#[test]
fn an_interrupted_deletion_is_finished_by_the_next_one() {
    let lango = Lango::new();
    let (half, new) = (lango.session("half"), lango.session("new"));
    let database = Connection::open(lango.database()).unwrap();
    let hide = "UPDATE sessions SET user = char(1) || user WHERE id = ?1";
    assert_eq!(database.execute(hide, [&half]).unwrap(), 1);
    drop(database);
    assert_eq!(ids(&lango), [new]);
    lango
        .run(&["sessions", "delete", "--yes", "--older-than", "9d"])
        .ok();
    let database = Connection::open(lango.database()).unwrap();
    for table in ["events", "turns"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE session = ?1");
        let count: i64 = database.query_row(&sql, [&half], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }
}
