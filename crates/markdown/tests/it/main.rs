//! The rendering of a model's markdown in a terminal.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod blocks;
mod hostile;
mod live;
mod stream;
mod tables;
mod texts;
mod wrapping;

use lango_markdown::{Style, render};

/// The width of the terminal, where it does not matter.
const WIDTH: usize = 80;

/// Returns the coloured text, with `‹1›` for each escape sequence that starts a style and `‹›` for the one that ends
/// it.
fn coloured(text: &str) -> String {
    let text = render(text, Style::Coloured, WIDTH).replace("\u{1b}[0m", "‹›");
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap();
        out.push_str(&format!("‹{codes}›{rest}"));
    }
    out
}

/// Returns the coloured text without its escape sequences.
fn rendered(text: &str) -> String {
    let text = coloured(text);
    text.split('‹')
        .map(|part| part.split_once('›').map_or(part, |(_, rest)| rest))
        .collect()
}

/// Returns a row without its escape sequences.
fn without_styles(row: &str) -> String {
    let mut parts = row.split("\u{1b}[");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap();
        assert!(codes.chars().all(|it| it.is_ascii_digit() || it == ';'));
        out.push_str(rest);
    }
    out
}

/// Returns the rows of a whole text.
fn rows(text: &str, width: usize) -> Vec<String> {
    let rendered = render(text, Style::Coloured, width);
    let rendered = rendered.trim_end_matches('\n');
    rendered.lines().map(String::from).collect()
}
