//! `lango config edit`: the text is checked before it is stored, and never lost.

use crate::lango::{Lango, RunResult, finish};
use crate::terminal::Terminal;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Writes an editor: a script that gets the path of the file as its first argument.
fn editor(lango: &Lango, script: &str) -> String {
    lango.file("editor.sh", format!("#!/bin/sh\n{script}\n"));
    let path = lango.workspace().join("editor.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn edit(lango: &Lango, script: &str, arguments: &[&str]) -> RunResult {
    let editor = editor(lango, script);
    let mut command = lango.command(&[&["config", "edit"], arguments].concat());
    finish(command.env("EDITOR", editor), b"")
}

/// Returns the contents of the drafts that were kept.
fn drafts(lango: &Lango) -> Vec<String> {
    let entries = lango
        .home()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.to_string_lossy().contains("config-draft"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn an_edited_file_is_stored_and_an_unchanged_one_is_not_touched() {
    let lango = Lango::new();
    let ran = edit(&lango, "echo 'agent.maxCost = 1' > \"$1\"", &[]).ok();
    let file = lango.home().join("lango.toml");
    assert_eq!(ran.stdout, format!("stored {}\n", file.display()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "agent.maxCost = 1\n");
    let ran = edit(&lango, "grep -q maxCost \"$1\"", &[]).ok();
    assert_eq!(ran.stdout, "nothing changed\n");
    assert_eq!(drafts(&lango), [""; 0]);
    // VISUAL wins and may have options; the project's file stays trusted.
    let editor = editor(
        &lango,
        "shift; echo 'agent.model = \"offline/rules\"' > \"$1\"",
    );
    let mut command = lango.command(&["config", "edit", "--project"]);
    command.env("EDITOR", "false");
    finish(command.env("VISUAL", format!("{editor} --wait")), b"").ok();
    let model = lango.run(&["config", "get", "agent.model"]).ok();
    assert_eq!(model.stdout, "offline/rules\n");
}

#[test]
fn a_wrong_text_is_kept_and_the_file_stays_as_it_was() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "agent.maxCost = 1\n");
    let wrong = "agent.modle = \"x\"\n";
    let ran = edit(&lango, "echo 'agent.modle = \"x\"' > \"$1\"", &[]);
    let ran = ran.refused(3, &["unknown key `agent.modle`", "your text is in"]);
    assert!(ran.stderr.contains("lango.toml:1"), "{ran:#?}");
    let file = lango.home().join("lango.toml");
    assert_eq!(fs::read_to_string(&file).unwrap(), "agent.maxCost = 1\n");
    assert_eq!(drafts(&lango), [wrong]);
    // A failing editor, a text that is not TOML, and a change by another program in between.
    edit(&lango, "echo a > \"$1\"; exit 3", &[]).refused(1, &["failed", "your text is in"]);
    edit(&lango, "printf '\\377' > \"$1\"", &[]).exits(3);
    let change = format!(
        "echo 'agent.maxCost = 2' > '{}'; echo 'agent.maxCost = 3' > \"$1\"",
        file.display()
    );
    edit(&lango, &change, &[]).refused(1, &["was changed meanwhile", "your text is in"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "agent.maxCost = 2\n");
}

#[test]
fn on_a_terminal_a_wrong_text_can_be_edited_again() {
    let lango = Lango::new();
    let script = "if grep -q modle \"$1\"; then sed -i s/modle/model/ \"$1\"; \
                  else echo 'agent.modle = \"offline/rules\"' > \"$1\"; fi";
    let editor = editor(&lango, script);
    let mut terminal = Terminal::start(&lango, 100, &["config", "edit"], &[("EDITOR", &editor)]);
    let shown = terminal.wait_for("edit it again? [Y/n] ");
    assert!(shown.contains("did you mean `agent.model`?"), "{shown}");
    terminal.press("\r");
    let (code, shown) = terminal.end();
    assert!(code == Some(0) && shown.contains("stored "), "{shown}");
    assert_eq!(drafts(&lango), [""; 0]);
    let script = "echo 'agent.modle = 1' > \"$1\"";
    let editor = self::editor(&lango, script);
    let mut terminal = Terminal::start(&lango, 100, &["config", "edit"], &[("EDITOR", &editor)]);
    terminal.wait_for("[Y/n] ");
    terminal.press("n\r");
    assert_eq!(terminal.end().0, Some(3));
    assert_eq!(drafts(&lango), ["agent.modle = 1\n"]);
}

#[test]
fn without_a_terminal_and_an_editor_of_the_users_own_nothing_starts() {
    let lango = Lango::new();
    let mut command = lango.command(&["config", "edit"]);
    command.env_remove("EDITOR").env_remove("VISUAL");
    finish(&mut command, b"").refused(2, &["no terminal", "lango config set"]);
    assert!(!lango.home().join("lango.toml").exists());
}
