//! Export, verification and import of sessions: a session is imported byte for byte, or not at all.

use crate::lango::{Lango, RunResult, finish_child, of_type, text};
use crate::terminal::Terminal;
use lango_core::{BusyPolicy, SessionId, SessionStore};
use lango_store::Store;
use lango_testkit::session_store_contract::LogBuilder;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const OTHER: &str = "session.store=sqlite:other.db";

/// Adds flags that make a command use another database in the same workspace.
pub(crate) fn in_other<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["-c", OTHER], arguments].concat()
}

fn export_all(lango: &Lango) -> String {
    lango.run(&["sessions", "export", "--all"]).ok().stdout
}

/// Imports a text into another database.
fn import(lango: &Lango, text: impl AsRef<[u8]>) -> RunResult {
    lango.piped(&in_other(&["sessions", "import", "-"]), text)
}

/// Creates sessions with a tool call, with unusual characters and with a waiting call.
fn with_sessions() -> (Lango, [String; 3]) {
    let lango = Lango::new();
    let [one, two] = finished_sessions(&lango);
    let three = waiting_session(&lango);
    (lango, [one, two, three])
}

/// Creates sessions whose turns are all finished.
fn finished_sessions(lango: &Lango) -> [String; 2] {
    let one = lango.session("what files are here?");
    let two = lango.session("hello \u{202e}\u{9b} you \u{7f}\u{1}\n\tnext");
    lango.run(&["run", "--session", &two, "and \"then\"?"]).ok();
    [one, two]
}

/// Creates a session in which a call waits for the user, and returns its id.
pub(crate) fn waiting_session(lango: &Lango) -> String {
    let question = "create notes/a.md with the word hi";
    let mut terminal = Terminal::start(lango, 100, &["run", question], &[]);
    terminal.prompt();
    terminal.press("\u{4}");
    terminal.end();
    let listed = lango.run(&["approvals", "list", "--json"]).ok().json();
    text(&listed["waiting"][0]["session"]).to_owned()
}

#[test]
fn an_export_contains_the_shown_events_with_their_hashes() {
    let (lango, sessions) = with_sessions();
    for session in &sessions {
        let ran = lango.run(&["sessions", "export", session]).ok();
        assert!(ran.stderr.starts_with("exported 1 session, "), "{ran:#?}");
        assert!(
            !ran.stdout
                .contains(['\u{202e}', '\u{9b}', '\u{7f}', '\u{1}'])
        );
        let mut lines = ran.json_lines();
        let head = lines.remove(0);
        assert_eq!(head["lango_session"], 1);
        assert_eq!(head["id"], **session);
        assert_eq!(head["user"], "local");
        assert_eq!(head["events"], lines.len());
        assert_eq!(head["hash"], lines.last().unwrap()["hash"]);
        for line in &mut lines {
            let fields = line.as_object_mut().unwrap();
            assert_eq!(text(&fields.remove("hash").unwrap()).len(), 64);
            fields.remove("stored");
        }
        assert_eq!(lines, lango.events(session));
    }
}

#[test]
fn an_imported_session_is_identical_and_can_be_continued() {
    let lango = Lango::new();
    let sessions = finished_sessions(&lango);
    let file = lango.workspace().join("out.jsonl");
    let export = ["sessions", "export", "--all", "--output", "out.jsonl"];
    let ran = lango.run(&export).ok();
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("exported 2 sessions, "), "{ran:#?}");
    let ran = lango
        .run(&in_other(&["sessions", "import", "out.jsonl"]))
        .ok();
    assert!(ran.stderr.contains("imported 2 sessions, "), "{ran:#?}");
    let again = lango.run(&in_other(&["sessions", "export", "--all"])).ok();
    assert_eq!(again.stdout, fs::read_to_string(file).unwrap());
    let ran = lango.run(&in_other(&["sessions", "verify", "--all"])).ok();
    assert_eq!(ran.stdout.lines().count(), 2, "{ran:#?}");

    let list = |more: &[&str]| {
        let arguments = [more, &["sessions", "list", "--json"]].concat();
        lango.run(&arguments).ok().json()
    };
    assert_eq!(list(&[]), list(&["-c", OTHER]));
    for session in &sessions {
        lango
            .run(&in_other(&["run", "--session", session, "hello"]))
            .ok();
    }
    lango.run(&in_other(&["sessions", "verify", "--all"])).ok();
}

#[test]
fn an_unfinished_turn_is_closed_by_the_import() {
    let lango = Lango::new();
    let session = waiting_session(&lango);
    let before = lango.events(&session);
    let text = export_all(&lango);
    let ran = import(&lango, &text).ok();
    assert!(
        ran.stderr
            .contains("1 turn without an outcome closed as interrupted"),
        "{ran:#?}"
    );
    let listed = lango.run(&in_other(&["approvals", "list", "--json"])).ok();
    assert_eq!(listed.json()["waiting"], serde_json::json!([]));
    let shown = ["sessions", "show", &session, "--jsonl"];
    let events = lango.run(&in_other(&shown)).ok().json_lines();
    assert_eq!(events[..before.len()], before);
    assert_eq!(events.last().unwrap()["outcome"], "interrupted");
    lango.run(&in_other(&["sessions", "verify", "--all"])).ok();
    assert!(!lango.workspace().join("notes/a.md").exists());
    let again = import(&lango, &text).ok();
    assert!(again.stdout.contains("already here"), "{again:#?}");
}

#[test]
fn an_existing_session_is_skipped_if_identical_and_refused_otherwise() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let before = export_all(&lango);
    let ran = lango.piped(&["sessions", "import", "-"], &before).ok();
    assert!(
        ran.stdout.contains("already here and identical"),
        "{ran:#?}"
    );
    import(&lango, &before).ok();
    lango.run(&["run", "--session", &session, "again"]).ok();
    let after = export_all(&lango);
    let ran = lango.piped(&["sessions", "import", "-"], &before).ok();
    assert!(
        ran.stdout.contains("already here and identical"),
        "{ran:#?}"
    );
    assert_eq!(export_all(&lango), after);
    let ran = import(&lango, &after);
    ran.refused(
        2,
        &["line 1", &session, "a different log", "--skip-existing"],
    );
    let skip = in_other(&["sessions", "import", "--skip-existing", "-"]);
    let ran = lango.piped(&skip, &after).ok();
    assert!(ran.stdout.contains("left unchanged"), "{ran:#?}");
    let kept = lango.run(&in_other(&["sessions", "export", "--all"])).ok();
    assert_eq!(kept.stdout, before);
}

#[test]
fn grants_are_not_imported() {
    let lango = Lango::new();
    waiting_session(&lango);
    let listed = lango.run(&["approvals", "list", "--json"]).ok().json();
    let id = text(&listed["waiting"][0]["id"]).to_owned();
    lango.run(&["approvals", "answer", &id, "always"]).ok();
    let granted = |more: &[&str]| {
        let arguments = [more, &["approvals", "list", "--json"]].concat();
        let listed = lango.run(&arguments).ok().json();
        listed["granted"].as_array().unwrap().len()
    };
    assert_eq!(granted(&[]), 1);
    let ran = import(&lango, export_all(&lango)).ok();
    assert!(
        ran.stderr.contains("1 answer for future calls left out"),
        "{ran:#?}"
    );
    assert_eq!(granted(&["-c", OTHER]), 0);
}

/// Asserts that importing a text is refused at this line, and that nothing is imported.
#[track_caller]
fn assert_refused(lango: &Lango, text: impl AsRef<[u8]>, line: usize, why: &str) {
    let ran = import(lango, text.as_ref());
    let ran = ran.refused(2, &[&format!("line {line}: "), why]);
    let listed = lango.run(&in_other(&["sessions", "list", "--json"])).ok();
    assert_eq!(listed.json(), json!([]), "{ran:#?}");
}

#[test]
fn a_changed_byte_in_any_field_is_refused_with_its_line() {
    let lango = Lango::new();
    lango.session("what files are here?");
    let whole = export_all(&lango);
    let lines: Vec<&str> = whole.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let fields: Value = serde_json::from_str(line).unwrap();
        for name in fields.as_object().unwrap().keys() {
            // Change the first letter or digit of the value.
            let key = format!("\"{name}\":");
            let begin = line.find(&key).unwrap() + key.len();
            let rest = &line[begin..];
            let offset = rest.find(|letter: char| letter.is_alphanumeric()).unwrap();
            let mut bytes = line.as_bytes().to_vec();
            let byte = &mut bytes[begin + offset];
            *byte = if *byte == b'7' { b'8' } else { b'7' };
            let mut changed: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            changed[at] = &bytes;
            assert_refused(&lango, changed.join(&b"\n"[..]), at + 1, "");
        }
    }
}

#[test]
fn missing_swapped_duplicate_or_invalid_lines_are_refused_with_their_number() {
    let lango = Lango::new();
    lango.session("hello");
    let whole = export_all(&lango);
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 4);
    let of = |order: &[usize]| {
        let picked: Vec<&str> = order.iter().map(|at| lines[*at]).collect();
        picked.join("\n") + "\n"
    };
    assert_refused(&lango, of(&[0, 1, 3]), 3, "events before it are missing");
    assert_refused(&lango, of(&[0, 1, 2]), 3, "1 are missing");
    assert_refused(&lango, of(&[0]), 1, "3 are missing");
    assert_refused(&lango, of(&[1, 2, 3]), 1, "before the line of its session");
    assert_refused(&lango, of(&[0, 2, 1, 3]), 2, "events before it are missing");
    assert_refused(&lango, of(&[0, 1, 1, 2, 3]), 3, "it is a duplicate");
    assert_refused(&lango, of(&[0, 1, 2, 3, 3]), 5, "should end after 3 events");
    assert_refused(&lango, of(&[0, 0, 1, 2, 3]), 2, "3 are missing");
    let half = &whole[..whole.len() - 40];
    assert_refused(&lango, half, 4, "it ends too early");
    assert_refused(&lango, whole.replace('\n', "\r\n"), 1, "its seal");
    assert_refused(
        &lango,
        format!("{}\n\n{}", lines[0], lines[1]),
        2,
        "it is empty",
    );
    assert_refused(
        &lango,
        [lines[0].as_bytes(), b"\n\xff\xfe"].concat(),
        2,
        "not UTF-8",
    );
    assert_refused(&lango, "[".repeat(100_000), 1, "it cannot be read as JSON");
    let newer = lines[0].replace("\"lango_session\":1", "\"lango_session\":2");
    assert_refused(&lango, newer, 1, "its seal");
    import(&lango, "").refused(2, &["there is no session in"]);
    let missing = lango.run(&["sessions", "import", "nowhere.jsonl"]);
    missing.refused(2, &["nowhere.jsonl", "cannot be read"]);
    lango
        .run(&["sessions", "import", "src"])
        .refused(2, &["a folder"]);
    import(&lango, &whole).ok();
}

#[test]
fn an_endless_line_is_refused_before_it_fills_the_memory() {
    let lango = Lango::new();
    let endless = vec![b'x'; 70 << 20];
    import(&lango, endless).refused(2, &["line 1: it is longer than 64 MiB"]);
}

#[test]
fn complete_sessions_before_a_bad_line_are_imported() {
    let lango = Lango::new();
    let sessions = ["a", "b", "c"].map(|title| lango.session(title));
    let whole = export_all(&lango);
    let cut: Vec<&str> = whole.lines().take(11).collect();
    let ran = import(&lango, cut.join("\n"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr
            .contains("2 sessions before it imported completely"),
        "{ran:#?}"
    );
    let listed = lango.run(&in_other(&["sessions", "list", "--json"])).ok();
    assert_eq!(listed.json().as_array().unwrap().len(), 2);
    let ran = import(&lango, &whole).ok();
    assert_eq!(ran.stdout.matches("identical").count(), 2, "{ran:#?}");
    assert_eq!(ran.stdout.matches("imported").count(), 1, "{ran:#?}");
    for session in sessions {
        lango.run(&in_other(&["sessions", "verify", &session])).ok();
    }
}

/// Adds this many turns to a session directly in the database, without the binary.
pub(crate) fn add_turns(path: &Path, session: &str, turns: usize) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::sqlite(path, "lango-orchestrator".into()).unwrap();
        let id = SessionId::from(session);
        let next = store.read_head(&id).await.unwrap().next_seq;
        let mut builder = LogBuilder::new(&id).at(next);
        for turn in 0..turns {
            builder = builder.exchange(&format!("question {turn}"), "an answer");
        }
        store.append(builder.batch()).await.unwrap();
    });
}

#[test]
fn a_killed_import_leaves_nothing_visible_and_can_be_repeated() {
    let lango = Lango::new();
    let session = lango.session("hello");
    add_turns(&lango.database(), &session, 300);
    let whole = export_all(&lango);
    let half: String = whole.split_inclusive('\n').take(700).collect();
    let mut command = lango.command(&in_other(&["sessions", "import", "-"]));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(half.as_bytes())
        .unwrap();
    let other = lango.workspace().join("other.db");
    let started = Instant::now();
    loop {
        let stored = Connection::open(&other).and_then(|database| {
            database.query_row("SELECT count(*) FROM events", [], |row| {
                row.get::<_, i64>(0)
            })
        });
        match stored {
            Ok(400..) => break,
            _ => assert!(started.elapsed() < crate::lango::TIMEOUT, "{stored:?}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // During the import, the session is not visible and cannot be continued.
    let continued = lango.run(&in_other(&["run", "--session", &session, "hello"]));
    continued.refused(2, &[&session]);
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = lango.run(&in_other(&["sessions", "list", "--json"])).ok();
    assert_eq!(listed.json(), json!([]));
    lango.run(&in_other(&["sessions", "verify", "--all"])).ok();
    import(&lango, &whole).ok();
    let again = lango.run(&in_other(&["sessions", "export", "--all"])).ok();
    assert_eq!(again.stdout, whole);
}

#[test]
fn an_export_during_running_turns_is_consistent() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                add_turns(&lango.database(), &session, 5);
            }
        });
        for round in 0..6 {
            let export = export_all(&lango);
            let into = format!("session.store=sqlite:copy-{round}.db");
            let import = ["-c", &into, "sessions", "import", "-"];
            lango.piped(&import, export).ok();
        }
        has_ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_export_does_not_overwrite_files_and_leaves_no_incomplete_one() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    lango.file("taken.jsonl", "mine");
    let to = |file| ["sessions", "export", "--all", "--output", file];
    lango
        .run(&to("taken.jsonl"))
        .refused(2, &["taken.jsonl", "already exists"]);
    assert_eq!(
        fs::read(lango.workspace().join("taken.jsonl")).unwrap(),
        b"mine"
    );
    lango
        .run(&to("nowhere/x.jsonl"))
        .refused(2, &["nowhere/x.jsonl"]);
    let tampering =
        format!("UPDATE events SET time = time + 1 WHERE session = '{session}' AND seq = 5");
    tamper(&lango, &tampering);
    let before = fs::read_dir(lango.workspace()).unwrap().count();
    lango
        .run(&to("x.jsonl"))
        .refused(1, &["event 5", &session, "verify"]);
    assert_eq!(fs::read_dir(lango.workspace()).unwrap().count(), before);
}

fn tamper(lango: &Lango, sql: &str) {
    let database = Connection::open(lango.database()).unwrap();
    assert_eq!(database.execute(sql, []).unwrap(), 1, "{sql}");
}

#[test]
fn verify_reports_damaged_sessions_and_the_others_as_intact() {
    let lango = Lango::new();
    let [one, two, three] = ["a", "b", "c"].map(|title| lango.session(title));
    let ran = lango.run(&["sessions", "verify", "--all"]).ok();
    assert!(
        ran.stderr.contains("3 sessions checked: no gaps"),
        "{ran:#?}"
    );
    tamper(
        &lango,
        &format!("UPDATE events SET author = 'user' WHERE session = '{one}' AND seq = 2"),
    );
    tamper(
        &lango,
        &format!("DELETE FROM events WHERE session = '{two}' AND seq = 1"),
    );
    let ran = lango.run(&["sessions", "verify", "--all"]).exits(1);
    assert!(
        ran.stderr
            .contains("3 sessions checked, 2 damaged\n  next: "),
        "{ran:#?}"
    );
    let says = |id: &str, what: &str| {
        let line = ran.stdout.lines().find(|line| line.contains(id)).unwrap();
        assert!(line.contains(what), "{line}");
    };
    says(&one, "damaged at event 2: it does not match its hash");
    says(&two, "damaged at event 2: events before it are missing");
    says(&three, "3 events");
    lango.run(&["sessions", "verify", &three]).ok();
    lango.run(&["sessions", "verify", &one]).exits(1);
    lango
        .run(&["sessions", "verify", "s_nope"])
        .refused(2, &["s_nope"]);
}

#[test]
fn export_and_verify_are_refused_before_anything_is_stored() {
    let lango = Lango::new();
    for command in ["export", "verify"] {
        let ran = lango.run(&["sessions", command, "--all"]);
        ran.refused(2, &["nothing is stored yet", "lango.db"]);
    }
    assert!(!lango.home().exists());
}

#[test]
fn an_import_does_not_overwrite_a_busy_session() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let whole = export_all(&lango);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let other = lango.workspace().join("other.db");
    let store = Store::sqlite(other, "lango-orchestrator".into()).unwrap();
    let id = SessionId::from(session.as_str());
    let lease = runtime
        .block_on(store.acquire(&id, BusyPolicy::Refuse))
        .unwrap();
    let ran = import(&lango, &whole);
    ran.refused(1, &[&session, "busy"]);
    drop(lease);
    import(&lango, &whole).ok();
    let events = lango.events(&session);
    assert_eq!(of_type(&events, "user.message").len(), 1);
}

#[test]
fn a_closed_pipe_ends_an_export_quietly() {
    let lango = Lango::new();
    let session = lango.session("hello");
    add_turns(&lango.database(), &session, 400);
    let mut command = lango.command(&["sessions", "export", "--all"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = finish_child(child, b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}
