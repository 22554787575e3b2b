//! Names of entities, predicates and types: which texts are valid, and which names are equal.

use lango_core::Text;
use std::fmt;

/// A valid name: not empty, not too long, on one line, without control characters.
///
/// A name is stored as written, without surrounding whitespace. Two names are equal if their keys are equal. A key is
/// the trimmed and case-folded name, without zero-width joiners and with each run of whitespace as one space. For
/// predicates `_` and `-` are whitespace too, so `works_at` and `works at` are equal. Accents and their encoding are
/// significant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Text);

impl Name {
    /// Maximum length of a name, in characters.
    pub const MAX_CHARS: usize = 200;

    pub fn new(text: &str) -> Result<Self, NameError> {
        let text = text.trim();
        if let Some(character) = text.chars().find(|character| is_invisible(*character)) {
            return Err(NameError::Invisible { character });
        }
        let characters = text.chars().count();
        if characters > Self::MAX_CHARS {
            return Err(NameError::TooLong { characters });
        }
        let name = Self(text.into());
        if name.key().is_empty() {
            return Err(NameError::Empty);
        }
        Ok(name)
    }

    /// Returns the name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key of an entity or a type.
    pub fn key(&self) -> String {
        fold(self.0.split_whitespace())
    }

    pub fn predicate_key(&self) -> String {
        let is_space =
            |character: char| character.is_whitespace() || matches!(character, '_' | '-');
        let key = fold(self.0.split(is_space));
        if key.is_empty() { self.key() } else { key }
    }

    /// Creates a name from stored text, which was validated before it was stored.
    pub(crate) fn from_stored(text: Text) -> Self {
        Self(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The reason why a text is not a valid name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("it is empty")]
    Empty,
    /// The text is longer than [`Name::MAX_CHARS`].
    #[error("it has {characters} characters; the limit is {max}", max = Name::MAX_CHARS)]
    TooLong { characters: usize },
    /// The text has a character that breaks lines or makes it look like another name.
    #[error("it contains the invisible character {character:?}")]
    Invisible { character: char },
}

/// Joins words into a key. Converts them to upper case first, because that unifies letters that lower case alone does not, such as
/// `ß` and `ss`, or `ς` and `σ`.
fn fold<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut key = String::new();
    for word in words {
        let before = key.len();
        if before > 0 {
            key.push(' ');
        }
        let start = key.len();
        if word.is_ascii() {
            key.push_str(word);
            key[start..].make_ascii_lowercase();
        } else {
            let seen = word.chars().filter(|character| !is_joiner(*character));
            let upper = seen.flat_map(char::to_uppercase);
            key.extend(upper.flat_map(char::to_lowercase));
        }
        if key.len() == start {
            key.truncate(before);
        }
    }
    key
}

/// Returns whether a character is an invisible joiner, which some scripts and many emoji need.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> String {
        Name::new(text).unwrap().key()
    }

    #[test]
    fn names_that_differ_in_case_and_whitespace_are_equal() {
        assert_eq!(key("  Ada \u{a0} LOVELACE "), "ada lovelace");
        assert_eq!(key("STRASSE"), key("Straße"));
        assert_eq!(key("ΣΊΣΥΦΟΣ"), key("Σίσυφος"));
        assert_eq!(key("A\u{200d}da"), "ada");
        assert_ne!(key("Ada"), key("Áda"));
        assert_ne!(key("works_at"), key("works at"));
    }

    #[test]
    fn predicates_with_and_without_underscores_are_equal() {
        let key = |text| Name::new(text).unwrap().predicate_key();
        assert_eq!(key("works_at"), "works at");
        assert_eq!(key("Works-At"), "works at");
        assert_eq!(key("_works  at_"), "works at");
        assert_eq!(key("--"), "--");
    }

    #[test]
    fn a_name_is_stored_as_written() {
        let name = Name::new("\tAda  Lovelace\n").unwrap();
        assert_eq!(name.as_str(), "Ada  Lovelace");
    }

    #[test]
    fn an_invalid_name_is_refused_with_the_reason() {
        let refusal = |text: &str| Name::new(text).unwrap_err().to_string();
        assert_eq!(refusal(" \n\t"), "it is empty");
        assert_eq!(refusal("\u{200d}"), "it is empty");
        assert_eq!(
            refusal(&"x".repeat(10_240)),
            "it has 10240 characters; the limit is 200"
        );
        assert_eq!(refusal("a\nb"), "it contains the invisible character '\\n'");
        assert!(Name::new(&"ä".repeat(200)).is_ok());
        for character in ['\0', '\u{1b}', '\u{202e}', '\u{200b}', '\u{2028}'] {
            let text = format!("a{character}b");
            assert_eq!(
                Name::new(&text),
                Err(NameError::Invisible { character }),
                "{text:?}"
            );
        }
    }
}
