//! Placeholders: texts that sandboxed programs get instead of secret values.

use crate::name::SecretName;
use lango_core::UserId;
use sha2::{Digest, Sha256};
use std::fmt;

/// A text that represents a secret of a user. It is not secret itself: only the egress proxy replaces it, and only in
/// the bound header of requests to the bound origin. It never changes, so a program may store it in its own
/// configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Placeholder(String);

impl Placeholder {
    /// The prefix of every placeholder.
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
        let digest = base16ct::lower::encode_string(&hash.finalize()[..Self::DIGEST_BYTES]);
        Self(format!("{}{digest}", Self::PREFIX))
    }

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
