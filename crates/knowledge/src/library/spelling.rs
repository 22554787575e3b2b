//! Tells whether a text contains a misspelled word of a query.

use crate::words::words;
use lango_store::QueryWord;

/// The shortest word that is compared, and the shortest that may differ in two letters, in bytes.
const MIN_WORD: usize = 4;
const LONG_WORD: usize = 8;

/// Whether a text contains a word that differs from a wanted one in at most one letter, or two letters of a long word. The
/// wanted words must be in lower case.
pub(super) fn has_similar_word(text: &str, wanted: &[QueryWord]) -> bool {
    words(text).any(|word| {
        let word = word.to_lowercase();
        wanted.iter().any(|wanted| is_similar(&word, &wanted.text))
    })
}

fn is_similar(word: &str, wanted: &str) -> bool {
    let shorter = word.len().min(wanted.len());
    let most = if shorter < LONG_WORD { 1 } else { 2 };
    shorter >= MIN_WORD
        && word.len().abs_diff(wanted.len()) <= most
        && strsim::osa_distance(word, wanted) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_misspelled_word_is_similar() {
        for (word, wanted) in [
            ("receive", "recieve"),
            ("plumber", "plumbr"),
            ("combustion", "cmobustoin"),
        ] {
            assert!(
                has_similar_word(&format!("a {word}, b"), &[QueryWord::new(wanted, 1)]),
                "{word}"
            );
        }
        for (word, wanted) in [
            ("main", "bread"),
            ("milk", "zebras"),
            ("cat", "car"),
            ("hello", "qqqqxyz"),
        ] {
            assert!(!is_similar(word, wanted), "{word}");
        }
    }
}
