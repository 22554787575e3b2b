//! `lango memory`: the memories of the user over all sessions.

use crate::lango::{Lango, text};
use crate::terminal::Terminal;
use serde_json::Value;

/// Lets the built-in rules observe every turn.
const OBSERVE: [&str; 2] = ["-c", "observationalMemory.messageTokenThreshold=0"];

fn tell(lango: &Lango, message: &str) {
    let ran = lango.run(&[&OBSERVE, &["run", message][..]].concat()).ok();
    assert!(ran.stderr.contains("remembered 1 turn"), "{ran:#?}");
}

fn list(lango: &Lango) -> Vec<Value> {
    let listed = lango.run(&["memory", "list", "--json"]).ok().json();
    listed.as_array().unwrap().clone()
}

#[test]
fn memories_are_listed_and_searched_over_all_sessions() {
    let lango = Lango::new();
    let nothing = lango.run(&["memory", "list"]).ok();
    assert_eq!(nothing.stdout, "no memories yet\n");
    assert!(list(&lango).is_empty() && !lango.home().exists());
    tell(&lango, "I prefer tea to coffee.");
    tell(&lango, "I prefer rain to sun.");
    let other = ["-c", "session.user=ann", "run", "I prefer silence."];
    lango.run(&[&OBSERVE, &other[..]].concat()).ok();
    let memories = list(&lango);
    assert_eq!(memories.len(), 2, "{memories:?}");
    assert!(text(&memories[0]["text"]).contains("rain"), "{memories:?}");
    assert_eq!(memories[0]["kind"], "observation");
    assert!(text(&memories[0]["session"]).starts_with("s_"));
    let shown = lango.run(&["memory", "list", "--limit", "1"]).ok();
    assert_eq!(shown.stdout.lines().count(), 1);
    assert!(shown.stderr.contains("there are more"), "{shown:#?}");
    let found = lango.run(&["memory", "search", "TEA", "coff"]).ok();
    assert!(found.stdout.contains("prefer tea"), "{found:#?}");
    assert_eq!(found.stdout.lines().count(), 1);
    let found = lango.run(&["memory", "search", "--json", "silence"]).ok();
    assert_eq!(found.json(), Value::Array(Vec::new()));
    lango
        .run(&["memory", "search", "?"])
        .refused(2, &["contains no word"]);
}

#[test]
fn a_memory_is_forgotten_by_its_id_after_a_confirmation() {
    let lango = Lango::new();
    lango
        .run(&["memory", "forget", "o_1"])
        .refused(2, &["nothing is stored yet"]);
    tell(&lango, "I prefer tea to coffee.");
    tell(&lango, "I prefer rain to sun.");
    let id = text(&list(&lango)[1]["id"]).to_owned();
    lango.run(&["memory", "forget", &id]).refused(2, &["--yes"]);
    lango
        .run(&["memory", "forget", "x", "--yes"])
        .refused(2, &["`x` is not the id"]);
    for flags in [&["--yes"][..], &[]] {
        let arguments = [&["memory", "forget", "m_99"], flags].concat();
        lango.run(&arguments).refused(2, &["no memory `m_99`"]);
    }
    lango.run(&["memory", "forget"]).exits(2);
    for (typed, left) in [("n\r", 2), ("y\r", 1)] {
        let mut terminal = Terminal::start(&lango, 100, &["memory", "forget", &id], &[]);
        let shown = terminal.wait_for("permanently? [y/N] ");
        assert!(shown.contains("tea"), "{shown}");
        terminal.press(typed);
        let (code, shown) = terminal.end();
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(list(&lango).len(), left, "{typed:?}");
    }
    assert!(text(&list(&lango)[0]["text"]).contains("rain"));
    for (path, bytes) in lango.stored_files() {
        // The log of the session still has the message, but once.
        let count = String::from_utf8_lossy(&bytes)
            .matches("preference: I prefer tea")
            .count();
        assert_eq!(count, 0, "{}", path.display());
    }
}

#[test]
fn all_memories_are_forgotten_for_good() {
    let lango = Lango::new();
    tell(&lango, "I prefer tea to coffee.");
    let session = lango.session("I prefer rain to sun.");
    let ran = lango.run(&["memory", "forget", "--all", "-y"]).ok();
    assert!(ran.stdout.starts_with("forgot 1 memory;"), "{ran:#?}");
    // The turn that was not observed yet is not observed later.
    let again = ["run", "--session", &session, "I prefer trains."];
    lango.run(&[&OBSERVE, &again[..]].concat()).ok();
    let memories = list(&lango);
    assert_eq!(memories.len(), 1, "{memories:?}");
    assert!(
        !text(&memories[0]["text"]).contains("rain "),
        "{memories:?}"
    );
    let ran = lango.run(&["memory", "forget", "--all", "--yes"]).ok();
    assert!(ran.stdout.starts_with("forgot 1 memory;"), "{ran:#?}");
}
