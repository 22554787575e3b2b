//! Normalizes text for PostgreSQL's word index: lower case, no accents, one space between words.
//!
//! PostgreSQL's own functions depend on its locale and extensions, but the index must be the same on every server.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Maximum length of an indexed word, in bytes.
const MAX_WORD_BYTES: usize = 200;

pub(super) fn fold(text: &str) -> String {
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(text.chars());
    let mut folded = String::with_capacity(text.len());
    let mut start = 0;
    for character in decomposed {
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

/// Ends the word that starts at `start`. Returns where the next word starts.
fn end_word(folded: &mut String, start: usize) -> usize {
    match folded.len() - start {
        0 => {}
        length if length > MAX_WORD_BYTES => folded.truncate(start),
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
    fn words_are_lower_case_without_accents_and_separated_by_one_space() {
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
        let long = "x".repeat(MAX_WORD_BYTES);
        assert_eq!(fold(&format!("a {long} b")), format!("a {long} b"));
        assert_eq!(fold(&format!("a {long}x b {long}x")), "a b");
    }
}
