//! `lango sessions search` and `rename`.

use crate::lango::{Lango, text};
use serde_json::Value;

fn search(lango: &Lango, arguments: &[&str]) -> Value {
    let arguments = [&["sessions", "search", "--json"], arguments].concat();
    lango.run(&arguments).ok().json()
}

fn field<'a>(found: &'a Value, list: &str, name: &str) -> Vec<&'a str> {
    let entries = found[list].as_array().unwrap().iter();
    entries.map(|entry| text(&entry[name])).collect()
}

#[test]
fn a_text_is_found_in_titles_questions_and_answers_of_this_user_only() {
    let lango = Lango::new();
    assert_eq!(search(&lango, &["x"])["messages"], Value::Array(Vec::new()));
    assert!(!lango.home().exists());
    let one = lango.session("where is the deploy key?");
    let two = lango.session("what files are here?");
    let run = ["run", "--session", &two, "say \"DEPLOY\"\nonce more"];
    lango.run(&run).ok();
    let other = ["-c", "session.user=ann", "run", "deploy it"];
    lango.run(&other).ok();
    let found = search(&lango, &["deploy"]);
    assert_eq!(field(&found, "sessions", "id"), [&*one]);
    let mut sessions = field(&found, "messages", "session");
    sessions.dedup();
    assert_eq!(sessions, [&*two, &*one]);
    assert!(field(&found, "messages", "author").contains(&"user"));
    // An answer, over several words of the command line.
    let found = search(&lango, &["notes.md"]);
    assert!(
        field(&found, "messages", "author")
            .iter()
            .all(|author| *author != "user")
    );
    let found = search(&lango, &["the", "Deploy", "KEY"]);
    let mut sessions = field(&found, "messages", "session");
    sessions.dedup();
    assert_eq!(sessions, [&*one]);
    let shown = lango.run(&["sessions", "search", "deploy"]).ok();
    assert!(
        shown.stdout.contains("user: where is the deploy key?"),
        "{shown:#?}"
    );
    assert_eq!(shown.stderr, "");
    assert_eq!(shown.stdout.matches(&*one).count(), 1, "{shown:#?}");
    let shown = lango
        .run(&["sessions", "search", "deploy", "--limit", "1"])
        .ok();
    assert!(shown.stderr.contains("there are more"), "{shown:#?}");
    let shown = lango.run(&["sessions", "search", "no such text"]).ok();
    assert!(
        shown.stdout.starts_with("no title, question or answer"),
        "{shown:#?}"
    );
    lango
        .run(&["sessions", "search", " "])
        .refused(2, &["empty"]);
}

#[test]
fn a_renamed_session_keeps_its_title_in_later_turns_and_in_another_database() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let ran = lango
        .run(&["sessions", "rename", &session, "Deploy", "to\nstaging"])
        .ok();
    assert_eq!(
        ran.stdout,
        format!("{session} is now titled: Deploy to staging\n")
    );
    lango.run(&["run", "--session", &session, "more"]).ok();
    let title = |lango: &Lango| {
        let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
        text(&listed[0]["title"]).to_owned()
    };
    assert_eq!(title(&lango), "Deploy to staging");
    assert_eq!(
        field(&search(&lango, &["staging"]), "sessions", "id"),
        [&*session]
    );
    let exported = lango.run(&["sessions", "export", &session]).ok().stdout;
    let other = Lango::new();
    other.piped(&["sessions", "import", "-"], exported).ok();
    assert_eq!(title(&other), "Deploy to staging");
    other.run(&["sessions", "verify", "--all"]).ok();
    let moved = lango.workspace().join("moved.db");
    let (from, to) = (
        format!("sqlite:{}", lango.database().display()),
        format!("sqlite:{}", moved.display()),
    );
    lango.run(&["store", "move", &from, &to]).ok();
    let flag = format!("session.store={to}");
    let listed = lango.run(&["-c", &flag, "sessions", "list"]).ok().stdout;
    assert!(listed.contains("Deploy to staging"), "{listed}");
    lango
        .run(&["sessions", "rename", &session, " "])
        .refused(2, &["the title is empty"]);
    lango
        .run(&["sessions", "rename", "s_none", "x"])
        .refused(2, &["`s_none`"]);
}
