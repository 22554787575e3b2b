//! An answer while it arrives: 100 tokens per second.

use super::tmux::{NARROW, Tmux, WIDE};
use super::{END_OF_TURN, SPINNER, TOKEN, words};
use crate::lango::Lango;
use crate::models::Provider;
use lango_testkit::model::say;
use lango_testkit::wire_server::ScriptedAnswer;
use std::time::{Duration, Instant};

/// The longest time between the provider's first token and the first word on the screen.
const FIRST_WORD: Duration = Duration::from_millis(100);

#[test]
fn an_answer_grows_on_the_screen_and_is_wrapped_at_words() {
    for size in [WIDE, NARROW] {
        let answer = words(250);
        let provider = Provider::new(vec![ScriptedAnswer::from(say(&answer)).paced(TOKEN)]);
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("write");
        let mut stages: Vec<String> = Vec::new();
        // A capture between two bytes of a redraw shows a mixture of two frames, so one is no proof.
        let mut mixed = 0;
        terminal.wait_until("the end of the answer", |screen| {
            let scrollback = terminal.scrollback();
            let shown = answer_so_far(&scrollback);
            let last = stages.last().map_or("", String::as_str);
            if answer.starts_with(&shown) && shown.len() >= last.len() {
                mixed = 0;
                if shown.len() > last.len() {
                    stages.push(shown);
                }
            } else {
                mixed += 1;
                assert!(
                    mixed < 20,
                    "{shown:?} is not the start of the answer{}",
                    terminal.framed(&scrollback)
                );
            }
            screen.contains(END_OF_TURN)
        });
        assert!(stages.len() >= 10, "only {} stages", stages.len());
        assert_eq!(answer_so_far(&terminal.scrollback()), answer);
        terminal.assert_no_line_is_too_long();
    }
}

/// Returns the part of the answer that is on the screen, with its rows joined by spaces.
fn answer_so_far(scrollback: &str) -> String {
    let rows = scrollback.lines().skip_while(|row| *row != "> write");
    let is_below = |row: &str| row.starts_with(SPINNER) || row.starts_with(['>', ' ']);
    let rows = rows.skip(1).take_while(|row| !is_below(row));
    let rows: Vec<&str> = rows.filter(|row| !row.is_empty()).collect();
    rows.join(" ")
}

#[test]
fn the_first_word_appears_within_100_ms_of_the_first_token() {
    const TURNS: usize = 5;
    // The provider sends pieces of seven characters, and before them one without text.
    let answers = (0..TURNS).map(|turn| format!("first{turn} {}", words(20)));
    let answers = answers.map(|answer| ScriptedAnswer::from(say(&answer)).paced(TOKEN));
    let provider = Provider::new(answers.collect());
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    let mut delays = Vec::new();
    for turn in 0..TURNS {
        terminal.say(&format!("turn {turn}"));
        let word = format!("first{turn}");
        // When the screen was last seen without the word. The capture that shows it ends later, by its own cost.
        let mut absent = Instant::now();
        terminal.wait_until(&word, |screen| {
            let is_shown = screen.contains(&word);
            if !is_shown {
                absent = Instant::now();
            }
            is_shown
        });
        let sent = provider.server.sent(turn)[1].into_std();
        delays.push(absent.saturating_duration_since(sent));
        terminal.wait_until("the end of the turn", |screen| {
            screen.matches(END_OF_TURN).count() == turn + 1
        });
    }
    delays.sort();
    let median = delays[TURNS / 2];
    assert!(median <= FIRST_WORD, "{delays:?}");
}
