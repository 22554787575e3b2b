//! Names of entities, predicates and types: what may be one, and when two are the same.

use lango_core::Text;
use std::fmt;

/// A valid name: not empty, not too long, on one line, without control characters.
///
/// It is stored as written, without surrounding space. Two names are the same if their keys are: trimmed, each run of space as
/// one blank, in one case, without zero-width joiners. For predicates `_` and `-` are space too, so that `works_at` and
/// `works at` are the same. Accents count, and so does how they are encoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Text);

impl Name {
    /// The longest name, in characters.
    pub const LONGEST: usize = 200;

    pub fn new(text: &str) -> Result<Self, NameError> {
        let text = text.trim();
        if let Some(character) = text.chars().find(|character| is_unseen(*character)) {
            return Err(NameError::Unseen { character });
        }
        let characters = text.chars().count();
        if characters > Self::LONGEST {
            return Err(NameError::TooLong { characters });
        }
        let name = Self(text.into());
        if name.key().is_empty() {
            return Err(NameError::Empty);
        }
        Ok(name)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as an entity or a type.
    pub fn key(&self) -> String {
        fold(self.0.split_whitespace())
    }

    pub fn predicate_key(&self) -> String {
        let is_space =
            |character: char| character.is_whitespace() || matches!(character, '_' | '-');
        let key = fold(self.0.split(is_space));
        if key.is_empty() { self.key() } else { key }
    }

    /// A name that was checked before it was stored.
    pub(crate) fn stored(text: Text) -> Self {
        Self(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Why a text cannot be a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("it is empty")]
    Empty,
    /// It is longer than [`Name::LONGEST`].
    #[error("it has {characters} characters, and {most} are the most", most = Name::LONGEST)]
    TooLong { characters: usize },
    /// It would not stay on its line, or looks like another.
    #[error("it holds the character {character:?}, which cannot be seen")]
    Unseen { character: char },
}

/// Upper case first: it brings together what lower case alone keeps apart, such as `ß` and `ss`, `ς` and `σ`.
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

/// Joiners that some scripts and many emoji need, and that are invisible.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

fn is_unseen(character: char) -> bool {
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
    fn case_and_space_do_not_tell_names_apart() {
        assert_eq!(key("  Ada \u{a0} LOVELACE "), "ada lovelace");
        assert_eq!(key("STRASSE"), key("Straße"));
        assert_eq!(key("ΣΊΣΥΦΟΣ"), key("Σίσυφος"));
        assert_eq!(key("A\u{200d}da"), "ada");
        assert_ne!(key("Ada"), key("Áda"));
        assert_ne!(key("works_at"), key("works at"));
    }

    #[test]
    fn a_predicate_is_the_same_with_and_without_underscores() {
        let key = |text| Name::new(text).unwrap().predicate_key();
        assert_eq!(key("works_at"), "works at");
        assert_eq!(key("Works-At"), "works at");
        assert_eq!(key("_works  at_"), "works at");
        assert_eq!(key("--"), "--");
    }

    #[test]
    fn a_name_is_kept_as_written() {
        let name = Name::new("\tAda  Lovelace\n").unwrap();
        assert_eq!(name.as_str(), "Ada  Lovelace");
    }

    #[test]
    fn what_cannot_be_a_name_is_refused_with_the_reason() {
        let refusal = |text: &str| Name::new(text).unwrap_err().to_string();
        assert_eq!(refusal(" \n\t"), "it is empty");
        assert_eq!(refusal("\u{200d}"), "it is empty");
        assert_eq!(
            refusal(&"x".repeat(10_240)),
            "it has 10240 characters, and 200 are the most"
        );
        assert_eq!(
            refusal("a\nb"),
            "it holds the character '\\n', which cannot be seen"
        );
        assert!(Name::new(&"ä".repeat(200)).is_ok());
        for character in ['\0', '\u{1b}', '\u{202e}', '\u{200b}', '\u{2028}'] {
            let text = format!("a{character}b");
            assert_eq!(
                Name::new(&text),
                Err(NameError::Unseen { character }),
                "{text:?}"
            );
        }
    }
}
