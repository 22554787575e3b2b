//! The approval of a change that is longer than the screen.

use super::tmux::{NARROW, Size, Tmux, WIDE};
use crate::lango::{BINARY, Lango};
use crate::models::{Provider, flags};
use lango_testkit::model::{call, calls, delegate_and_finish, say};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::json;
use std::fs;
use std::thread;
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
            .after(Duration::from_secs(3)),
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

        let screen = terminal.wait_for("your message comes first");
        assert!(screen.contains("> y"), "the key is text: {screen}");
        assert_eq!(fs::read_to_string(&path).unwrap(), file("old"));
        terminal.press(&["C-u"]);
        let screen = terminal.wait_for("press a key");
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

/// Returns a model that writes a file and then says so.
fn writer(content: &str) -> Provider {
    Provider::new(vec![
        ScriptedAnswer::from(delegate_and_finish("operator", "write it")),
        ScriptedAnswer::from(call(
            "fs_write",
            json!({ "path": "new.txt", "content": content }),
        )),
        ScriptedAnswer::from(say("Written.")),
    ])
}

#[test]
fn a_key_right_after_the_program_was_stopped_does_not_answer() {
    let provider = writer("x");
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    // tmux continues a stopped program at once, as `fg` does.
    terminal.press(&["C-z"]);
    terminal.press(&["y"]);
    terminal.wait_for("keys count after a short pause");
    terminal.wait_for("press a key");
    assert!(!lango.workspace().join("new.txt").exists());
    terminal.press(&["y"]);
    terminal.wait_for("3 model calls");
    assert!(lango.workspace().join("new.txt").exists());
}

#[test]
fn the_call_is_shown_again_after_the_window_was_too_low_for_it() {
    let content: String = (1..=12).map(|number| format!("row {number}\n")).collect();
    let provider = writer(&content);
    let lango = Lango::new();
    let mut terminal = Tmux::chat(&lango, NARROW, provider.server.url());
    terminal.say("write");
    let screen = terminal.wait_for("press a key");
    assert!(screen.contains("wants to use fs_write"), "{screen}");
    assert!(screen.contains("+row 12"), "{screen}");
    let low = Size { rows: 10, ..NARROW };
    terminal.resize(low);
    terminal.wait_until("the low window", |screen| {
        !screen.contains("wants to use") && screen.contains("the window is too small for the call")
    });
    // No key allows what cannot be seen.
    terminal.press(&["y"]);
    terminal.wait_until("the hint in yellow", |_| {
        let hint = "[33m  the window is too small";
        terminal.with_attributes().contains(hint)
    });
    terminal.press(&["v"]);
    terminal.wait_for("the whole call");
    assert!(!lango.workspace().join("new.txt").exists());
    terminal.press(&["G", "q"]);
    terminal.wait_for("press a key");
    terminal.resize(NARROW);
    let screen = terminal.wait_for("wants to use fs_write");
    assert!(screen.contains("+row 12"), "{screen}");
    terminal.wait_for("└ write new.txt?");
}

#[test]
fn a_message_is_returned_while_a_question_waits() {
    let provider = writer("x");
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["C-d"]);
    terminal.wait_for("waiting: p_");
    terminal.say("and now?");
    terminal.wait_for("press a key");
    terminal.press(&["C-d"]);
    let screen = terminal.wait_for("the message was not sent");
    assert!(screen.contains("waits for your answer first"), "{screen}");
    terminal.wait_until("the message in the input", |screen| {
        screen.lines().any(|row| row == "> and now?") && !screen.contains("press a key")
    });
    assert_eq!(provider.server.requests().len(), 2, "nothing was sent");
}

#[test]
fn a_second_question_is_announced() {
    let write = |path: &str| ("fs_write", json!({ "path": path, "content": "x" }));
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write both"),
        calls([write("one.txt"), write("two.txt")]),
        say("Both are written."),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, NARROW, provider.server.url());
    terminal.say("write");
    let screen = terminal.wait_for("press a key");
    assert!(screen.contains("1 question after this"), "{screen}");
    terminal.press(&["y"]);
    terminal.wait_for("└ write two.txt?");
    let screen = terminal.wait_for("press a key");
    assert!(!screen.contains("after this"), "{screen}");
}

#[test]
fn a_question_is_on_the_screen_once_after_the_window_became_narrow() {
    let provider = writer("x");
    let lango = Lango::new();
    let mut terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    for (columns, last_hint) in [(60, "  shift-tab accepts edits"), (40, "  accepts edits")] {
        terminal.resize(Size { columns, rows: 40 });
        terminal.wait_until("the new width", |screen| {
            screen.lines().any(|row| row == last_hint)
        });
    }
    terminal.press(&["n"]);
    terminal.wait_for("3 model calls");
    let scrollback = terminal.scrollback();
    assert_eq!(
        scrollback.matches("└ write new.txt?").count(),
        0,
        "{scrollback}"
    );
    assert_eq!(
        scrollback.matches("wants to use fs_write").count(),
        1,
        "{scrollback}"
    );
}

#[test]
fn a_text_that_arrives_at_a_question_becomes_a_message_and_answers_nothing() {
    let provider = writer("x");
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    // A terminal that does not mark what is pasted sends it like keys.
    terminal.type_text("yes, but why?");
    terminal.wait_for("> yes, but why?");
    terminal.wait_for("your message comes first");
    terminal.press(&["C-u"]);
    terminal.wait_for("press a key");
    // So does a command that is typed letter by letter.
    for letter in "/approvals".chars() {
        terminal.type_text(&letter.to_string());
    }
    terminal.wait_for("> /approvals");
    terminal.press(&["Enter"]);
    terminal.wait_for("queued: /approvals");
    assert!(!lango.workspace().join("new.txt").exists());
    terminal.wait_for("press a key");
    terminal.press(&["n"]);
    terminal.wait_for("there are no pending approvals");
}

#[test]
fn the_rest_of_a_sequence_that_arrives_late_answers_nothing() {
    let provider = writer("x");
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.type_text("\u{1b}[20");
    // Longer than a lone escape byte waits for the rest of its sequence.
    thread::sleep(Duration::from_millis(200));
    terminal.type_text("0~y\u{1b}[201~");
    terminal.wait_for("your message comes first");
    assert!(!lango.workspace().join("new.txt").exists());
}

#[test]
fn in_a_window_of_seven_rows_nothing_is_allowed_before_it_was_viewed() {
    let provider = writer("one\ntwo\nthree\n");
    let lango = Lango::new();
    let size = Size { rows: 7, ..WIDE };
    let terminal = Tmux::chat(&lango, size, provider.server.url());
    terminal.say("write");
    terminal.wait_for("the window is too small for the call");
    terminal.press(&["y"]);
    terminal.wait_until("the hint in yellow", |_| {
        let hint = "[33m  the window is too small";
        terminal.with_attributes().contains(hint)
    });
    assert!(!lango.workspace().join("new.txt").exists());
    // It was not viewed before its end was on the screen.
    terminal.press(&["v"]);
    terminal.wait_for("the whole call");
    terminal.press(&["q"]);
    terminal.wait_for("the window is too small for the call");
    terminal.press(&["v"]);
    terminal.wait_for("the whole call");
    terminal.press(&["G", "q"]);
    terminal.wait_for("press a key");
    terminal.press(&["y"]);
    terminal.wait_for("3 model calls");
    assert!(lango.workspace().join("new.txt").exists());
}

#[test]
fn a_chat_whose_errors_go_to_a_file_asks_on_the_screen_and_writes_them_there_as_they_are() {
    let provider = writer("x");
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    let flags: Vec<String> = flags.iter().map(|flag| format!("'{flag}'")).collect();
    let command = format!("{BINARY} {} 2>errors.log", flags.join(" "));
    let terminal = Tmux::start_shell(&lango, WIDE, &command);
    terminal.wait_for("mode: ask");
    let missing = "no/such/file/".repeat(12) + "x";
    terminal.say(&format!("write @{missing}"));
    terminal.wait_for("press a key");
    terminal.press(&["v"]);
    terminal.wait_for("the whole call");
    terminal.press(&["q"]);
    terminal.wait_for("press a key");
    terminal.press(&["y"]);
    terminal.wait_for("3 model calls");
    let errors = fs::read_to_string(lango.workspace().join("errors.log")).unwrap();
    let expected = format!("not attached, because there is no such file: {missing}\n");
    assert_eq!(errors, expected);
}

#[test]
fn a_grant_is_listed_and_taken_back_in_the_chat() {
    let provider = writer("x");
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["s"]);
    terminal.wait_for("enter grants it");
    terminal.press(&["Enter"]);
    terminal.wait_for("3 model calls");
    terminal.say("/approvals");
    let screen = terminal.wait_for("revoke: /approvals revoke ID");
    assert!(screen.contains("granted  p_"), "{screen}");
    terminal.say("/approvals revoke p_");
    terminal.wait_for("revoked: p_");
    terminal.say("/approvals");
    terminal.wait_for("there are no pending approvals");
    terminal.say("/approvals all");
    terminal.wait_for("/approvals cannot be followed by `all`");
}
