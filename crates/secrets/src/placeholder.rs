//! Placeholders: what a sandboxed program holds instead of a value.

use crate::name::SecretName;
use lango_core::UserId;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};

/// The text that stands for a secret of a user. It is no secret: only the egress proxy gives it a meaning, and only in the
/// bound header of the bound origin. It stays the same, so that a program may store it in its own configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Placeholder(String);

impl Placeholder {
    /// The beginning of every placeholder.
    pub const PREFIX: &'static str = "lango_secret_";

    /// Length in bytes of the digest that makes placeholders distinct.
    const DIGEST_BYTES: usize = 16;

    /// Returns the placeholder of a secret.
    pub fn new(user: &UserId, name: &SecretName) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"lango placeholder\0");
        hash.update(user.as_str());
        hash.update(b"\0");
        hash.update(name.as_str());
        let mut text = Self::PREFIX.to_owned();
        for byte in &hash.finalize()[..Self::DIGEST_BYTES] {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_belongs_to_one_secret_of_one_user() {
        let name = |text| SecretName::new(text).unwrap();
        let placeholder = |user: &str, text| Placeholder::new(&UserId::from(user), &name(text));
        let own = placeholder("ann", "TOKEN");
        assert_eq!(own, placeholder("ann", "TOKEN"));
        assert_ne!(own, placeholder("bob", "TOKEN"));
        assert_ne!(own, placeholder("ann", "TOKEN2"));
        assert!(own.as_str().starts_with("lango_secret_"));
        assert_eq!(own.as_str().len(), "lango_secret_".len() + 32);
    }
}
