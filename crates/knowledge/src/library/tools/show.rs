//! What is found, as text for a model: short, bounded, and the same for the same rows.

use lango_core::{Source, Trust};

/// How long the answer of a tool is at most, in bytes.
const MOST_BYTES: usize = 24 * 1024;

/// How long one text in it is at most, in bytes.
const MOST_TEXT_BYTES: usize = 4 * 1024;

/// The mark of a source: `[untrusted: /home/ada/notes.md]`.
pub(super) fn mark(source: &Source) -> String {
    let trust = match source.trust {
        Trust::Trusted => "trusted",
        Trust::Untrusted => "untrusted",
    };
    format!("[{trust}: {}]", line(&source.name, 300).replace(']', ")"))
}

/// A text on one line, cut after so many characters.
pub(super) fn line(text: &str, longest: usize) -> String {
    let plain = |character: char| {
        if character.is_control() || character.is_whitespace() {
            ' '
        } else {
            character
        }
    };
    let mut shown: String = text.chars().take(longest).map(plain).collect();
    if text.chars().nth(longest).is_some() {
        shown.push('…');
    }
    shown
}

/// A text of several lines, each indented.
pub(super) fn indented(text: &str) -> String {
    let end = text.floor_char_boundary(MOST_TEXT_BYTES);
    let mut shown = String::with_capacity(end + 64);
    for line in text[..end].lines() {
        let line: String = line
            .chars()
            .filter(|character| !character.is_control() || *character == '\t')
            .collect();
        shown.push_str("  ");
        shown.push_str(line.trim_end());
        shown.push('\n');
    }
    if end < text.len() {
        shown.push_str("  …\n");
    }
    shown
}

/// The answer: as many of the results as fit, then the notes.
pub(super) fn answer(results: &[String], nothing: &str, notes: &[String]) -> String {
    let mut text = String::new();
    for (number, result) in (1..).zip(results) {
        let result = format!("{number}. {result}");
        if !text.is_empty() && text.len() + result.len() > MOST_BYTES {
            let left = results.len() + 1 - number;
            text.push_str(&format!(
                "[{left} more did not fit; ask for less at once]\n"
            ));
            break;
        }
        text.push_str(&result);
    }
    if results.is_empty() {
        text.push_str(&format!("[{nothing}]\n"));
    }
    for note in notes {
        text.push_str(&format!("[{note}]\n"));
    }
    text
}
