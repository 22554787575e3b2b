//! Messages that are typed while a turn runs, and turns that are stopped.

use super::tmux::{NARROW, Tmux, WIDE};
use super::{TOKEN, spinner_rows, words};
use crate::lango::{Lango, TIMEOUT};
use crate::models::Provider;
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{Fault, ScriptedAnswer};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_message_that_is_sent_during_a_turn_waits_and_runs_afterwards() {
    for size in [WIDE, NARROW] {
        let provider = Provider::new(vec![
            ScriptedAnswer::from(say("First answer.")).after(Duration::from_secs(2)),
            ScriptedAnswer::from(say("Second answer.")),
        ]);
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("first");
        terminal.wait_until("a running turn", |screen| !spinner_rows(screen).is_empty());
        terminal.say("second");
        let screen = terminal.wait_for("queued: second");
        assert!(!screen.contains("First answer."), "{screen}");
        let screen = terminal.wait_for("Second answer.");
        assert!(!screen.contains("queued:"), "{screen}");
        let order = ["> first", "First answer.", "> second", "Second answer."];
        let positions: Vec<usize> = order
            .iter()
            .map(|text| screen.find(text).unwrap())
            .collect();
        assert!(positions.is_sorted(), "{screen}");
    }
}

#[test]
fn what_was_written_before_a_stop_stays_on_the_screen_and_the_next_turn_knows_it() {
    let answer = words(400);
    let provider = Provider::new(vec![
        ScriptedAnswer::from(say(&answer)).paced(TOKEN),
        ScriptedAnswer::from(say("It goes on.")),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("w60 ");
    terminal.press(&["Escape"]);
    terminal.wait_for("[the answer was cut off here: the user stopped it]");
    let screen = terminal.wait_for("about ");
    assert_eq!(screen.matches("w60 ").count(), 1, "{screen}");
    assert!(!screen.contains("withdrawn"), "{screen}");
    terminal.say("go on");
    terminal.wait_for("It goes on.");
    let request = provider.server.requests()[1].body.to_string();
    assert!(request.contains("w60 "), "{request}");
    assert!(request.contains("the user stopped it"), "{request}");
    assert!(!request.contains("w399"), "{request}");
}

#[test]
fn a_stopped_turn_returns_several_queued_messages_one_at_a_time() {
    let provider = Provider::new(vec![
        ScriptedAnswer::from(Fault::SilentBeforeHead),
        ScriptedAnswer::from(say("It goes on.")),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("first");
    terminal.wait_until("a running turn", |screen| !spinner_rows(screen).is_empty());
    terminal.say("second");
    terminal.wait_for("queued: second");
    terminal.say("third");
    terminal.wait_for("queued: third");
    terminal.press(&["Escape"]);
    let screen = terminal.wait_for("2 queued messages were not sent; ↑ shows them");
    assert!(screen.contains("> third"), "{screen}");
    assert!(!screen.contains("second"), "{screen}");
    terminal.press(&["Up"]);
    terminal.wait_for("> second");
    terminal.press(&["Enter"]);
    terminal.wait_for("It goes on.");
    let requests = provider.server.requests();
    let request = requests.last().unwrap().body.to_string();
    assert!(request.contains("second"), "{request}");
    assert!(!request.contains("third"), "{request}");
}

#[test]
fn a_queued_message_that_is_not_sent_is_named_if_another_one_is_being_written() {
    let provider = Provider::new(vec![ScriptedAnswer::from(Fault::SilentBeforeHead)]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("first");
    terminal.wait_until("a running turn", |screen| !spinner_rows(screen).is_empty());
    terminal.say("second");
    terminal.wait_for("queued: second");
    terminal.type_text("third");
    terminal.wait_for("> third");
    terminal.press(&["Escape"]);
    let screen = terminal.wait_for("the queued message was not sent; ↑ shows it");
    assert!(screen.contains("> third"), "{screen}");
}

#[test]
fn a_message_is_shown_again_after_the_turn_that_had_to_end_first() {
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write it"),
        call("fs_write", json!({ "path": "a.txt", "content": "x" })),
        say("It is written."),
        say("This is next."),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("write");
    terminal.wait_for("press a key");
    terminal.press(&["C-d"]);
    terminal.wait_for("waiting: p_");
    terminal.say("and now?");
    terminal.wait_for("press a key");
    terminal.press(&["y"]);
    let screen = terminal.wait_for("This is next.");
    assert_eq!(screen.matches("It is written.").count(), 1, "{screen}");
    let (before, _) = screen.split_once("This is next.").unwrap();
    assert!(before.trim_end().ends_with("> and now?"), "{screen}");
}

#[test]
fn what_an_agent_says_before_it_delegates_stays_on_the_screen() {
    let delegation = ModelReply {
        text: "I will ask the planner.".to_owned(),
        ..delegate_and_finish("planner", "plan it")
    };
    let provider = Provider::new(vec![
        ScriptedAnswer::from(delegation).paced(TOKEN),
        ScriptedAnswer::from(say("A plan.")),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("plan");
    let screen = terminal.wait_for("2 model calls");
    let order = ["I will ask the planner.", "→ planner", "A plan."];
    let positions: Vec<_> = order
        .iter()
        .map(|text| screen.find(text).unwrap())
        .collect();
    assert!(positions.is_sorted(), "{screen}");
    assert_eq!(screen.matches("I will ask").count(), 1, "{screen}");
    assert!(!screen.contains("withdrawn"), "{screen}");
}

#[test]
fn escape_stops_a_turn_within_a_second_and_returns_what_was_queued() {
    for size in [WIDE, NARROW] {
        let provider = Provider::new(vec![
            ScriptedAnswer::from(Fault::SilentBeforeHead),
            ScriptedAnswer::from(say("It goes on.")),
        ]);
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("first");
        terminal.wait_until("a running turn", |screen| !spinner_rows(screen).is_empty());
        terminal.wait_for("thinking");
        terminal.say("second");
        terminal.wait_for("queued: second");
        let since = Instant::now();
        while provider.server.requests().is_empty() {
            assert!(since.elapsed() < TIMEOUT, "no request");
            std::thread::yield_now();
        }
        let pressed = Instant::now();
        terminal.press(&["Escape"]);
        let screen = terminal.wait_for("stopped");
        let took = pressed.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}: {screen}");
        let screen = terminal.wait_for("> second");
        assert!(!screen.contains("queued:"), "{screen}");
        assert_eq!(spinner_rows(&screen), [] as [&str; 0], "{screen}");
        // The message is in the input, and only there.
        let requests = provider.server.requests();
        assert_eq!(requests.len(), 1, "nothing was sent");
        terminal.press(&["Enter"]);
        terminal.wait_for("It goes on.");
        let requests = provider.server.requests();
        assert!(requests[1].body.to_string().contains("second"));
    }
}
