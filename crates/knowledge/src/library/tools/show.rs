//! Formats results as text for a model: short, bounded and deterministic.

use lango_core::{Provenance, Trust};

/// Maximum length of a tool's answer in bytes.
const MAX_BYTES: usize = 24 * 1024;

/// Maximum length in bytes of one text in an answer.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// Formats a source as a mark: `[untrusted: /home/ada/notes.md]`.
pub(super) fn mark(source: &Provenance) -> String {
    let trust = match source.trust {
        Trust::Trusted => "trusted",
        Trust::Untrusted => "untrusted",
    };
    format!("[{trust}: {}]", line(&source.name, 300).replace(']', ")"))
}

/// Returns a text on one line, truncated to this number of characters.
pub(super) fn line(text: &str, max_characters: usize) -> String {
    let plain = |character: char| {
        if character.is_control() || character.is_whitespace() {
            ' '
        } else {
            character
        }
    };
    let mut shown: String = text.chars().take(max_characters).map(plain).collect();
    if text.chars().nth(max_characters).is_some() {
        shown.push('…');
    }
    shown
}

/// Indents every line of a text and truncates it if it is too long.
pub(super) fn indented(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
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

/// Formats the answer: as many results as fit, then the notes.
pub(super) fn answer(results: &[String], nothing: &str, notes: &[String]) -> String {
    let mut text = String::new();
    for (number, result) in (1..).zip(results) {
        let result = format!("{number}. {result}");
        if !text.is_empty() && text.len() + result.len() > MAX_BYTES {
            let left = results.len() + 1 - number;
            text.push_str(&format!(
                "[{left} more results did not fit; set a smaller `limit`]\n"
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
