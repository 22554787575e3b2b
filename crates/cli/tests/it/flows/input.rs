//! Writing a message: lines, history, files, the menu and the editor.

use super::END_OF_TURN;
use super::tmux::{Tmux, WIDE};
use crate::lango::Lango;
use crate::models::{Provider, flags};
use lango_testkit::model::say;
use lango_testkit::wire_server::{ScriptedAnswer, message_text};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

/// Opens a chat whose model answers this many messages.
fn chat(lango: &Lango, messages: usize) -> (Tmux, Provider) {
    let provider = Provider::new(vec![say("An answer."); messages]);
    let terminal = Tmux::chat(lango, WIDE, provider.server.url());
    (terminal, provider)
}

/// Returns the last message of the user that the model got.
fn last_message(provider: &Provider) -> String {
    let requests = provider.server.requests();
    let messages = requests.last().unwrap().body["messages"].as_array();
    let users = messages.unwrap().iter();
    let mut users = users.filter(|message| message["role"] == "user");
    message_text(users.next_back().unwrap())
}

/// Returns the row of the input.
fn input_row(screen: &str) -> &str {
    let mut rows = screen.lines().filter(|row| row.starts_with('>'));
    rows.next_back().unwrap_or_default()
}

#[test]
fn a_message_can_have_several_lines() {
    let lango = Lango::new();
    let (terminal, provider) = chat(&lango, 1);
    terminal.type_text("one");
    terminal.press(&["M-Enter"]);
    terminal.type_text("two");
    terminal.press(&["C-j"]);
    terminal.type_text("three\\");
    terminal.press(&["Enter"]);
    terminal.type_text("four");
    terminal.wait_for("> one\n  two\n  three\n  four\n");
    assert_eq!(provider.server.requests().len(), 0, "nothing was sent");
    terminal.press(&["Enter"]);
    terminal.wait_for(END_OF_TURN);
    let sent = last_message(&provider);
    assert!(sent.contains("one\ntwo\nthree\nfour"), "{sent}");
}

#[test]
fn earlier_messages_are_found_with_ctrl_r() {
    let lango = Lango::new();
    let (terminal, provider) = chat(&lango, 2);
    terminal.say("tell me about apples");
    terminal.wait_for(END_OF_TURN);
    terminal.type_text("half a message");
    terminal.press(&["C-r"]);
    terminal.type_text("appl");
    terminal.wait_for("history: appl  tell me about apples");
    // Enter takes the message without sending it.
    terminal.press(&["Enter"]);
    terminal.wait_until("the message in the input", |screen| {
        input_row(screen) == "> tell me about apples" && !screen.contains("history: ")
    });
    assert_eq!(provider.server.requests().len(), 1);

    terminal.press(&["C-u", "C-r"]);
    terminal.type_text("no such message");
    terminal.wait_for("no match");
    terminal.press(&["Escape"]);
    terminal.wait_until("the empty input", |screen| {
        input_row(screen) == ">" && !screen.contains("no match")
    });
}

#[test]
fn a_path_is_completed_with_tab_and_its_file_attached() {
    let lango = Lango::new();
    let (terminal, provider) = chat(&lango, 1);
    terminal.type_text("summarize @no");
    terminal.wait_for("❯ @notes.md");
    terminal.press(&["Tab"]);
    terminal.wait_until("the whole path", |screen| {
        input_row(screen) == "> summarize @notes.md" && !screen.contains('❯')
    });
    terminal.press(&["Enter"]);
    terminal.wait_for(END_OF_TURN);
    let request = provider.server.requests()[0].body.to_string();
    assert!(request.contains("Buy *bread*."), "{request}");
}

#[test]
fn a_command_of_the_user_runs_without_a_model_and_without_a_question() {
    let lango = Lango::new();
    let (terminal, provider) = chat(&lango, 1);
    for (command, output) in [("!echo $((40 + 2))", "42"), ("!echo $((50 + 3))", "53")] {
        terminal.say(command);
        let is_output = |row: &str| row.trim() == output;
        terminal.wait_until(output, |screen| screen.lines().any(is_output));
        terminal.wait_until("the end of the turn", |screen| input_row(screen) == ">");
    }
    let scrollback = terminal.scrollback();
    assert!(!scrollback.contains("press a key"), "{scrollback}");
    assert_eq!(provider.server.requests().len(), 0);
    // The model knows what the user ran.
    terminal.say("what was the last number?");
    terminal.wait_for("An answer.");
    let request = provider.server.requests()[0].body.to_string();
    assert!(request.contains("53"), "{request}");
    // No model was called for the commands.
    terminal.say("/cost");
    let screen = terminal.wait_for("together");
    assert!(!screen.contains("user/command"), "{screen}");
}

#[test]
fn a_stored_command_of_the_user_has_no_answer_and_the_mark_of_the_screen() {
    let lango = Lango::new();
    let (terminal, _provider) = chat(&lango, 0);
    terminal.say("!exit 3");
    terminal.wait_for("operator ✗ $ exit 3  exit 3");
    let sessions = lango.run(&["sessions", "list", "--json"]).ok().json();
    let session = sessions[0]["id"].as_str().unwrap();
    for command in [&["show", session][..], &["export", "--markdown", session]] {
        let shown = lango.run(&[&["sessions"], command].concat()).ok().stdout;
        assert!(shown.contains("operator ✗ exit code 3"), "{shown}");
        assert!(!shown.contains("answers"), "{shown}");
        assert!(!shown.contains("needs approval"), "{shown}");
    }
}

#[test]
fn a_pasted_command_needs_a_second_enter() {
    let lango = Lango::new();
    let (terminal, _provider) = chat(&lango, 0);
    terminal.paste("!touch pasted\n");
    terminal.wait_for("> !touch pasted");
    // A key that arrives sooner counts as pasted.
    thread::sleep(Duration::from_millis(500));
    terminal.press(&["Enter"]);
    terminal.wait_for("enter runs it as a command, ctrl-c clears it");
    assert!(!lango.workspace().join("pasted").exists());
    terminal.press(&["Enter"]);
    terminal.wait_for("✓ $ touch pasted");
    assert!(lango.workspace().join("pasted").exists());
}

#[test]
fn a_command_that_is_pasted_into_a_search_needs_a_second_enter_too() {
    let lango = Lango::new();
    let (terminal, _provider) = chat(&lango, 0);
    terminal.press(&["C-r"]);
    terminal.wait_for("history:");
    terminal.paste("!touch pasted");
    terminal.wait_for("> !touch pasted");
    // A key that arrives sooner counts as pasted.
    thread::sleep(Duration::from_millis(500));
    terminal.press(&["Enter"]);
    terminal.wait_for("enter runs it as a command, ctrl-c clears it");
    assert!(!lango.workspace().join("pasted").exists());
}

#[test]
fn a_command_that_only_changes_the_folder_is_explained_and_a_refused_one_is_in_plain_words() {
    let lango = Lango::new();
    let (terminal, _provider) = chat(&lango, 0);
    terminal.say("!cd src");
    terminal.wait_for("`cd` alone does nothing");
    terminal.say("!vim notes.md");
    terminal.wait_for("`vim` needs a terminal");
    terminal.say("!cd / && pwd");
    terminal.wait_until("the folder", |screen| {
        screen.lines().any(|row| row.trim() == "/")
    });
    terminal.wait_until("the end of the turn", |screen| input_row(screen) == ">");
    terminal.say("/mode read-only");
    terminal.wait_for("mode: read-only");
    terminal.say("!touch x");
    let screen = terminal.wait_for("so nothing was changed.");
    assert!(!screen.contains("say what you would change"), "{screen}");
}

#[test]
fn what_the_sandbox_did_to_a_command_of_the_user_is_explained() {
    let lango = Lango::new();
    let (terminal, _provider) = chat(&lango, 0);
    for (command, explanation) in [
        (
            "!echo a > ~/kept.txt",
            "which is deleted when the command ends",
        ),
        ("!touch .git/x", "the sandbox keeps .git read-only"),
        (
            "!python3 -c 'import socket; socket.getaddrinfo(\"example.com\", 80)'",
            "commands have no network",
        ),
    ] {
        std::fs::create_dir_all(lango.workspace().join(".git")).unwrap();
        terminal.say(command);
        terminal.wait_for(explanation);
        terminal.wait_until("the end of the turn", |screen| input_row(screen) == ">");
    }
}

#[test]
fn the_menu_lists_the_commands_that_match() {
    let lango = Lango::new();
    let (terminal, _provider) = chat(&lango, 0);
    terminal.type_text("/");
    let all = terminal.wait_for("❯ /");
    for command in ["/model", "/undo", "/help", "/quit"] {
        assert!(all.contains(command), "`{command}`: {all}");
    }
    terminal.type_text("mod");
    let screen = terminal.wait_until("only matching commands", |screen| {
        screen.contains("❯ /model") && !screen.contains("/undo")
    });
    assert!(screen.contains("  /mode "), "{screen}");
    terminal.press(&["Down", "Enter"]);
    terminal.wait_for("the mode is ask");
    // Escape closes the menu and keeps the text.
    terminal.type_text("/he");
    terminal.wait_for("❯ /help");
    terminal.press(&["Escape"]);
    terminal.wait_until("no menu", |screen| {
        !screen.contains('❯') && input_row(screen) == "> /he"
    });
}

#[test]
fn a_model_that_its_provider_does_not_list_is_used_with_a_warning() {
    let lango = Lango::new();
    let list = json!({ "data": [{ "id": "any" }, { "id": "small" }] });
    let provider = Provider::answering(move |request| match &*request.path {
        "/v1/models" => ScriptedAnswer::json(&list),
        _ => say("An answer.").into(),
    });
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("/model mock/smal");
    let screen = terminal.wait_for("the next turns use mock/smal");
    assert!(
        screen.contains("warning: mock does not list `smal`"),
        "{screen}"
    );
    terminal.say("/model mock/small");
    let screen = terminal.wait_for("the next turns use mock/small;");
    assert!(!screen.contains("does not list `small`"), "{screen}");
    terminal.say("hello");
    terminal.wait_for("An answer.");
    let requests = provider.server.requests();
    assert_eq!(requests.last().unwrap().body["model"], "small");
}

#[test]
fn modes_and_models_are_completed_and_a_part_of_a_name_is_enough() {
    let lango = Lango::new();
    let list = json!({ "data": [{ "id": "large" }, { "id": "large-2" }, { "id": "small" }] });
    let provider = Provider::answering(move |request| match &*request.path {
        "/v1/models" => ScriptedAnswer::json(&list),
        _ => say("An answer.").into(),
    });
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("/model l");
    terminal.wait_for("several models match `l`: ");
    // The models are known from now on.
    terminal.type_text("/model larg");
    terminal.wait_for("❯ mock/large");
    terminal.press(&["Down", "Enter"]);
    terminal.wait_for("the next turns use mock/large-2;");
    terminal.say("/model small");
    terminal.wait_for("the next turns use mock/small;");
    terminal.type_text("/mode ");
    terminal.wait_for("❯ ask");
    terminal.press(&["Enter"]);
    terminal.wait_for("the mode is ask");
    terminal.type_text("/mode pl");
    terminal.wait_for("❯ plan");
    terminal.press(&["Enter"]);
    terminal.wait_for("the mode is plan");
    terminal.say("/sesions");
    terminal.wait_for("did you mean /sessions?");
}

#[test]
fn a_message_can_be_written_in_an_editor() {
    let lango = Lango::new();
    let editor = lango.workspace().join("editor.sh");
    let script = "#!/bin/sh\nprintf ', and the editor' >> \"$1\"\n";
    fs::write(&editor, script).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let provider = Provider::new(vec![say("An answer.")]);
    let model = flags("openai", provider.server.url());
    let env = [("EDITOR", editor.to_str().unwrap())];
    let terminal = Tmux::start(&lango, WIDE, &model, &env);
    terminal.wait_for("mode: ask");
    terminal.type_text("from the chat");
    terminal.press(&["C-g"]);
    let expected = "> from the chat, and the editor";
    terminal.wait_until(expected, |screen| input_row(screen) == expected);
    assert_eq!(provider.server.requests().len(), 0, "nothing was sent");
    terminal.press(&["Enter"]);
    terminal.wait_for(END_OF_TURN);
    let sent = last_message(&provider);
    assert!(sent.contains("from the chat, and the editor"), "{sent}");
}

#[test]
fn what_a_stopped_command_of_the_user_had_printed_stays_on_the_screen() {
    let lango = Lango::new();
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    terminal.say("!for i in 1 2 3 4 5 6 7 8 9; do echo tick-$i; sleep 1; done");
    let has_tick = |screen: &str| screen.lines().any(|row| row.trim() == "tick-2");
    terminal.wait_until("the second line", has_tick);
    terminal.press(&["Escape"]);
    let screen = terminal.wait_for("stopped by the user");
    assert!(has_tick(&screen), "{screen}");
    assert!(!screen.contains("lango-orchestrator:"), "{screen}");
}
