//! Whole flows of a user, in a real terminal: the test types keys and reads the screen.

mod agents;
mod approval;
mod closing;
mod colours;
mod commands;
mod first_run;
mod input;
mod keys;
mod lost_input;
mod messages;
mod narrow;
mod plain;
mod question_box;
mod sessions;
mod streaming;
mod tmux;
mod undo;

use std::time::Duration;

/// The pause between two tokens of a model that writes 100 per second.
const TOKEN: Duration = Duration::from_millis(10);

/// The spinner characters at the start of a running turn's row.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// What the screen shows after a turn with one model call.
const END_OF_TURN: &str = "1 model call";

/// Returns a text of this many different words of various lengths.
fn words(count: usize) -> String {
    const ENDINGS: [&str; 5] = ["", "lo", "ngword", "er", "ofmanyletters"];
    let words = (1..=count).map(|number| format!("w{number}{}", ENDINGS[number % ENDINGS.len()]));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the rows of the running turn, which start with a sign of the spinner.
fn spinner_rows(screen: &str) -> Vec<&str> {
    screen
        .lines()
        .filter(|row| row.starts_with(SPINNER))
        .collect()
}

/// Returns the last duration in a text, in seconds.
fn last_seconds(text: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut durations = words.windows(2).filter_map(|pair| {
        let number: f64 = pair[0].parse().ok()?;
        match pair[1] {
            "ms" => Some(number / 1000.0),
            "s" => Some(number),
            _ => None,
        }
    });
    durations.next_back()
}
