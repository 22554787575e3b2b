//! Normalizes text for PostgreSQL's index of words: lower case, no accents, one blank between two words.
//!
//! PostgreSQL's own functions depend on its locale and extensions; the index must be the same on every server.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// The longest word that is indexed, in bytes.
const LONGEST_WORD: usize = 200;

pub(super) fn fold(text: &str) -> String {
    let parted = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(text.chars());
    let mut folded = String::with_capacity(text.len());
    let mut start = 0;
    for character in parted {
        if character.is_alphanumeric() {
            folded.extend(character.to_lowercase().filter(|small| !is_accent(*small)));
        } else if !is_accent(character) {
            start = end_word(&mut folded, start);
        }
    }
    end_word(&mut folded, start);
    folded.truncate(folded.trim_end().len());
    folded
}

/// Ends the word that starts at `start`; returns where the next one starts.
fn end_word(folded: &mut String, start: usize) -> usize {
    match folded.len() - start {
        0 => {}
        length if length > LONGEST_WORD => folded.truncate(start),
        _ => folded.push(' '),
    }
    folded.len()
}

fn is_accent(character: char) -> bool {
    matches!(character,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_small_plain_and_parted_by_one_blank() {
        for (text, folded) in [
            ("", ""),
            (" \0\u{1}--'", ""),
            ("Café CAFE\u{301} cafe", "cafe cafe cafe"),
            ("it's foo_bar/baz.rs: 3.14", "it s foo bar baz rs 3 14"),
            ("“Ångström—Straße”", "angstrom straße"),
            ("ΑΘΉΝΑ Москва 東京", "αθηνα москва 東京"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
        let long = "x".repeat(LONGEST_WORD);
        assert_eq!(fold(&format!("a {long} b")), format!("a {long} b"));
        assert_eq!(fold(&format!("a {long}x b {long}x")), "a b");
    }
}
