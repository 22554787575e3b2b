//! Commands that take a while: what they print while they run, and what remains.

use super::tmux::{NARROW, Tmux, WIDE};
use super::{last_seconds, spinner_rows};
use crate::lango::Lango;
use crate::models::{Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::json;

/// Prints 30 lines in about three seconds.
const LONG: &str = "for n in $(seq 1 30); do echo row-$n; sleep 0.1; done";

#[test]
fn a_long_command_shows_its_last_lines_while_it_runs_and_one_line_afterwards() {
    for size in [WIDE, NARROW] {
        let provider = Provider::new(vec![
            delegate_and_finish("operator", "count"),
            call("exec", json!({ "command": LONG })),
            say("Counted."),
        ]);
        let lango = Lango::new();
        let terminal = Tmux::chat(&lango, size, provider.server.url());
        terminal.say("count");
        terminal.wait_for("press a key");
        terminal.press(&["y"]);
        let early = terminal.wait_until("the seventh line", |screen| last_row(screen) >= 7);
        let late = terminal.wait_until("the 20th line", |screen| last_row(screen) >= 20);
        for screen in [&early, &late] {
            let running = spinner_rows(screen);
            assert_eq!(running.len(), 1, "{screen}");
            assert!(running[0].contains("operator  $ for n in"), "{screen}");
            let shown = printed(screen);
            let last = *shown.last().unwrap();
            assert_eq!(shown, (last - 4..=last).collect::<Vec<_>>(), "{screen}");
        }
        let seconds = |screen: &str| last_seconds(spinner_rows(screen)[0]).unwrap();
        assert!(seconds(&late) > seconds(&early), "{early}\n{late}");

        terminal.wait_for("3 model calls");
        terminal.assert_no_line_is_too_long();
        let scrollback = terminal.scrollback();
        let rows: Vec<&str> = scrollback.lines().collect();
        let is_end = |row: &&str| row.contains("✓ $ for n in");
        assert_eq!(
            rows.iter().filter(|row| is_end(row)).count(),
            1,
            "{scrollback}"
        );
        // In a narrow terminal the time is in the second row of the line.
        let first = rows.iter().position(is_end).unwrap();
        let ended = rows[first..]
            .iter()
            .take(2)
            .find_map(|row| last_seconds(row));
        assert!(ended.unwrap() >= 3.0, "{scrollback}");
        assert_eq!(printed(&scrollback), [] as [u32; 0], "{scrollback}");
        assert_eq!(spinner_rows(&scrollback), [] as [&str; 0], "{scrollback}");

        terminal.press(&["C-o"]);
        terminal.wait_until("the last line", |screen| has_row(screen, 30));
        let all: Vec<u32> = (1..=30).collect();
        assert_eq!(printed(&terminal.scrollback()), all);
    }
}

#[test]
fn a_command_that_fails_shows_its_exit_code() {
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "try"),
        call("exec", json!({ "command": "echo row-1; exit 3" })),
        say("It failed."),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("try");
    terminal.wait_for("press a key");
    terminal.press(&["y"]);
    let screen = terminal.wait_for("3 model calls");
    let line = "operator ✗ $ echo row-1; exit 3  exit 3";
    assert!(screen.contains(line), "{screen}");
}

#[test]
fn a_progress_bar_takes_one_row_and_the_model_gets_its_last_state() {
    let bar = r"for i in 1 2 3 4 5 6; do printf '\r\033[32m[%s]\033[0m %d0%%' bar $i; while [ $i -lt 6 ] && [ ! -e go$i ]; do sleep 0.02; done; done; echo";
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "load"),
        call("exec", json!({ "command": bar })),
        say("Loaded."),
    ]);
    let lango = Lango::new();
    let mut arguments = flags("openai", provider.server.url());
    arguments.extend(["-c", "approval.rules=[{action='allow',tool='exec'}]"].map(str::to_owned));
    let terminal = Tmux::start(&lango, WIDE, &arguments, &[]);
    terminal.wait_for("mode: ask");
    terminal.say("load");
    for state in 1..=5 {
        let screen = terminal.wait_for(&format!("[bar] {state}0%"));
        assert_eq!(screen.matches("[bar]").count(), 1, "{screen}");
        assert!(!screen.contains(['␍', '␛']), "{screen}");
        lango.file(&format!("go{state}"), "");
    }
    terminal.wait_for("3 model calls");
    let request = provider.server.requests()[2].body.to_string();
    assert!(request.contains("[bar] 60%"), "{request}");
    assert!(!request.contains("[bar] 50%"), "{request}");
}

#[test]
fn what_a_stopped_command_had_printed_is_shown_stored_and_known_to_the_next_turn() {
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "count"),
        call("exec", json!({ "command": LONG })),
        say("It printed rows."),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("count");
    terminal.wait_for("press a key");
    terminal.press(&["y"]);
    terminal.wait_until("the ninth line", |screen| last_row(screen) >= 9);
    terminal.press(&["Escape"]);
    let screen = terminal.wait_for("2 model calls");
    assert!(screen.contains("operator ? $ for n in"), "{screen}");
    assert!(screen.contains("stopped by the user"), "{screen}");

    terminal.press(&["C-o"]);
    terminal.wait_until("the first line", |screen| {
        screen.contains("\nstopped by the user") && has_row(screen, 1)
    });
    terminal.say("what did it print?");
    terminal.wait_for("It printed rows.");
    let request = provider.server.requests()[2].body.to_string();
    for expected in ["row-1\\n", "row-9\\n", "outcome unknown"] {
        assert!(request.contains(expected), "{expected}: {request}");
    }
    let sessions = lango.run(&["sessions", "list", "--json"]).ok().json();
    let session = sessions[0]["id"].as_str().unwrap();
    let shown = lango.run(&["sessions", "show", session]).ok().stdout;
    assert!(
        shown.contains("operator ? stopped by the user\n"),
        "{shown}"
    );
    assert!(printed(&shown).starts_with(&[1, 2, 3]), "{shown}");
}

/// Returns the numbers of the printed lines that are on the screen.
fn printed(screen: &str) -> Vec<u32> {
    let numbers = screen
        .lines()
        .filter_map(|row| row.trim().strip_prefix("row-")?.parse().ok());
    numbers.collect()
}

fn last_row(screen: &str) -> u32 {
    printed(screen).last().copied().unwrap_or_default()
}

fn has_row(screen: &str, number: u32) -> bool {
    printed(screen).contains(&number)
}
