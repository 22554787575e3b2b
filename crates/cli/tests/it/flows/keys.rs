//! Keys and events that change the whole screen: the mode, and a new size.

use super::tmux::{NARROW, Size, Tmux, WIDE};
use super::{END_OF_TURN, SPINNER, TOKEN, words};
use crate::lango::{BINARY, Lango};
use crate::models::{Provider, flags};
use lango_testkit::model::{calls, delegate_and_finish, say};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::json;

#[test]
fn shift_tab_switches_the_mode_in_the_status_line() {
    let lango = Lango::new();
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    for mode in ["accept-edits", "read-only", "plan", "ask"] {
        terminal.press(&["BTab"]);
        let expected = format!("mode: {mode} ");
        terminal.wait_until(&expected, |screen| {
            let last = screen.lines().last().unwrap_or_default();
            last.starts_with(&expected)
        });
    }
}

#[test]
fn switching_to_accept_edits_answers_pending_edits_and_no_other_question() {
    let file = |path: &str| ("fs_write", json!({ "path": path, "content": "new\n" }));
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write"),
        calls([file("a.md"), file("b.md"), file("Makefile")]),
        say("Written."),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["BTab"]);
    let screen = terminal.wait_until("the question about the Makefile", |screen| {
        screen.contains("└ write Makefile?") && screen.contains("press a key")
    });
    let exists = |path: &str| lango.workspace().join(path).exists();
    assert!(screen.contains("mode: accept-edits"), "{screen}");
    assert!(!exists("Makefile"), "{screen}");
    terminal.press(&["n"]);
    terminal.wait_for("3 model calls");
    assert!(exists("a.md") && exists("b.md") && !exists("Makefile"));
}

#[test]
fn mode_is_a_command_of_its_own_and_exit_leaves() {
    let lango = Lango::new();
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    terminal.say("/mode");
    terminal.wait_for("the mode is ask");
    terminal.say("exit");
    assert_eq!(terminal.exit_code(), 0);

    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    terminal.press(&["C-c"]);
    terminal.wait_for("ctrl-c again");
    terminal.press(&["C-c"]);
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_turn_goes_on_after_ctrl_z() {
    let provider = Provider::new(vec![ScriptedAnswer::from(say(&words(60))).paced(TOKEN)]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("w5 ");
    // tmux continues a stopped program at once, as `fg` does.
    terminal.press(&["C-z"]);
    let screen = terminal.wait_for(END_OF_TURN);
    assert!(screen.contains("w60"), "{screen}");
    assert_eq!(screen.matches("w5 ").count(), 1, "{screen}");
    terminal.type_text("still here");
    terminal.wait_for("> still here");
}

#[test]
fn a_long_paragraph_is_shown_once_while_the_window_becomes_narrower() {
    // A frame that is on its way when tmux changes its window is drawn with the old width, and can be left over.
    let shown: Vec<String> = (0..3)
        .map_while(|_| paragraph_in_narrower_windows().err())
        .collect();
    assert!(shown.len() < 3, "{}", shown.join("\n\n"));
}

/// Shows a paragraph while the user drags the window twice. Returns the screen if a word of it is missing or repeated.
fn paragraph_in_narrower_windows() -> Result<(), String> {
    let answer = words(400);
    let provider = Provider::new(vec![ScriptedAnswer::from(say(&answer)).paced(TOKEN * 2)]);
    let lango = Lango::new();
    let mut terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    for (word, widths) in [("w150", [104, 98, 92, 88]), ("w300", [80, 72, 66, 60])] {
        terminal.wait_for(word);
        for columns in widths {
            terminal.resize(Size { columns, rows: 40 });
        }
    }
    terminal.wait_for(END_OF_TURN);
    let scrollback = terminal.scrollback();
    let (_, shown) = scrollback.split_once("> write").unwrap();
    let (shown, _) = shown.split_once("  lango-orchestrator ·").unwrap();
    // The terminal has wrapped the older rows, also within words.
    let without_space = |text: &str| text.replace(char::is_whitespace, "");
    if without_space(shown) == without_space(&answer) {
        Ok(())
    } else {
        Err(terminal.framed(&scrollback))
    }
}

#[test]
fn a_run_that_is_suspended_leaves_the_terminal_to_the_shell() {
    let provider = Provider::new(vec![
        ScriptedAnswer::from(say(&words(60))).paced(TOKEN * 10),
    ]);
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    let flags: Vec<String> = flags.iter().map(|flag| format!("'{flag}'")).collect();
    let terminal = Tmux::start_shell(&lango, WIDE, "PS1='shell: ' exec bash --norc -i");
    terminal.wait_for("shell:");
    terminal.say(&format!("{BINARY} run {} write", flags.join(" ")));
    terminal.wait_for("ctrl-c stops");
    terminal.press(&["C-z"]);
    let screen = terminal.wait_for("Stopped");
    assert!(!screen.contains("ctrl-c stops"), "{screen}");
    terminal.say("echo still $((40 + 2))");
    terminal.wait_for("still 42");
    terminal.say("fg");
    let screen = terminal.wait_for("1 model call");
    assert!(screen.contains("still 42"), "{screen}");
    assert!(screen.contains("w60"), "{screen}");
}

#[test]
fn a_terminal_that_becomes_narrow_and_wide_during_a_turn_shows_everything_once() {
    let answer = words(100);
    let provider = Provider::new(vec![ScriptedAnswer::from(say(&answer)).paced(TOKEN * 3)]);
    let lango = Lango::new();
    let mut terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    // Fill the screen: what a terminal does with the blank rows below the cursor is its own affair.
    terminal.say("/help");
    terminal.wait_for("waits for its end");
    terminal.say("/config");
    terminal.wait_until("a full screen", |screen| {
        screen.lines().count() == WIDE.rows
    });
    terminal.say("write");
    for (word, size) in [("w30 ", NARROW), ("w60 ", WIDE)] {
        terminal.wait_for(word);
        terminal.resize(size);
    }
    terminal.wait_for(END_OF_TURN);
    let scrollback = terminal.scrollback();
    let (_, shown) = scrollback.split_once("> write").unwrap();
    let (shown, _) = shown.split_once("  lango-orchestrator ·").unwrap();
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let expected: Vec<&str> = answer.split_whitespace().collect();
    assert!(shown == expected, "{}", terminal.framed(&scrollback));
    assert!(!scrollback.contains(SPINNER), "{scrollback}");
    let status_rows = scrollback.matches("mode: ask (shift-tab)").count();
    assert_eq!(status_rows, 1, "{scrollback}");
}

#[test]
fn ctrl_l_clears_the_screen_and_the_scrollback_keeps_it() {
    let lango = Lango::new();
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    terminal.say("hello");
    terminal.wait_for(END_OF_TURN);
    terminal.type_text("half a mess");
    terminal.wait_for("> half a mess");
    terminal.press(&["C-l"]);
    let screen = terminal.wait_until("a clear screen", |screen| !screen.contains("hello"));
    assert!(screen.contains("> half a mess\nmode: ask"), "{screen}");
    let scrollback = terminal.scrollback();
    assert_eq!(scrollback.matches("> hello").count(), 1, "{scrollback}");
    assert_eq!(scrollback.matches("mode: ask").count(), 1, "{scrollback}");
}
