//! Cutting what is too long for a chunk, and repeating the end of one.

use super::{FULL_WORDS, MOST_BYTES, MOST_WORDS, Structure, length};

/// A block in parts that fit a chunk, each with the number of lines before it.
pub(super) fn cut(text: &str, structure: Structure) -> Vec<(&str, u64)> {
    let mut parts = Vec::new();
    let (mut rest, mut lines) = (text, 0);
    while rest.len() > MOST_BYTES || length(rest) > MOST_WORDS {
        let at = place_to_cut(rest, structure);
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

/// The end of a text, of at most so many words.
pub(super) fn tail(text: &str, words: usize) -> &str {
    let mut left = words + 1;
    let begin = text.trim_end().rfind(|character: char| {
        left -= usize::from(character.is_whitespace());
        left == 0
    });
    let tail = text[begin.unwrap_or(0)..].trim();
    // A text without spaces has no end that could be told from its beginning.
    if tail.len() > words * 20 { "" } else { tail }
}

/// Where a text that is too long is cut: after a line or a sentence if there is one in the second half of what fits,
/// else after a word, else anywhere. Never at its beginning.
fn place_to_cut(text: &str, structure: Structure) -> usize {
    let window = &text[..text.floor_char_boundary(MOST_BYTES)];
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
    let place = match structure {
        Structure::Code => after_line,
        Structure::Plain | Structure::Markdown => after_sentence().or(after_line),
    };
    let place = place.or_else(after_word).unwrap_or(fits);
    // A cut must make progress, also in a text that is one wide character after another.
    text.ceil_char_boundary(place.max(1))
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
