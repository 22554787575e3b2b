//! Splits blocks that are too long for a chunk, and finds the end of a chunk to repeat.

use super::{FULL_WORDS, MAX_BYTES, MAX_WORDS, Structure, length};

/// Splits a block into parts that fit a chunk, each with the number of lines before it.
pub(super) fn cut(text: &str, structure: Structure) -> Vec<(&str, u64)> {
    let mut parts = Vec::new();
    let (mut rest, mut lines) = (text, 0);
    while rest.len() > MAX_BYTES || length(rest) > MAX_WORDS {
        let at = cut_position(rest, structure);
        let (part, after) = rest.split_at(at);
        if !part.trim().is_empty() {
            parts.push((part.trim_end(), lines));
        }
        lines += part.matches('\n').count() as u64;
        rest = after;
    }
    if !rest.trim().is_empty() {
        parts.push((rest, lines));
    }
    parts
}

/// Returns the end of a text, at most this number of words.
pub(super) fn tail(text: &str, words: usize) -> &str {
    let mut left = words + 1;
    let start = text.trim_end().rfind(|character: char| {
        left -= usize::from(character.is_whitespace());
        left == 0
    });
    let tail = text[start.unwrap_or(0)..].trim();
    // In a text without spaces the tail would be the whole text.
    if tail.len() > words * 20 { "" } else { tail }
}

/// Returns where to split a text that is too long: after a line or a sentence in the second half of what fits, else
/// after a word, else anywhere. Never at the start.
fn cut_position(text: &str, structure: Structure) -> usize {
    let window = &text[..text.floor_char_boundary(MAX_BYTES)];
    let fits = end_of_words(window, FULL_WORDS);
    let window = &window[..fits];
    let half = window.floor_char_boundary(fits / 2);
    let after_line = window[half..].rfind('\n').map(|at| half + at + 1);
    let after_sentence = || {
        [". ", "? ", "! ", ".\n"]
            .iter()
            .filter_map(|end| window[half..].rfind(end).map(|at| half + at + 2))
            .max()
    };
    let after_word = || {
        window[half..]
            .rfind(char::is_whitespace)
            .map(|at| half + at + 1)
    };
    let position = match structure {
        Structure::Code => after_line,
        Structure::Plain | Structure::Markdown => after_sentence().or(after_line),
    };
    let position = position.or_else(after_word).unwrap_or(fits);
    // Every split must make progress, even in a text of wide characters only.
    text.ceil_char_boundary(position.max(1))
}

fn end_of_words(text: &str, words: usize) -> usize {
    let mut ends = text
        .char_indices()
        .filter(|(at, character)| {
            character.is_whitespace() && !text[..*at].ends_with(char::is_whitespace)
        })
        .map(|(at, _)| at);
    ends.nth(words).unwrap_or(text.len())
}
