//! Names of secrets, which follow `secret:` in configurations and requests.

use lango_core::Text;
use std::fmt;

/// Maximum length of a name in characters.
const MAX_CHARACTERS: usize = 100;

/// The prefixes of well-known tokens.
const TOKEN_PREFIXES: [&str; 15] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "npm_",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxs-",
    "AKIA",
    "eyJ",
];

/// Minimum length of a text that counts as a token because of its prefix.
const MIN_TOKEN_CHARACTERS: usize = 20;

/// A text that cannot be the name of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` cannot be the name of a secret: use up to {MAX_CHARACTERS} letters, digits, `_`, `-` and `.`, and start with a letter or digit"
)]
pub struct InvalidName {
    /// The start of the text.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(Text);

impl SecretName {
    /// Validates a name. Only ASCII letters, digits, `_`, `-` and `.` are allowed, so that no two names look alike.
    pub fn new(name: &str) -> Result<Self, InvalidName> {
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"_-.".contains(&letter);
        let starts_well = name
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric);
        if starts_well && name.len() <= MAX_CHARACTERS && name.bytes().all(is_plain) {
            Ok(Self(name.into()))
        } else {
            // If the user typed a value instead of a name, it must not be printed in full.
            let shown = name.chars().filter(|letter| !letter.is_control());
            let name = shown.take(20).collect();
            Err(InvalidName { name })
        }
    }

    /// Returns whether a text looks like a private key or a token, which a user may have typed instead of a name.
    pub fn looks_like_value(text: &str) -> bool {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let is_key = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let has_prefix = TOKEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        is_key || has_prefix && text.len() >= MIN_TOKEN_CHARACTERS
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as shared text.
    pub fn text(&self) -> Text {
        self.0.clone()
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        for name in ["OPENAI_API_KEY", "a", "1.b-c_d", &"x".repeat(100)] {
            assert_eq!(SecretName::new(name).unwrap().as_str(), name);
        }
        for name in [
            "",
            "_a",
            "-a",
            ".a",
            "a b",
            "a/b",
            "a:b",
            "ä",
            "a\n",
            &"x".repeat(101),
        ] {
            assert!(SecretName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn private_keys_and_tokens_look_like_values_and_names_do_not() {
        let key = "4c".repeat(32);
        for value in [
            key.as_str(),
            &format!("0x{key}"),
            "sk-proj-0123456789abcdef",
            "ghp_0123456789abcdefghij",
            "xoxb-0123456789-abcdefgh",
            "AKIA0123456789ABCDEF",
            "eyJhbGciOiJIUzI1NiJ9.e30.x",
        ] {
            assert!(SecretName::looks_like_value(value), "{value}");
        }
        for name in ["OPENAI_API_KEY", "sk-key", "npm_token", "AKIA", &key[1..]] {
            assert!(!SecretName::looks_like_value(name), "{name}");
        }
    }

    #[test]
    fn a_value_typed_as_a_name_is_not_printed_in_full() {
        let error = SecretName::new(&format!("sk live {}", "canary".repeat(10))).unwrap_err();
        assert!(!error.to_string().contains("canarycanarycanary"), "{error}");
    }
}
