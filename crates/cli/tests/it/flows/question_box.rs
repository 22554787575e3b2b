//! The box of a question stays in view above what the live part shows, and closes with what became of the question.

use super::tmux::{NARROW, Size, Tmux, WIDE};
use crate::approvals::CREATE;
use crate::lango::{BINARY, Lango, text};
use crate::models::{Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::json;
use std::time::Duration;

const HEADING: &str = "wants to use fs_write";

/// Returns a provider whose operator wants to write a file of 40 lines, after this time.
fn writer_after(time: Duration) -> Provider {
    let lines: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    let arguments = json!({ "path": "new.txt", "content": lines });
    Provider::new(vec![
        ScriptedAnswer::from(delegate_and_finish("operator", "write it")),
        ScriptedAnswer::from(call("fs_write", arguments)).after(time),
        ScriptedAnswer::from(say("Written.")),
    ])
}

#[test]
fn queued_messages_leave_room_for_the_box() {
    for size in [Size { rows: 24, ..WIDE }, Size { rows: 24, ..NARROW }] {
        let provider = writer_after(Duration::from_secs(4));
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("write");
        terminal.wait_for("→ operator");
        for number in 1..=6 {
            terminal.say(&format!("message {number}"));
            terminal.wait_for(&format!("queued: message {number}"));
        }
        let screen = terminal.wait_for("press a key");
        assert!(screen.contains(HEADING), "{screen}");
        assert!(
            screen.contains("queued: message 6 (after 5 other messages)"),
            "{screen}"
        );
        assert!(!screen.contains("too small"), "{screen}");
    }
}

#[test]
fn no_key_allows_a_call_whose_box_a_message_has_pushed_off_the_screen() {
    let provider = writer_after(Duration::ZERO);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, Size { rows: 24, ..WIDE }, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.type_text("a");
    for _ in 0..6 {
        terminal.press(&["C-j", "a"]);
    }
    terminal.wait_until("a box without its heading", |screen| {
        !screen.contains(HEADING)
    });
    terminal.press(&["C-c"]);
    let screen = terminal.wait_for("press a key");
    assert!(screen.contains(HEADING), "{screen}");
    assert!(!lango.workspace().join("new.txt").exists());
    terminal.press(&["y"]);
    terminal.wait_for("└ allowed once");
}

#[test]
fn no_key_allows_a_call_whose_box_a_narrower_window_has_pushed_off_the_screen() {
    let command = format!("echo hi; touch made; echo {}", "C".repeat(300));
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "run it"),
        call("exec", json!({ "command": command })),
        say("Done."),
    ]);
    let lango = Lango::new();
    let size = Size {
        columns: 120,
        rows: 19,
    };
    let mut terminal = Tmux::chat(&lango, size, provider.server.url());
    terminal.say("run");
    let screen = terminal.wait_for("press a key");
    assert!(screen.contains("wants to use exec"), "{screen}");
    terminal.resize(Size {
        columns: 30,
        rows: 19,
    });
    terminal.wait_until("a safe question", |screen| {
        screen.contains("too small")
            || (screen.contains("touch made") && screen.contains("press a"))
    });
    terminal.press(&["y"]);
    let screen = terminal.wait_until("an answer or a refusal", |screen| {
        screen.contains("too small") || screen.contains("allowed once")
    });
    let is_seen = terminal.scrollback().matches("touch made").count() > 1;
    assert!(
        is_seen || !lango.workspace().join("made").exists(),
        "{screen}"
    );
}

#[test]
fn in_a_window_of_fifteen_columns_no_key_allows_a_call() {
    let provider = writer_after(Duration::ZERO);
    let lango = Lango::new();
    let mut terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    let narrow = Size {
        columns: 15,
        rows: 45,
    };
    terminal.resize(narrow);
    terminal.say("write");
    terminal.wait_for("y once");
    // The pause before keys count, and the pager, in which the call is cut.
    std::thread::sleep(Duration::from_millis(1500));
    terminal.press(&["v"]);
    terminal.wait_for("lines 1");
    terminal.press(&["End", "q"]);
    terminal.wait_for("y once");
    std::thread::sleep(Duration::from_millis(1500));
    terminal.press(&["y"]);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!lango.workspace().join("new.txt").exists());
    terminal.resize(WIDE);
    terminal.wait_for("press a key");
    terminal.press(&["y"]);
    terminal.wait_for("└ allowed once");
}

#[test]
fn the_box_is_printed_again_after_the_shell_has_used_the_screen() {
    let provider = writer_after(Duration::ZERO);
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    let flags: Vec<String> = flags.iter().map(|flag| format!("'{flag}'")).collect();
    let terminal = Tmux::start_shell(&lango, WIDE, "PS1='shell: ' exec bash --norc -i");
    terminal.wait_for("shell:");
    terminal.say(&format!("{BINARY} {}", flags.join(" ")));
    terminal.wait_for("mode: ask");
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["C-z"]);
    terminal.wait_for("Stopped");
    terminal.say("clear; seq 60");
    terminal.wait_for("60");
    terminal.say("fg");
    let screen = terminal.wait_for("press a key");
    assert!(screen.contains(HEADING), "{screen}");
}

#[test]
fn a_question_that_ends_with_the_turn_was_stopped_and_not_answered_elsewhere() {
    let provider = writer_after(Duration::ZERO);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("└ write new.txt?");
    terminal.press(&["Escape"]);
    terminal.wait_for("└ stopped: write new.txt");
    assert!(!terminal.scrollback().contains("elsewhere"));
}

#[test]
fn a_typed_command_comes_after_the_question_that_another_process_left() {
    let lango = Lango::new();
    let chat = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    chat.wait_for("mode: ask");
    chat.say("hello");
    chat.wait_for("1 model call");
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    let session = text(&listed[0]["id"]).to_owned();
    let other = Tmux::start(&lango, WIDE, &["run", "--session", &session, CREATE], &[]);
    other.wait_for("press a key");
    other.press(&["C-d"]);
    assert_eq!(other.exit_code(), 4);
    let new = Tmux::start::<&str>(&lango, NARROW, &[], &[]);
    let screen = new.wait_for("mode: ask");
    assert!(screen.contains("waits for your answer:"), "{screen}");
    assert!(screen.contains("demo mode · /help"), "{screen}");

    chat.say("!echo typed");
    let screen = chat.wait_for("press a key");
    assert!(screen.contains("└ write notes/a.md?"), "{screen}");
    chat.press(&["y"]);
    let screen = chat.wait_for("$ echo typed");
    assert!(lango.workspace().join("notes/a.md").exists(), "{screen}");
    let shown = lango.run(&["sessions", "show", &session]).ok().stdout;
    let (other_turn, typed) = shown.split_once("!echo typed").unwrap();
    // The turn of the other process has the answer of its own model.
    let answer = "operator:\n  created notes/a.md";
    assert!(other_turn.contains(answer), "{shown}");
    assert_eq!(typed.matches("calls exec").count(), 1, "{shown}");
}
