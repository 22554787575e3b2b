//! Questions at the terminal. They go to stderr; only results go to stdout.

use crate::screen;
use lango::app::Failure;
use lango_core::text::sanitize;
use std::io::{BufRead, IsTerminal, Write};

/// Returns whether there is a terminal to ask at.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && lango::app::vault::can_ask()
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Text(String),
    /// Enter alone.
    Empty,
    /// The user wants to stop: `q`, or the end of the input.
    Quit,
}

/// Asks for a line. The caller handles signals, which leave the terminal as it is.
pub(super) async fn ask(question: &str) -> Result<Answer, Failure> {
    let mut out = std::io::stderr();
    write!(out, "{}", sanitize(question))?;
    out.flush()?;
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map(|length| (length, line))
    });
    let (length, line) = reading.await.map_err(std::io::Error::other)??;
    if length == 0 {
        // The cursor is still behind the question.
        screen::say("");
        return Ok(Answer::Quit);
    }
    Ok(match line.trim() {
        "" => Answer::Empty,
        "q" | "quit" => Answer::Quit,
        text => Answer::Text(text.to_owned()),
    })
}

/// Returns the entry that a mistyped one is probably meant to be, as a question.
pub(super) fn did_you_mean<'a>(typed: &str, entries: impl Iterator<Item = &'a str>) -> String {
    let distance = |entry: &&str| strsim::damerau_levenshtein(typed, entry);
    match entries.min_by_key(distance) {
        Some(near) if distance(&near) <= 2 => format!("; did you mean `{near}`?"),
        _ => String::new(),
    }
}

/// Asks for one of several entries, by its number or as text. Enter chooses `default`, or quits without one. Returns
/// `None` to quit.
pub(super) async fn choose(
    thing: &str,
    entries: &[String],
    default: Option<&str>,
) -> Result<Option<String>, Failure> {
    let hint = default.map_or("q quits".to_owned(), |default| {
        format!("Enter: {default}, q quits")
    });
    loop {
        let text = match ask(&format!("{thing} ({hint}): ")).await? {
            Answer::Quit => return Ok(None),
            Answer::Empty => return Ok(default.map(str::to_owned)),
            Answer::Text(text) => text,
        };
        let Ok(number) = text.parse::<usize>() else {
            return Ok(Some(text));
        };
        match number.checked_sub(1).and_then(|index| entries.get(index)) {
            Some(entry) => return Ok(Some(entry.clone())),
            None => screen::say(&format!("there is no number {number}")),
        }
    }
}
