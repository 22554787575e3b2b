//! Extracts the part of a chunk that matches a query best, on one line.

use crate::words::words;
use lango_store::QueryWord;

/// The length of a snippet in words.
const SNIPPET_WORDS: usize = 40;

/// Maximum length of a word in a snippet, in characters.
const MAX_WORD: usize = 60;

/// Returns the passage with the most of the wanted words, which must be in lower case.
pub(super) fn snippet(text: &str, wanted: &[QueryWord]) -> String {
    let parts: Vec<&str> = text.split_whitespace().collect();
    // Prefixes match too, so `wing` matches `wings`.
    let is_hit = |part: &str| {
        words(part).any(|word| {
            let word = word.to_lowercase();
            wanted.iter().any(|QueryWord { text, .. }| {
                word.starts_with(text.as_str()) || (word.len() > 3 && text.starts_with(&word))
            })
        })
    };
    let hits: Vec<bool> = parts.iter().map(|part| is_hit(part)).collect();
    let first = centred(&hits, best_window(&hits));
    let last = (first + SNIPPET_WORDS).min(parts.len());
    let mut snippet = String::new();
    if first > 0 {
        snippet.push('…');
    }
    for (at, part) in parts[first..last].iter().enumerate() {
        if at > 0 {
            snippet.push(' ');
        }
        snippet.extend(part.chars().take(MAX_WORD));
    }
    if last < parts.len() {
        snippet.push('…');
    }
    snippet
}

/// Returns the start of the window with the most hits; the first one in a tie.
fn best_window(hits: &[bool]) -> usize {
    let mut inside = hits.iter().take(SNIPPET_WORDS).filter(|hit| **hit).count();
    let (mut best, mut most) = (0, inside);
    for first in 1..hits.len().saturating_sub(SNIPPET_WORDS) + 1 {
        inside -= usize::from(hits[first - 1]);
        inside += usize::from(
            hits.get(first + SNIPPET_WORDS - 1)
                .copied()
                .unwrap_or(false),
        );
        if inside > most {
            (best, most) = (first, inside);
        }
    }
    best
}

/// Moves the window so that its hits are in the middle. Returns its start.
fn centred(hits: &[bool], first: usize) -> usize {
    let last = (first + SNIPPET_WORDS).min(hits.len());
    let window = &hits[first..last];
    let inside = window
        .iter()
        .position(|hit| *hit)
        .zip(window.iter().rposition(|hit| *hit));
    let Some((low, high)) = inside else {
        return first;
    };
    let margin = (SNIPPET_WORDS - (high - low + 1)) / 2;
    let end = hits.len().saturating_sub(SNIPPET_WORDS);
    (first + low).saturating_sub(margin).min(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passage_with_the_words_is_shown() {
        let text = format!(
            "{} the lift of wings {}",
            "x ".repeat(100),
            "y ".repeat(100)
        );
        let wanted = ["wing", "lift"].map(|word| QueryWord::new(word, 1));
        let shown = snippet(&text, &wanted);
        assert!(shown.contains("the lift of wings"), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert_eq!(snippet("short one", &[]), "short one");
        assert_eq!(snippet("", &[]), "");
    }
}
