//! `lango undo` through the real binary.

use crate::archive::waiting_session;
use crate::lango::{Lango, RunResult, of_type, text};
use crate::models::{Provider, flags};
use crate::serve::TestServer;
use crate::terminal::Terminal;
use lango_core::{BusyPolicy, SessionId, SessionStore};
use lango_store::Store;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;

/// A word that occurs nowhere else.
const MARKER: &str = "xylophonic";

/// Lets the demo model call a tool in a new session. Returns the summary.
fn use_tool(lango: &Lango, tool: &str, arguments: Value) -> Value {
    let message = format!("use {tool} {arguments}");
    let ran = lango.run(&["-c", ALLOW, "run", "--json", &message]).ok();
    ran.json()
}

fn write(lango: &Lango, path: &str, content: &str) -> Value {
    use_tool(lango, "fs_write", json!({"path": path, "content": content}))
}

fn read(lango: &Lango, path: &str) -> String {
    fs::read_to_string(lango.workspace().join(path)).unwrap()
}

fn is_in_files(lango: &Lango, word: &str) -> bool {
    let files = lango.stored_files();
    let word = word.as_bytes();
    let contains = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    files.iter().any(|(_, bytes)| contains(bytes))
}

#[track_caller]
fn assert_refused(ran: RunResult, code: i32, names: &[&str]) {
    ran.refused(code, names);
}

#[test]
fn a_turn_is_undone_once_and_the_session_says_so() {
    let lango = Lango::new();
    let before = read(&lango, "notes.md");
    let done = write(&lango, "notes.md", "new\n");
    assert_eq!(
        text(&done["answer"]).lines().next(),
        Some("replaced notes.md +1 −3")
    );
    let (session, turn) = (text(&done["session"]), text(&done["turn"]));
    let ran = lango.run(&["undo", "--yes"]).ok();
    assert_eq!(ran.stdout, "restored notes.md\n");
    assert_eq!(read(&lango, "notes.md"), before);
    assert_refused(
        lango.run(&["undo", &turn[..6], "--yes"]),
        2,
        &[turn, "was already undone", "lango undo --list"],
    );
    assert_refused(lango.run(&["undo", "--yes"]), 2, &["no turn changed files"]);
    let events = lango.events(session);
    let undone = events.last().unwrap();
    assert_eq!(undone["type"], "turn.undone");
    assert_eq!(
        (&undone["author"], &undone["turn"]),
        (&json!("user"), &json!(turn))
    );
    assert_eq!(
        (&undone["undone"], &undone["restored"]),
        (&json!(turn), &json!(["notes.md"]))
    );
    let shown = lango.run(&["sessions", "show", session]).ok().stdout;
    assert!(
        shown.ends_with(&format!("user undid turn {turn}: notes.md\n")),
        "{shown}"
    );
    lango.run(&["sessions", "verify", session]).ok();
    let exported = lango.run(&["sessions", "export", session]).ok().stdout;
    let other = Lango::new();
    other.piped(&["sessions", "import", "-"], exported).ok();
    assert_eq!(other.events(session), events);
}

#[test]
fn everything_that_the_file_tools_did_is_undone_and_other_calls_are_listed() {
    let lango = Lango::new();
    let script = lango.workspace().join("run.sh");
    lango.file("run.sh", "#!/bin/sh\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "work"),
        call(
            "fs_edit",
            json!({"path": "notes.md", "old": "bread", "new": "tea"}),
        ),
        call("fs_write", json!({"path": "run.sh", "content": "echo\n"})),
        call("fs_write", json!({"path": "a/b/new.txt", "content": "new"})),
        call("fs_delete", json!({"path": "src"})),
        call("exec", json!({"command": "echo made > by-command.txt"})),
        say("Done."),
    ]);
    let model = flags("openai", provider.server.url());
    let mut arguments: Vec<&str> = vec!["-c", ALLOW];
    arguments.extend(model.iter().map(String::as_str));
    arguments.extend(["run", "work"]);
    lango.run(&arguments).ok();
    assert!(!lango.workspace().join("src").exists());
    fs::set_permissions(&script, fs::Permissions::from_mode(0o600)).unwrap();
    let report = lango.run(&["undo", "--yes", "--json"]).ok().json();
    assert_eq!(
        report["restored"],
        json!(["src", "a/b/new.txt", "a/b", "a", "run.sh", "notes.md"])
    );
    assert_eq!(
        (&report["skipped"], &report["is_complete"]),
        (&json!([]), &json!(true))
    );
    let other = report["not_undone"].as_array().unwrap();
    assert_eq!((other.len(), &other[0]["tool"]), (1, &json!("exec")));
    assert_eq!(read(&lango, "src/main.rs"), "fn main() {}\n");
    assert_eq!(read(&lango, "notes.md"), "# Notes\n\nBuy *bread*.\n");
    let mode = script.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (read(&lango, "run.sh").as_str(), mode),
        ("#!/bin/sh\n", 0o600),
        "permissions that the user has set since stay"
    );
    assert!(!lango.workspace().join("a").exists());
    assert_eq!(read(&lango, "by-command.txt"), "made\n");
    assert_eq!(lango.run(&["trash"]).ok().stdout, "the trash is empty\n");
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_changed() {
    let lango = Lango::new();
    write(&lango, "notes.md", "new");
    assert_refused(lango.run(&["undo"]), 2, &["no terminal", "--yes"]);
    assert_refused(lango.run(&["undo", "--json"]), 2, &["no terminal", "--yes"]);
    assert_eq!(read(&lango, "notes.md"), "new");
}

#[test]
fn on_a_terminal_the_plan_is_shown_and_the_user_is_asked() {
    let lango = Lango::new();
    let turn = write(&lango, "notes.md", "new")["turn"].clone();
    let mut terminal = Terminal::start(&lango, 100, &["undo"], &[]);
    let shown = terminal.wait_for("[y/N]");
    let expected = format!("undoing turn {}: use fs_write", text(&turn));
    assert!(shown.contains(&expected), "{shown}");
    assert!(shown.contains("  restores notes.md\r\n"), "{shown}");
    terminal.press("n\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, Some(0), "{rest}");
    assert_eq!(read(&lango, "notes.md"), "new");
    let mut terminal = Terminal::start(&lango, 100, &["undo"], &[]);
    terminal.wait_for("[y/N]");
    terminal.press("y\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("restored notes.md"), "{rest}");
}

#[test]
fn a_file_that_changed_since_blocks_the_undo_unless_it_is_partial() {
    let lango = Lango::new();
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "work"),
        call("fs_write", json!({"path": "notes.md", "content": "new\n"})),
        call(
            "fs_write",
            json!({"path": "budget.csv", "content": "new\n"}),
        ),
        say("Done."),
    ]);
    let model = flags("openai", provider.server.url());
    let mut arguments: Vec<&str> = vec!["-c", ALLOW];
    arguments.extend(model.iter().map(String::as_str));
    lango.run(&[arguments, vec!["run", "work"]].concat()).ok();
    lango.file("notes.md", "new\nmine\n");
    let ran = lango.run(&["undo", "--yes"]);
    assert_refused(
        ran,
        1,
        &[
            "nothing was changed, because 1 of 2 changes cannot be restored:",
            "\n  notes.md: it changed since the turn wrote it",
            "--partial",
            "--diff",
        ],
    );
    assert_eq!(read(&lango, "budget.csv"), "new\n");
    let shown = lango.run(&["undo", "--diff"]).ok().stdout;
    assert!(
        shown.contains("changed notes.md\n@@ -1,3 +1,2 @@\n"),
        "{shown}"
    );
    assert!(shown.contains("+new\n+mine\n"), "{shown}");
    let ran = lango.run(&["undo", "--yes", "--partial"]).ok();
    assert_eq!(
        ran.stdout,
        "restored budget.csv\nleft notes.md: it changed since the turn wrote it\n"
    );
    assert_eq!(read(&lango, "notes.md"), "new\nmine\n");
    assert_eq!(read(&lango, "budget.csv"), "rent,900\n");
    assert_refused(lango.run(&["undo", "--yes"]), 2, &["or all were undone"]);
    let listed = lango.run(&["undo", "--list", "--json"]).ok().json();
    assert_eq!(listed[0]["left"][0]["path"], "notes.md");
    let shown = lango.run(&["undo", "--list"]).ok().stdout;
    assert!(shown.contains("(undone, except for 1 path)"), "{shown}");
    // The rest is undone later, and nothing else.
    let turn = text(&listed[0]["turn"]);
    lango.file("budget.csv", "new\n");
    lango.file("notes.md", "new\n");
    let shown = lango.run(&["undo", turn, "--diff"]).ok().stdout;
    assert!(shown.starts_with("changed notes.md\n"), "{shown}");
    assert!(!shown.contains("budget.csv"), "{shown}");
    let ran = lango.run(&["undo", turn, "--yes"]).ok();
    assert_eq!(ran.stdout, "restored notes.md\n");
    assert_eq!(read(&lango, "notes.md"), "# Notes\n\nBuy *bread*.\n");
    assert_eq!(read(&lango, "budget.csv"), "new\n");
    for arguments in [vec!["undo", turn, "--yes"], vec!["undo", turn, "--diff"]] {
        assert_refused(lango.run(&arguments), 2, &["was already undone"]);
    }
}

#[test]
fn a_turn_that_changes_more_while_the_user_is_asked_is_not_undone() {
    let lango = Lango::new();
    let turn = write(&lango, "notes.md", "new")["turn"].clone();
    let mut terminal = Terminal::start(&lango, 100, &["undo"], &[]);
    terminal.wait_for("[y/N]");
    let files = lango.stored_files();
    let is_record = |path: &&std::path::PathBuf| path.ends_with("record.jsonl");
    let record = files
        .iter()
        .map(|(path, _)| path)
        .find(is_record)
        .unwrap()
        .clone();
    let lines = fs::read_to_string(&record).unwrap();
    let more = lines.lines().last().unwrap().replace("notes.md", "more.md");
    fs::write(&record, format!("{lines}{more}\n")).unwrap();
    terminal.press("y\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("did more since this was shown"), "{rest}");
    assert_eq!(read(&lango, "notes.md"), "new");
    fs::write(&record, lines).unwrap();
    lango.run(&["undo", text(&turn), "--yes"]).ok();
}

#[test]
fn a_file_that_is_too_large_is_changed_and_the_undo_says_so() {
    let lango = Lango::new();
    lango.file("large.txt", "x".repeat(5 << 20));
    write(&lango, "large.txt", "small");
    assert_eq!(read(&lango, "large.txt"), "small");
    let reason = "large.txt: it was too large to save: 5.2 MB, and the limit is 4.1 MB";
    assert_refused(
        lango.run(&["undo", "--yes"]),
        1,
        &["nothing was changed:", reason],
    );
}

#[test]
fn the_next_turn_is_told_what_was_undone() {
    let lango = Lango::new();
    let session = text(&write(&lango, "notes.md", "new\n")["session"]).to_owned();
    let ask = |replies: Vec<lango_core::ModelReply>| {
        let provider = Provider::new(replies);
        let model = flags("openai", provider.server.url());
        let mut arguments: Vec<&str> = model.iter().map(String::as_str).collect();
        arguments.extend(["run", "--session", &session, "hello again"]);
        lango.run(&arguments).ok();
        let requests = provider.server.requests();
        requests
            .iter()
            .map(|request| request.body.to_string())
            .collect::<Vec<_>>()
    };
    let notice = "undid what the turn above did";
    let before = ask(vec![say("Hi.")]);
    assert!(!before[0].contains(notice), "{before:#?}");
    lango.run(&["undo", "--yes"]).ok();
    let after = ask(vec![delegate_and_finish("operator", "look"), say("Hi.")]);
    // The orchestrator as a message of its own, the specialist as data of the conversation.
    for request in &after {
        assert!(request.contains(notice), "{request}");
        assert!(request.contains(r#"notes.md"#), "{request}");
    }
    let events = lango.events(&session);
    assert_eq!(of_type(&events, "turn.undone").len(), 1);
    // It belongs to the turn that was the last one then.
    let undone = of_type(&events, "turn.undone")[0];
    assert_ne!(undone["turn"], undone["undone"]);
}

#[test]
fn turns_are_listed_and_undone_from_the_last_to_the_first() {
    let lango = Lango::new();
    let first = write(&lango, "notes.md", "1\n");
    let second = write(&lango, "notes.md", "2\n");
    let listed = lango.run(&["undo", "--list", "--json"]).ok().json();
    let turns: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| &turn["turn"])
        .collect();
    assert_eq!(turns, [&second["turn"], &first["turn"]]);
    assert_eq!(listed[0]["paths"], json!(["notes.md"]));
    // The later turn wrote the same file.
    let id = text(&first["turn"]);
    assert_refused(
        lango.run(&["undo", id, "--yes"]),
        1,
        &["notes.md: it changed"],
    );
    lango.run(&["undo", "--yes"]).ok();
    assert_eq!(read(&lango, "notes.md"), "1\n");
    lango.run(&["undo", "--yes"]).ok();
    assert_eq!(read(&lango, "notes.md"), "# Notes\n\nBuy *bread*.\n");
    let shown = lango.run(&["undo", "--list"]).ok().stdout;
    assert_eq!(shown.matches("(undone)").count(), 2, "{shown}");
    assert!(shown.contains("use fs_write"), "{shown}");
    assert_refused(lango.run(&["undo", "t_none"]), 2, &["t_none", "--list"]);
    assert_refused(
        lango.run(&["undo", "t_"]),
        2,
        &["more than one turn id starts with"],
    );
}

#[test]
fn turns_of_other_users_and_in_other_folders_are_left_alone() {
    let lango = Lango::new();
    let bob = ["-c", ALLOW, "-c", "session.user=bob", "run", "--json"];
    let message = r#"use fs_write {"path": "notes.md", "content": "bob"}"#;
    let ran = lango.run(&[&bob[..], &[message]].concat()).ok().json();
    let turn = text(&ran["turn"]);
    assert_refused(lango.run(&["undo", "--yes"]), 2, &["no turn changed files"]);
    assert_refused(lango.run(&["undo", turn, "--yes"]), 2, &[turn]);
    assert_eq!(
        lango.run(&["undo", "--list", "--json"]).ok().json(),
        json!([])
    );
    let elsewhere = Lango::with_home(lango.home());
    let as_bob = |arguments: &[&str], lango: &Lango| {
        lango.run(&[&["-c", "session.user=bob"], arguments].concat())
    };
    assert_refused(
        as_bob(&["undo", "--yes"], &elsewhere),
        2,
        &["no turn changed files"],
    );
    let folder = lango.workspace().canonicalize().unwrap();
    let names = ["worked in", folder.to_str().unwrap()];
    assert_refused(as_bob(&["undo", turn, "--yes"], &elsewhere), 2, &names);
    assert_eq!(read(&lango, "notes.md"), "bob");
    as_bob(&["undo", "--yes"], &lango).ok();
    assert_eq!(read(&lango, "notes.md"), "# Notes\n\nBuy *bread*.\n");
}

#[test]
fn a_session_that_is_busy_or_waits_is_not_undone() {
    let lango = Lango::new();
    let session = text(&write(&lango, "notes.md", "new")["session"]).to_owned();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::sqlite(lango.database(), "lango-orchestrator".into()).unwrap();
        let id = SessionId::from(session.as_str());
        let _lease = store.acquire(&id, BusyPolicy::Refuse).await.unwrap();
        assert_refused(
            lango.run(&["undo", "--yes"]),
            1,
            &["busy with another turn"],
        );
    });
    assert_eq!(read(&lango, "notes.md"), "new");
    let waiting = waiting_session(&lango);
    let message = r#"use fs_write {"path": "notes.md", "content": "newer"}"#;
    lango.run(&["sessions", "close", &waiting]).ok();
    lango
        .run(&["-c", ALLOW, "run", "--session", &waiting, message])
        .ok();
    let question = "create notes/b.md with the word hi";
    let mut terminal = Terminal::start(&lango, 100, &["run", "--session", &waiting, question], &[]);
    terminal.prompt();
    terminal.press("\u{4}");
    terminal.end();
    let close = format!("lango sessions close {waiting}");
    assert_refused(lango.run(&["undo", "--yes"]), 2, &["has not ended", &close]);
    lango.run(&["sessions", "close", &waiting]).ok();
    lango.run(&["undo", "--yes"]).ok();
    assert_eq!(read(&lango, "notes.md"), "new");
}

#[test]
fn originals_are_deleted_with_their_session() {
    let lango = Lango::new();
    let change = || {
        lango.file("secret.txt", MARKER);
        let session = text(&write(&lango, "secret.txt", "new")["session"]).to_owned();
        assert!(is_in_files(&lango, MARKER), "the original is not saved");
        session
    };
    let session = change();
    lango.run(&["sessions", "delete", &session, "--yes"]).ok();
    assert!(
        !is_in_files(&lango, MARKER),
        "`sessions delete` left an original"
    );
    change();
    lango
        .run(&["sessions", "delete", "--older-than", "1ms", "--yes"])
        .ok();
    assert!(
        !is_in_files(&lango, MARKER),
        "`--older-than` left an original"
    );
    let session = change();
    let token = lango
        .run(&["tokens", "create", "test", "--scope", "run"])
        .ok()
        .stdout;
    let server = TestServer::start_with(lango.sibling(), &[]);
    let mut stream = server.connect();
    let host = server.url().trim_start_matches("http://").to_owned();
    let request = format!(
        "DELETE /api/sessions/{session} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\r\n",
        token.trim()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.contains(" 204 "), "{reply}");
    assert!(!is_in_files(&lango, MARKER), "the API left an original");
    assert_refused(lango.run(&["undo"]), 2, &["no turn changed files"]);
}

#[test]
fn an_ephemeral_turn_saves_nothing() {
    let lango = Lango::new();
    lango.file("secret.txt", MARKER);
    let message = r#"use fs_write {"path": "secret.txt", "content": "new"}"#;
    lango
        .run(&["-c", ALLOW, "run", "--ephemeral", message])
        .ok();
    assert_eq!(read(&lango, "secret.txt"), "new");
    assert!(!is_in_files(&lango, MARKER));
}

#[test]
fn a_chat_that_is_open_continues_after_an_undo() {
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 100, &["-c", ALLOW], &[]);
    terminal.prompt();
    terminal.say(r#"use fs_write {"path": "notes.md", "content": "from the chat"}"#);
    assert_eq!(read(&lango, "notes.md"), "from the chat");
    lango.run(&["undo", "--yes"]).ok();
    terminal.say("hello");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    let events = lango.events(text(&listed[0]["id"]));
    let kinds: Vec<&str> = events.iter().map(|event| text(&event["type"])).collect();
    let undone = kinds
        .iter()
        .position(|kind| *kind == "turn.undone")
        .unwrap();
    assert_eq!(
        (kinds[undone - 1], kinds[undone + 1]),
        ("turn.finished", "user.message")
    );
    assert_eq!(kinds.last(), Some(&"turn.finished"));
}
