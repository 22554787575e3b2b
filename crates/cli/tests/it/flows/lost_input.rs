//! What the user has written is not lost and not sent in part, whatever happens meanwhile.

use super::tmux::{Tmux, WIDE};
use super::{END_OF_TURN, spinner_rows};
use crate::approvals::waiting_approvals;
use crate::lango::{Lango, TIMEOUT, finish_child, text};
use crate::models::{Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// Returns a model that wants to write a file, and then answers these texts.
fn writer(answers: &[&str]) -> Provider {
    let write = call("fs_write", json!({ "path": "new.txt", "content": "x" }));
    let mut replies = vec![delegate_and_finish("operator", "write it"), write];
    replies.extend(answers.iter().map(|answer| say(answer)));
    Provider::new(replies)
}

#[test]
fn a_message_and_its_files_are_returned_if_the_wait_for_a_busy_session_is_stopped() {
    let lango = Lango::new();
    let first = Provider::new(vec![say("An answer.")]);
    let terminal = Tmux::chat(&lango, WIDE, first.server.url());
    terminal.say("first");
    terminal.wait_for(END_OF_TURN);

    let slow = Provider::new(vec![
        ScriptedAnswer::from(say("Late.")).after(Duration::from_secs(8)),
    ]);
    let session = lango.run(&["sessions", "--json"]).ok().json();
    let session = text(&session[0]["id"]).to_owned();
    let model = flags("openai", slow.server.url());
    let mut arguments = vec!["run", "--session", &session];
    arguments.extend(model.iter().map(String::as_str));
    arguments.push("second");
    let mut command = lango.command(&arguments);
    let other = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let other = other.stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    while slow.server.requests().is_empty() {
        assert!(since.elapsed() < TIMEOUT, "no request");
        thread::yield_now();
    }

    terminal.say("/attach notes.md");
    terminal.wait_for("attached: notes.md");
    terminal.say("third");
    terminal.wait_for("the session is busy");
    terminal.say("fourth");
    terminal.wait_for("queued: fourth");
    terminal.press(&["Escape"]);
    let screen = terminal.wait_for("the queued message was not sent");
    assert!(screen.contains("\n> third"), "{screen}");
    assert!(screen.contains("attached: notes.md"), "{screen}");
    assert!(!screen.contains("queued:"), "{screen}");
    assert_eq!(first.server.requests().len(), 1, "nothing was sent");
    finish_child(other, b"").ok();
}

#[test]
fn a_reason_that_is_being_written_stays_when_another_process_answers() {
    let lango = Lango::new();
    let provider = writer(&["Written."]);
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["e"]);
    terminal.wait_for("why not? >");
    terminal.type_text("never touch ");
    terminal.wait_for("why not? > never touch");
    let waiting = waiting_approvals(&lango);
    let id = text(&waiting[0]["id"]);
    // It only stores the answer: the turn goes on where it is watched.
    lango.run(&["approvals", "answer", id, "yes"]);
    terminal.wait_until("the text in the input", |screen| {
        screen.contains("\n> never touch") && !screen.contains("why not?")
    });
    terminal.type_text("prod");
    terminal.wait_for("> never touch prod");
}

#[test]
fn a_message_that_arrives_together_with_an_answer_is_sent_after_the_turn() {
    let lango = Lango::new();
    let provider = writer(&["Not written.", "Something else."]);
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["e"]);
    terminal.wait_for("why not? >");
    terminal.send_bytes(b"not this\rnow another thing\r");
    let screen = terminal.wait_for("Something else.");
    assert!(screen.contains("> now another thing"), "{screen}");
    assert!(!lango.workspace().join("new.txt").exists());
}

#[test]
fn a_paste_whose_end_is_lost_ends_with_ctrl_c_and_its_text_stays() {
    let lango = Lango::new();
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    terminal.send_bytes(b"\x1b[200~half a paste");
    // Ctrl-C within a second is part of the paste.
    thread::sleep(Duration::from_millis(1200));
    terminal.press(&["C-c"]);
    terminal.wait_for("> half a paste");
    // What follows a paste at once is pasted too.
    thread::sleep(Duration::from_millis(300));
    terminal.press(&["C-u"]);
    terminal.type_text("keys work");
    terminal.wait_for("> keys work");
}

#[test]
fn a_text_from_the_editor_that_is_not_utf_8_stays() {
    let lango = Lango::new();
    let editor = lango.workspace().join("editor.sh");
    fs::write(&editor, "#!/bin/sh\nprintf 'a caf\\351 here' > \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let env = [("EDITOR", editor.to_str().unwrap())];
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &env);
    terminal.wait_for("mode: ask");
    terminal.press(&["C-g"]);
    terminal.wait_for("> a caf\u{fffd} here");
}

#[test]
fn a_menu_does_not_join_its_choice_to_the_word_behind_the_cursor() {
    let lango = Lango::new();
    let terminal = Tmux::start::<&str>(&lango, WIDE, &[], &[]);
    terminal.wait_for("mode: ask");
    terminal.type_text("mode plan");
    terminal.press(&["Home"]);
    terminal.type_text("/");
    let screen = terminal.wait_for("> /mode plan");
    assert!(!screen.contains('❯'), "{screen}");
    terminal.press(&["Enter"]);
    terminal.wait_for("mode: plan");
}

#[test]
fn escape_leaves_a_question_about_an_interrupted_call_open() {
    let lango = Lango::new();
    // With an argument, tmux starts the program without a shell, which would get the signal.
    let terminal = Tmux::start(&lango, WIDE, &["chat"], &[]);
    terminal.wait_for("mode: ask");
    terminal.say("!sleep 60");
    terminal.wait_until("a running command", |screen| {
        !spinner_rows(screen).is_empty()
    });
    terminal.wait_for("$ sleep 60");
    terminal.kill();

    let terminal = Tmux::start(&lango, WIDE, &["--continue"], &[]);
    let screen = terminal.wait_for("press a key");
    assert!(screen.contains("esc answers later"), "{screen}");
    terminal.press(&["Escape"]);
    let screen = terminal.wait_for("next: lango approvals answer p_");
    assert!(!screen.contains("└ stopped"), "{screen}");
    assert_eq!(waiting_approvals(&lango).len(), 1);
}

#[test]
fn the_answer_to_what_happened_shows_the_call_and_the_users_own_report() {
    for (keys, closing, result) in [
        (
            "tit was killed\r",
            "└ reported: it was killed",
            "operator · $ sleep 60  reported: it was killed",
        ),
        (
            "s",
            "└ skipped: $ sleep 60",
            "operator ? $ sleep 60  the process ended before a result was stored",
        ),
    ] {
        let lango = Lango::new();
        let terminal = Tmux::start(&lango, WIDE, &["chat"], &[]);
        terminal.wait_for("mode: ask");
        terminal.say("!sleep 60");
        terminal.wait_until("a running command", |screen| {
            !spinner_rows(screen).is_empty()
        });
        terminal.wait_for("$ sleep 60");
        terminal.kill();

        let terminal = Tmux::start(&lango, WIDE, &["--continue"], &[]);
        terminal.wait_for("press a key");
        terminal.press(&[&keys[..1]]);
        if keys.len() > 1 {
            terminal.wait_for("what happened? >");
            terminal.send_bytes(&keys.as_bytes()[1..]);
        }
        terminal.wait_for(closing);
        terminal.wait_for(result);
    }
}

#[test]
fn what_happens_while_the_pager_is_open_is_shown_after_it() {
    let lango = Lango::new();
    let provider = writer(&["Written."]);
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["v"]);
    terminal.wait_for("the whole call");
    let waiting = waiting_approvals(&lango);
    let id = text(&waiting[0]["id"]);
    lango.run(&["approvals", "answer", id, "yes"]);
    terminal.wait_until("the file", |_| lango.workspace().join("new.txt").exists());
    let screen = terminal.screen();
    assert!(screen.contains("the whole call"), "{screen}");
    assert!(!screen.contains("press a key"), "{screen}");
    terminal.press(&["q"]);
    terminal.wait_for("answered by another process");
    terminal.wait_for("└ answered elsewhere: write new.txt");
}
