//! Permission modes through the real binary: what each of them does with each kind of call.

use crate::approvals::waiting_approvals;
use crate::lango::{Lango, of_type, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

const ORDINARY: &str = "use fs_write {\"path\":\"notes.md\",\"content\":\"new\"}";

/// What becomes of a call if no user can be asked.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Runs,
    /// It would be asked for. The exit code is 4.
    IsAsked,
    /// The mode denies it.
    IsDenied,
    /// The tool refuses it, and no one is asked.
    Fails,
}

/// A workspace with an ordinary file and with files that other programs execute.
fn lango() -> Lango {
    let lango = Lango::new();
    for name in ["notes.md", "Makefile", "tool", ".git/hooks/x"] {
        lango.file(name, "old");
    }
    lango.file(".vscode/tasks.json", "old");
    lango.file("script", "#!/bin/sh\nold");
    let tool = lango.workspace().join("tool");
    fs::set_permissions(tool, Permissions::from_mode(0o755)).unwrap();
    symlink("script", lango.workspace().join("link")).unwrap();
    lango
}

fn write(path: &str) -> String {
    format!("use fs_write {}", json!({ "path": path, "content": "new" }))
}

fn edit(path: &str) -> String {
    let arguments = json!({ "path": path, "old": "old", "new": "new" });
    format!("use fs_edit {arguments}")
}

/// Runs a question in a mode and returns what became of its call.
fn fate(lango: &Lango, mode: &str, question: &str, flags: &[&str]) -> Fate {
    let arguments = ["run", "--json", "--mode", mode, question];
    let arguments: Vec<&str> = flags.iter().copied().chain(arguments).collect();
    let ran = lango.run(&arguments);
    if ran.code == Some(4) {
        return Fate::IsAsked;
    }
    let summary = ran.ok().json();
    let log = lango.events(text(&summary["session"]));
    let returned = of_type(&log, "tool.returned");
    assert_eq!(of_type(&log, "approval.requested").len(), 0, "{log:#?}");
    let results: Vec<&str> = returned.iter().map(|one| text(&one["status"])).collect();
    match results[..] {
        ["ok"] => Fate::Runs,
        ["error"] => Fate::Fails,
        ["denied"] => {
            let answer = text(&summary["answer"]);
            let told = format!("the permission mode is `{mode}`, so nothing was changed");
            assert!(answer.contains(&told), "{answer}");
            Fate::IsDenied
        }
        _ => panic!("{returned:#?}"),
    }
}

#[test]
fn each_mode_runs_asks_for_or_denies_each_kind_of_call() {
    use Fate::{Fails, IsAsked, IsDenied, Runs};
    let outside = tempfile::tempdir().unwrap();
    let opened = outside.path().canonicalize().unwrap();
    let opened_file = opened.join("new.md").to_str().unwrap().to_owned();
    let open = format!("tools.exec.write=[{:?}]", opened.to_str().unwrap());
    let cases: [(String, Option<&str>, Fate); 16] = [
        // The question, the file that it changes, and its fate in accept-edits.
        (write("notes.md"), Some("notes.md"), Runs),
        (edit("notes.md"), Some("notes.md"), Runs),
        (write("src/new.py"), Some("src/new.py"), Runs),
        (
            "use fs_mkdir {\"path\":\"docs\"}".to_owned(),
            Some("docs"),
            Runs,
        ),
        (
            "use fs_delete {\"path\":\"notes.md\"}".to_owned(),
            Some("notes.md"),
            Runs,
        ),
        (write("Makefile"), Some("Makefile"), IsAsked),
        (edit("Makefile"), Some("Makefile"), IsAsked),
        (edit("tool"), Some("tool"), IsAsked),
        (write("link"), Some("script"), IsAsked),
        (edit("link"), Some("script"), IsAsked),
        (
            "use fs_write {\"path\":\"new\",\"content\":\"#!/bin/sh\\n\"}".to_owned(),
            Some("new"),
            IsAsked,
        ),
        (
            write(".vscode/tasks.json"),
            Some(".vscode/tasks.json"),
            IsAsked,
        ),
        (write(".git/hooks/x"), Some(".git/hooks/x"), Fails),
        (write("/etc/lango-test"), None, Fails),
        (write(&opened_file), None, IsAsked),
        (
            "use exec {\"command\":\"touch made\"}".to_owned(),
            Some("made"),
            IsAsked,
        ),
    ];
    for (question, path, accepted) in cases {
        for mode in ["ask", "accept-edits", "read-only", "plan"] {
            let expected = match mode {
                "ask" => &IsAsked,
                "accept-edits" => &accepted,
                _ => &IsDenied,
            };
            let lango = lango();
            let content = || path.and_then(|path| content_of(&lango, path));
            let before = content();
            let found = fate(&lango, mode, &question, &["-c", &open]);
            assert_eq!(found, *expected, "{question} in {mode}");
            let is_changed = content() != before;
            assert_eq!(is_changed, found == Runs, "{question} in {mode}");
            assert!(!opened.join("new.md").exists(), "{question} in {mode}");
        }
    }
}

/// Returns the content of a file, an empty text for a folder, and `None` if there is neither.
fn content_of(lango: &Lango, path: &str) -> Option<String> {
    let path = lango.workspace().join(path);
    if path.is_dir() {
        Some(String::new())
    } else {
        fs::read_to_string(path).ok()
    }
}

#[test]
fn an_ephemeral_run_asks_before_it_replaces_a_file_because_it_saves_no_original() {
    let lango = lango();
    let arguments = ["run", "--ephemeral", "--mode", "accept-edits"];
    for question in [write("notes.md"), edit("notes.md")] {
        let ran = lango.run(&[&arguments[..], &[&question]].concat());
        assert_eq!(ran.code, Some(4), "{question}: {ran:#?}");
        assert_eq!(content_of(&lango, "notes.md").as_deref(), Some("old"));
    }
    lango
        .run(&[&arguments[..], &[&write("new.md")]].concat())
        .ok();
    assert_eq!(content_of(&lango, "new.md").as_deref(), Some("new"));
}

#[test]
fn reading_works_in_every_mode() {
    for mode in ["ask", "accept-edits", "read-only", "plan"] {
        let lango = lango();
        let read = "use fs_read {\"path\":\"notes.md\"}";
        assert_eq!(fate(&lango, mode, read, &[]), Fate::Runs, "{mode}");
    }
}

#[test]
fn rules_win_over_accept_edits_and_allow_nothing_in_read_only() {
    let rule = |action: &str| format!("approval.rules=[{{action=\"{action}\",tool=\"fs_*\"}}]");
    let lango = lango();
    let allow = rule("allow");
    let denied = fate(&lango, "read-only", ORDINARY, &["-c", &allow]);
    assert_eq!(denied, Fate::IsDenied);
    let asked = fate(&lango, "accept-edits", ORDINARY, &["-c", &rule("ask")]);
    assert_eq!(asked, Fate::IsAsked);
    let deny = rule("deny");
    let ran = lango.run(&["-c", &deny, "run", "--mode", "accept-edits", ORDINARY]);
    let ran = ran.ok();
    assert!(ran.stdout.contains("forbids it"), "{ran:#?}");
    assert_eq!(content_of(&lango, "notes.md").as_deref(), Some("old"));
}

#[test]
fn a_deleted_file_can_be_restored_from_the_trash() {
    let lango = lango();
    let delete = "use fs_delete {\"path\":\"notes.md\"}";
    assert_eq!(fate(&lango, "accept-edits", delete, &[]), Fate::Runs);
    assert_eq!(content_of(&lango, "notes.md"), None);
    let listed = lango.run(&["trash", "list", "--json"]).ok().json();
    lango
        .run(&["trash", "restore", text(&listed[0]["id"])])
        .ok();
    assert_eq!(content_of(&lango, "notes.md").as_deref(), Some("old"));
}

#[test]
fn a_terminal_is_asked_about_what_accept_edits_does_not_cover() {
    let lango = lango();
    let question = write("Makefile");
    let arguments = ["run", "--mode", "accept-edits", &question];
    let mut terminal = Terminal::start(&lango, 100, &arguments, &[]);
    let shown = terminal.prompt();
    assert!(
        shown.contains("why: `Makefile` is executed by make"),
        "{shown}"
    );
    terminal.press("y\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(content_of(&lango, "Makefile").as_deref(), Some("new"));
}

#[test]
fn an_answer_in_read_only_does_not_run_the_call() {
    let lango = lango();
    let mut terminal = Terminal::start(&lango, 100, &["run", ORDINARY], &[]);
    terminal.prompt();
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(4));
    let waiting = waiting_approvals(&lango);
    let id = text(&waiting[0]["id"]);
    let answer = ["approvals", "answer", id, "yes", "--mode", "read-only"];
    let ran = lango.run(&answer).ok();
    assert!(ran.stdout.contains("nothing was changed"), "{ran:#?}");
    assert_eq!(content_of(&lango, "notes.md").as_deref(), Some("old"));
}

#[test]
fn the_mode_is_stored_with_the_turn_and_is_no_setting() {
    let lango = lango();
    let summary = lango.run(&["run", "--json", "--mode", "plan", "hello"]);
    let summary = summary.ok().json();
    let session = text(&summary["session"]);
    let first = &lango.events(session)[0];
    assert_eq!(first["settings"]["mode"], "plan");
    // The next turn of the same session asks again.
    let ran = lango.run(&["run", "--json", "--session", session, ORDINARY]);
    ran.exits(4);
    let log = lango.events(session);
    let second = of_type(&log, "user.message")[1];
    assert_eq!(second["settings"].get("mode"), None::<&Value>);
}

#[test]
fn a_mode_on_a_command_that_has_none_is_an_error() {
    let lango = Lango::new();
    for arguments in [
        &["--mode", "read-only", "serve"][..],
        &["--mode", "read-only", "sessions", "list"],
        &["--mode", "read-only", "approvals"],
        &["--mode", "read-only", "doctor"],
        &["--mode", "plan", "run", "--mode", "ask", "hello"],
    ] {
        let ran = lango.run(arguments).exits(2);
        assert!(ran.stderr.contains("--mode"), "{ran:#?}");
    }
    for arguments in [
        &["serve", "--mode", "read-only"][..],
        &["run", "--mode", "yolo", "hello"],
    ] {
        lango.run(arguments).exits(2);
    }
    lango.run(&["--mode", "plan", "run", "hello"]).ok();
}
