//! `lango sessions`: sessions that one process stored are available to the next, with every author.

use crate::lango::{Lango, field_values, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn list(lango: &Lango, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["sessions", "list", "--json"], arguments].concat();
    match lango.run(&arguments).ok().json() {
        Value::Array(sessions) => sessions,
        other => panic!("{other}"),
    }
}

#[test]
fn before_the_first_turn_there_are_no_sessions_and_listing_creates_no_file() {
    let lango = Lango::new();
    assert_eq!(list(&lango, &[]), [] as [Value; 0]);
    let shown = lango.run(&["sessions", "list"]).ok().stdout;
    assert_eq!(shown, "no sessions yet; `lango` starts one\n");
    let ran = lango.run(&["sessions", "show", "s_1"]);
    ran.refused(2, &["`s_1`", "lango sessions list"]);
    assert!(!lango.home().exists());
}

#[test]
fn the_most_recently_used_session_comes_first() {
    let lango = Lango::new();
    let [one, two, three] = ["first", "second", "third"].map(|title| lango.session(title));
    lango.run(&["run", "--session", &one, "again"]).ok();
    let sessions = list(&lango, &[]);
    let ids = field_values(&sessions, "id");
    assert_eq!(ids, [&*one, &*three, &*two]);
    assert_eq!(
        field_values(&sessions, "title"),
        ["first", "third", "second"]
    );
    assert_eq!(sessions[0]["turns"], 2);
    assert_eq!(sessions[0]["user"], "local");
    let keys = [
        "created", "events", "folder", "id", "origin", "status", "title", "turns", "updated",
        "user",
    ];
    let found = sessions[0].as_object().unwrap().keys().map(|k| &**k);
    assert_eq!(found.collect::<BTreeSet<_>>(), BTreeSet::from(keys));
}

#[test]
fn a_limited_list_says_that_there_are_more() {
    let lango = Lango::new();
    let sessions = ["a", "b", "c"].map(|title| lango.session(title));
    assert_eq!(list(&lango, &["--limit", "2"]).len(), 2);
    let ran = lango.run(&["sessions", "list", "--limit", "1"]).ok();
    assert!(ran.stdout.starts_with(&sessions[2]), "{ran:#?}");
    assert!(ran.stdout.contains("just now     1 turn  c\n"), "{ran:#?}");
    assert_eq!(ran.stdout.lines().count(), 1);
    assert_eq!(
        ran.stderr,
        "there are more: lango sessions list --limit NUMBER\n"
    );
    let ran = lango.run(&["sessions", "list", "--limit", "0"]).ok();
    assert_eq!(ran.stdout, "");
    let ran = lango.run(&["sessions", "list", "--limit", "3"]).ok();
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_session_is_shown_with_every_author_after_its_process_has_ended() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    let arguments = ["run", "-q", "--session", &session, "hello"];
    lango.run(&arguments).ok();
    let shown = lango.run(&["sessions", "show", &session]).ok().stdout;
    let lines: Vec<&str> = shown.lines().collect();
    let beginning = [
        "user:",
        "  what files are here?",
        "lango-orchestrator → operator: what files are here",
        "operator calls fs_list path=.",
        "operator ✓ 1 folder, 2 files in .",
        "operator:",
        "  1 folder, 2 files in .",
        "  src/",
        "  budget.csv  9 B",
        "  notes.md  22 B",
        "",
        "user:",
        "  hello",
        "lango-orchestrator:",
    ];
    assert_eq!(lines[..beginning.len()], beginning, "{shown}");
    let events = lango.events(&session);
    let authors: BTreeSet<&str> = field_values(&events, "author").into_iter().collect();
    let expected = ["lango-orchestrator", "operator", "user"];
    assert_eq!(authors, BTreeSet::from(expected));
    let numbers = events.iter().map(|event| event["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=events.len() as u64));
}

#[test]
fn authors_stay_the_same_when_the_agents_change() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    let before = lango.events(&session);
    let key = "agent.multiAgent=false";
    let arguments = ["-c", key, "run", "-q", "--session", &session, "hello"];
    lango.run(&arguments).ok();
    let show = ["-c", key, "sessions", "show", &session, "--jsonl"];
    let after = lango.run(&show).ok().json_lines();
    assert_eq!(after[..before.len()], before);
    let new = field_values(&after[before.len()..], "author");
    assert_eq!(new, ["user", "lango-agent", "lango-agent"]);
}

#[test]
fn a_long_session_is_shown_completely() {
    let lango = Lango::new();
    let session = lango.session("start");
    let questions = "what files are here?\n".repeat(80);
    let ran = lango.piped(&["sessions", "resume", &session], questions);
    ran.ok();
    let events = lango.events(&session);
    assert!(events.len() > 500, "{}", events.len());
    let numbers = events.iter().map(|event| event["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=events.len() as u64));
    let shown = lango.run(&["sessions", "show", &session]).ok().stdout;
    assert_eq!(shown.matches("user:\n").count(), 81);
}

#[test]
fn a_prefix_of_an_id_must_match_only_one_session() {
    let lango = Lango::new();
    let (one, two) = (lango.session("a"), lango.session("b"));
    let ran = lango.run(&["sessions", "show", "s_"]);
    let ran = ran.refused(2, &["`s_`", &one, &two, "give more characters of the id"]);
    assert!(!ran.stderr.contains('…'), "{ran:#?}");
    let three = lango.session("c");
    let ran = lango.run(&["run", "--session", "s_", "hello"]);
    ran.refused(2, &["`s_`", ", …"]);
    for id in [one, two, three] {
        lango.run(&["sessions", "show", &id]).ok();
    }
    assert_eq!(list(&lango, &[]).len(), 3);
}

#[test]
fn an_unknown_session_is_refused_and_not_created() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let wild = format!("{}%", &session[..6]);
    for id in ["nope", "%", "s%", "___", &wild, "s_*"] {
        for arguments in [
            &["sessions", "show", id][..],
            &["sessions", "resume", id],
            &["run", "--session", id, "hello"],
        ] {
            let ran = lango.run(arguments);
            ran.refused(2, &[&format!("`{id}`"), "lango sessions list"]);
        }
    }
    assert_eq!(list(&lango, &[]).len(), 1);
    assert_eq!(lango.events(&session).len(), 3);
}

#[test]
fn an_empty_id_matches_no_session() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let ran = lango.run(&["run", "--session", "", "hello"]);
    ran.refused(2, &["id of the session is empty"]);
    assert_eq!(lango.events(&session).len(), 3);
}

#[test]
fn resume_without_a_terminal_reads_one_question_per_line() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let input = "what files are here?\n\n/nope\n/quit\nnever read\n";
    let ran = lango.piped(&["sessions", "resume", &session], input).ok();
    assert!(ran.stdout.contains("notes.md  22 B"), "{ran:#?}");
    assert!(ran.stdout.contains("there is no command /nope"), "{ran:#?}");
    let hint = format!("continue: lango resume {session}\n");
    assert!(ran.stdout.ends_with(&hint), "{ran:#?}");
    let listed = list(&lango, &[]);
    assert_eq!(listed[0]["turns"], 2);
}

#[test]
fn a_title_is_harmless_on_a_terminal() {
    let lango = Lango::new();
    let ran = lango.piped(&["run", "-q"], "hello \u{1b}[2J\u{7} you");
    ran.ok();
    let shown = lango.run(&["sessions", "list"]).ok().stdout;
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{7}'),
        "{shown:?}"
    );
    let session = text(&list(&lango, &[])[0]["id"]).to_owned();
    let shown = lango.run(&["sessions", "show", &session]).ok().stdout;
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let stored = &lango.events(&session)[0]["text"];
    assert_eq!(*stored, json!("hello \u{1b}[2J\u{7} you"));
}
