//! Closing the terminal: the program ends, whatever it was doing.

use super::spinner_rows;
use super::tmux::{Tmux, WIDE};
use crate::lango::Lango;
use crate::models::Provider;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{Fault, ScriptedAnswer};
use serde_json::json;

#[test]
fn closing_the_terminal_ends_a_chat_that_waits_for_a_message() {
    let lango = Lango::new();
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    terminal.type_text("half a mess");
    terminal.wait_for("> half a mess");
    terminal.close();
}

#[test]
fn closing_the_terminal_ends_a_running_turn() {
    let provider = Provider::new(vec![ScriptedAnswer::from(Fault::SilentBeforeHead)]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("go");
    terminal.wait_until("a running turn", |screen| !spinner_rows(screen).is_empty());
    terminal.close();
}

#[test]
fn closing_the_terminal_ends_a_chat_that_shows_a_pager_or_a_list() {
    let provider = Provider::new(vec![
        say("Hello."),
        delegate_and_finish("operator", "write"),
        call("fs_write", json!({ "path": "a.md", "content": "x" })),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("hello");
    terminal.wait_for("1 model call");
    terminal.say("/resume");
    terminal.wait_for("type to filter");
    terminal.close();

    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("go");
    terminal.wait_for("press a key");
    terminal.press(&["v"]);
    terminal.wait_for("the whole call");
    terminal.close();
}

#[test]
fn closing_the_terminal_at_a_question_leaves_it_waiting() {
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write"),
        call("fs_write", json!({ "path": "a.md", "content": "x" })),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("go");
    terminal.wait_for("press a key");
    terminal.close();
    assert_eq!(crate::approvals::waiting_approvals(&lango).len(), 1);
}
