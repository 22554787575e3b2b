//! The approval of a change that is longer than the screen.

use super::tmux::{NARROW, Tmux, WIDE};
use crate::lango::Lango;
use crate::models::Provider;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::json;
use std::fs;
use std::time::Duration;

const LINES: usize = 180;

/// Returns a file in which every line differs.
fn file(what: &str) -> String {
    (1..=LINES)
        .map(|number| format!("{what} line {number}\n"))
        .collect()
}

#[test]
fn a_long_diff_is_shortened_and_shown_in_full_on_request() {
    for size in [WIDE, NARROW] {
        let provider = Provider::new(vec![
            ScriptedAnswer::from(delegate_and_finish("operator", "rewrite it")),
            ScriptedAnswer::from(call(
                "fs_write",
                json!({ "path": "long.txt", "content": file("new") }),
            ))
            .after(Duration::from_secs(1)),
            ScriptedAnswer::from(say("Written.")),
        ]);
        let lango = Lango::new();
        lango.file("long.txt", file("old"));
        let path = lango.workspace().join("long.txt");
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("rewrite");
        terminal.wait_for("→ operator");
        // The model is slow, and the user types on.
        terminal.type_text("y");
        terminal.wait_for("> y");

        let screen = terminal.wait_for("press a key");
        assert!(screen.contains("> y"), "the key is text: {screen}");
        assert_eq!(fs::read_to_string(&path).unwrap(), file("old"));
        let scrollback = terminal.scrollback();
        let is_diff = |row: &&str| row.starts_with("│   -") || row.starts_with("│   +");
        let shown = scrollback.lines().filter(is_diff).count();
        assert!((1..=20).contains(&shown), "{shown} rows: {scrollback}");
        assert!(scrollback.contains("more lines"), "{scrollback}");
        assert!(screen.contains("└ write long.txt?"), "{screen}");
        terminal.assert_no_line_is_too_long();

        terminal.press(&["v"]);
        terminal.wait_for("the whole call");
        let mut seen = String::new();
        let mut page = terminal.screen();
        while !page.contains("+new line 180") {
            seen += &format!("{page}\n");
            // The last row of a page is written last.
            let last_row = page.lines().last().map(str::to_owned);
            terminal.press(&["Space"]);
            page = terminal.wait_until("the next page", |screen| {
                let row = screen.lines().last();
                row != last_row.as_deref() && row.is_some_and(|row| row.contains("q back"))
            });
        }
        seen += &page;
        for number in 1..=LINES {
            for line in [
                format!("│   -old line {number}"),
                format!("│   +new line {number}"),
            ] {
                assert!(seen.lines().any(|row| row == line), "{line}: {seen}");
            }
        }

        terminal.press(&["q"]);
        let screen = terminal.wait_for("press a key");
        assert!(screen.contains("└ write long.txt?"), "{screen}");
        assert!(!screen.contains("the whole call"), "{screen}");
        assert_eq!(fs::read_to_string(&path).unwrap(), file("old"));
        terminal.press(&["y"]);
        terminal.wait_for("3 model calls");
        assert_eq!(fs::read_to_string(&path).unwrap(), file("new"));
        let scrollback = terminal.scrollback();
        assert!(scrollback.contains("✓ write long.txt"), "{scrollback}");
        assert!(!scrollback.contains("press a key"), "{scrollback}");
    }
}
