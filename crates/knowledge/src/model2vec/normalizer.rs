//! Normalizes texts as BERT's tokenizers do: cleans them, removes case and accents, and splits at spaces and
//! punctuation.

use icu_normalizer::DecomposingNormalizerBorrowed;
use serde::Deserialize;
use unicode_general_category::{GeneralCategory, get_general_category};

/// BERT's normalizer, as configured in `tokenizer.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct BertNormalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    /// Defaults to the value of `lowercase`.
    strip_accents: Option<bool>,
    lowercase: bool,
}

impl Default for BertNormalizer {
    fn default() -> Self {
        Self {
            clean_text: true,
            handle_chinese_chars: true,
            strip_accents: None,
            lowercase: true,
        }
    }
}

impl BertNormalizer {
    /// Normalizes a text before it is split into tokens.
    pub(super) fn normalize(&self, text: &str) -> String {
        let mut normalized = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if self.clean_text && is_dropped(c) => {}
                c if self.clean_text && c.is_whitespace() => normalized.push(' '),
                c if self.handle_chinese_chars && is_ideograph(c) => {
                    normalized.extend([' ', c, ' ']);
                }
                c => normalized.push(c),
            }
        }
        if self.strip_accents.unwrap_or(self.lowercase) {
            let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(&normalized);
            normalized = decomposed.chars().filter(|c| !is_accent(*c)).collect();
        }
        if self.lowercase {
            // Character by character, so without the special case of a final sigma.
            normalized = normalized.chars().flat_map(char::to_lowercase).collect();
        }
        normalized
    }
}

/// Splits a text into words at spaces; every punctuation character is a separate word.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let starts_with_mark = |part: &'_ str| part.chars().next().is_some_and(is_punctuation);
    text.split_whitespace().flat_map(move |part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let end = if starts_with_mark(rest) {
                rest.chars().next().map_or(0, char::len_utf8)
            } else {
                rest.find(is_punctuation).unwrap_or(rest.len())
            };
            let (word, after) = rest.split_at(end);
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    })
}

fn is_dropped(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse, Surrogate};
    let is_other = || {
        matches!(
            get_general_category(c),
            Control | Format | PrivateUse | Surrogate
        )
    };
    match c {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        _ => is_other(),
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}'
        | '\u{2b740}'..='\u{2b81f}'
        | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{2f800}'..='\u{2fa1f}')
}

fn is_accent(c: char) -> bool {
    get_general_category(c) == GeneralCategory::NonspacingMark
}

fn is_punctuation(c: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation,
        InitialPunctuation, OpenPunctuation, OtherPunctuation,
    };
    c.is_ascii_punctuation()
        || matches!(
            get_general_category(c),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
}
