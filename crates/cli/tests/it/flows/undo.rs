//! Taking back what a turn changed.

use super::tmux::{NARROW, Tmux, WIDE};
use crate::lango::Lango;
use crate::models::Provider;
use lango_testkit::model::{call, delegate_and_finish, say};
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
        let screen = terminal.wait_for("undone: 1 path restored");
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        let (_, undone) = screen.split_once("> /undo").unwrap();
        assert!(undone.contains("undoing \"change\""), "{screen}");
        let command = undone
            .lines()
            .find(|row| row.contains("touch made-by-a-command"));
        assert!(command.unwrap().contains("not undone"), "{screen}");
        assert!(lango.workspace().join("made-by-a-command").exists());

        terminal.say("/undo");
        terminal.wait_for("no turn of this session changed files");
        terminal.assert_no_line_is_too_long();
    }
}
