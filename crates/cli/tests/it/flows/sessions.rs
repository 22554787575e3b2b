//! Leaving a chat and continuing it later.

use super::tmux::{NARROW, Tmux, WIDE};
use crate::lango::Lango;
use crate::models::{Provider, flags};
use lango_testkit::model::say;

#[test]
fn a_resumed_chat_shows_the_last_exchange_and_goes_on() {
    for (command, size) in [(&["resume"][..], WIDE), (&["sessions", "resume"], NARROW)] {
        let provider = Provider::new(vec![say("Noted: 4711."), say("It was 4711.")]);
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("the number is 4711");
        terminal.wait_for("1 model call");
        terminal.press(&["C-d"]);
        assert_eq!(terminal.exit_code(), 0);
        let screen = terminal.screen();
        let (_, session) = screen.split_once("continue: lango resume ").unwrap();

        let mut arguments: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        arguments.push(session.trim().to_owned());
        arguments.extend(flags("openai", provider.server.url()));
        let terminal = Tmux::start(&lango, size, &arguments, &[]);
        let screen = terminal.wait_for("mode: ask");
        assert!(screen.contains("the number is 4711"), "{screen}");
        assert!(screen.contains("Noted: 4711."), "{screen}");
        terminal.say("which number?");
        terminal.wait_for("It was 4711.");
        let request = provider.server.requests()[1].body.to_string();
        assert!(request.contains("the number is 4711"), "{request}");
    }
}

#[test]
fn an_interrupted_session_that_was_used_last_is_continued_and_one_that_runs_is_not() {
    let lango = Lango::new();
    let first = Tmux::start(&lango, WIDE, &["chat"], &[]);
    first.wait_for("mode: ask");
    lango.run(&["run", "hello"]).ok();
    first.say("!sleep 60");
    first.wait_for("$ sleep 60");
    // Its turn runs, so the other session is continued.
    let second = Tmux::start(&lango, WIDE, &["--continue"], &[]);
    let screen = second.wait_for("mode: ask");
    assert!(screen.contains("> hello"), "{screen}");
    first.kill();
    let third = Tmux::start(&lango, WIDE, &["--continue"], &[]);
    let screen = third.wait_for("press a key");
    assert!(screen.contains("outcome is unknown"), "{screen}");
}
