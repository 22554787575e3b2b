//! Export and import of sessions with attachments: they are imported with their bytes, or not at all.

use crate::archive::in_other;
use crate::lango::{Lango, RunResult};
use lango_core::{AttachmentStore, SessionId, SessionStore, UserId};
use lango_store::Store;
use lango_testkit::session_store_contract::{LogBuilder, attachment};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;

/// Adds turns to a session that refer to two files, to one of them twice.
fn attach(lango: &Lango, session: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open_sqlite(lango.database(), "lango-orchestrator".into()).unwrap();
        let (user, id) = (UserId::from("local"), SessionId::from(session));
        let mut files = Vec::new();
        for (name, bytes) in [("a.txt", &b"one"[..]), ("b.png", b"\0\xff")] {
            let digest = store.put(&user, Arc::from(bytes)).await.unwrap();
            files.push(attachment(name, &digest, bytes.len()));
        }
        let next = store.read_head(&id).await.unwrap().next_seq;
        let turns = LogBuilder::new(&id).at(next).ask("see").attach(&files[0]);
        let turns = turns
            .attach(&files[1])
            .say("lango-orchestrator", "", "seen");
        let turns = turns.finish().ask("again").attach(&files[0]);
        let turns = turns.say("lango-orchestrator", "", "seen");
        store.append(turns.finish().batch()).await.unwrap();
    });
}

/// Creates a session with attachments. Returns its id and its export.
fn export_with_attachments(lango: &Lango) -> (String, String) {
    let session = lango.session("hello");
    attach(lango, &session);
    let ran = lango.run(&["sessions", "export", &session]).ok();
    assert!(ran.stderr.contains(", 2 attachments"), "{ran:#?}");
    (session, ran.stdout)
}

fn import(lango: &Lango, text: impl AsRef<[u8]>) -> RunResult {
    lango.piped(&in_other(&["sessions", "import", "-"]), text)
}

fn count(database: &Path, table: &str) -> i64 {
    let database = Connection::open(database).unwrap();
    let query = format!("SELECT count(*) FROM {table}");
    database.query_row(&query, [], |row| row.get(0)).unwrap()
}

#[test]
fn attachments_are_exported_imported_and_deleted_with_their_session() {
    let lango = Lango::new();
    let (session, whole) = export_with_attachments(&lango);
    assert_eq!(whole.matches("{\"lango_attachment\":1,").count(), 2);
    assert!(whole.starts_with("{\"lango_session\":2,"), "{whole}");
    import(&lango, &whole).ok();
    let again = lango.run(&in_other(&["sessions", "export", &session])).ok();
    assert_eq!(again.stdout, whole);
    let other = lango.workspace().join("other.db");
    assert_eq!(count(&other, "attachments"), 2);
    import(&lango, &whole).ok();
    assert_eq!(count(&other, "attachment_puts"), 0, "it already existed");
    let delete = in_other(&["sessions", "delete", &session, "--yes"]);
    lango.run(&delete).ok();
    for table in ["attachments", "attachment_references", "attachment_puts"] {
        assert_eq!(count(&other, table), 0, "{table}");
    }
}

#[test]
fn an_export_with_wrong_attachments_is_refused_with_the_line() {
    let lango = Lango::new();
    let (_, whole) = export_with_attachments(&lango);
    let lines: Vec<&str> = whole.lines().collect();
    let is_attachment = |line: &&str| line.starts_with("{\"lango_attachment\":");
    let first = lines.iter().position(is_attachment).unwrap();
    let numbered = |line: usize| format!("line {}", line + 1);
    let joined = |lines: &[&str]| format!("{}\n", lines.join("\n"));

    let mut missing = lines.clone();
    missing.remove(first);
    let event = numbered(first + 1);
    import(&lango, joined(&missing)).refused(2, &[&event, "`a.txt` is missing"]);

    let changed = lines[first].replace("b25l", "b25m");
    assert_ne!(changed, lines[first]);
    let mut other = lines.clone();
    other[first] = &changed;
    let place = numbered(first);
    import(&lango, joined(&other)).refused(2, &[&place, "do not match its digest"]);

    let mut unused = lines.clone();
    unused.swap(first - 1, first);
    import(&lango, joined(&unused)).refused(2, &["does not refer to it"]);

    let mut twice = lines.clone();
    twice.insert(first, lines[first]);
    import(&lango, joined(&twice)).refused(2, &["occurs twice"]);

    let mut early = lines.clone();
    early.swap(0, first);
    import(&lango, joined(&early)).refused(2, &["line 1", "before the line of its session"]);

    let listed = lango.run(&in_other(&["sessions", "list", "--json"])).ok();
    assert!(!listed.stdout.contains("hello"), "{listed:#?}");
    import(&lango, &whole).ok();
}

#[test]
fn a_session_with_a_missing_attachment_is_damaged_and_not_exported() {
    let lango = Lango::new();
    let (session, _) = export_with_attachments(&lango);
    let database = Connection::open(lango.database()).unwrap();
    database.execute("DELETE FROM attachments", []).unwrap();
    let ran = lango.run(&["sessions", "verify", &session]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stdout.contains("`a.txt` is missing"), "{ran:#?}");
    let ran = lango.run(&["sessions", "export", &session]);
    assert_eq!(ran.stdout, "");
    ran.refused(1, &["`a.txt` is missing"]);
}
