//! Taking back what a turn changed.

use super::tmux::{NARROW, Tmux, WIDE};
use crate::lango::Lango;
use crate::models::{Provider, flags};
use lango_testkit::model::{call, calls, delegate_and_finish, say};
use serde_json::json;
use std::fs;

#[test]
fn undo_restores_a_file_and_lists_commands_as_not_undone() {
    for size in [WIDE, NARROW] {
        let provider = Provider::new(vec![
            delegate_and_finish("operator", "change it"),
            call(
                "fs_write",
                json!({ "path": "notes.md", "content": "other\n" }),
            ),
            call("exec", json!({ "command": "touch made-by-a-command" })),
            say("Changed."),
        ]);
        let lango = Lango::new();
        let path = lango.workspace().join("notes.md");
        let before = fs::read_to_string(&path).unwrap();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("change");
        for question in ["write notes.md?", "run `touch made-by-a-command`?"] {
            terminal.wait_until(question, |screen| {
                screen.contains(question) && screen.contains("press a key")
            });
            terminal.press(&["y"]);
        }
        terminal.wait_for("4 model calls");
        assert_eq!(fs::read_to_string(&path).unwrap(), "other\n");

        terminal.say("/diff");
        let screen = terminal.wait_for("changed notes.md");
        assert!(screen.contains("+other"), "{screen}");
        terminal.say("/undo");
        let screen = terminal.wait_for("/undo yes takes these changes back");
        assert_eq!(fs::read_to_string(&path).unwrap(), "other\n");
        let (_, undone) = screen.split_once("> /undo").unwrap();
        assert!(
            undone.contains("undo would take back \"change\""),
            "{screen}"
        );
        assert!(undone.contains("+other"), "{screen}");
        let command = undone
            .lines()
            .find(|row| row.contains("touch made-by-a-command"));
        assert!(command.unwrap().contains("not undone"), "{screen}");
        terminal.say("/undo yes");
        terminal.wait_for("notes.md is as before that turn");
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        assert!(lango.workspace().join("made-by-a-command").exists());
        terminal.say("/undo yes");
        terminal.wait_for("no turn of this session changed files");
        terminal.assert_no_line_is_too_long();
    }
}

#[test]
fn a_file_that_changed_since_is_left_and_the_others_are_restored() {
    let write = |path: &str| ("fs_write", json!({ "path": path, "content": "new\n" }));
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write both"),
        calls([write("one.txt"), write("two.txt")]),
        say("Both are written."),
    ]);
    let lango = Lango::new();
    let mut arguments = flags("openai", provider.server.url());
    arguments.extend(["--mode", "accept-edits"].map(str::to_owned));
    let terminal = Tmux::start(&lango, WIDE, &arguments, &[]);
    terminal.wait_for("mode: accept-edits");
    terminal.say("write");
    terminal.wait_for("3 model calls");
    lango.file("two.txt", "mine\n");
    terminal.say("/undo");
    terminal.wait_for("/undo partial restores the other files");
    terminal.say("/undo partial");
    let screen = terminal.wait_for("one.txt is as before that turn");
    assert!(screen.contains("left two.txt: "), "{screen}");
    assert!(!lango.workspace().join("one.txt").exists());
    let left = fs::read_to_string(lango.workspace().join("two.txt")).unwrap();
    assert_eq!(left, "mine\n");
}

#[test]
fn a_confirmation_counts_only_for_what_was_shown_since_the_last_turn() {
    let write = |path: &str| call("fs_write", json!({ "path": path, "content": "new\n" }));
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write one"),
        write("one.txt"),
        say("One is written."),
        delegate_and_finish("operator", "write two"),
        write("two.txt"),
        say("Two is written."),
    ]);
    let lango = Lango::new();
    let mut arguments = flags("openai", provider.server.url());
    arguments.extend(["--mode", "accept-edits"].map(str::to_owned));
    let terminal = Tmux::start(&lango, WIDE, &arguments, &[]);
    terminal.wait_for("mode: accept-edits");
    terminal.say("first");
    terminal.wait_for("One is written.");
    terminal.say("/undo");
    terminal.wait_for("/undo yes takes these changes back");
    terminal.say("second");
    terminal.wait_for("Two is written.");
    terminal.say("/undo yes");
    terminal.wait_for("undo would take back \"second\"");
    terminal.wait_for("not shown since the last turn");
    terminal.say("/undo list");
    terminal.wait_for("undo: /undo TURN");
    assert!(lango.workspace().join("one.txt").exists());
    assert!(lango.workspace().join("two.txt").exists());
    terminal.say("/undo yes");
    terminal.wait_for("undone: \"second\"");
    assert!(lango.workspace().join("one.txt").exists());
    assert!(!lango.workspace().join("two.txt").exists());
}
