//! The value of a secret.

use std::fmt;
use zeroize::Zeroizing;

/// Maximum size of a secret in bytes.
pub const MAX_SECRET_BYTES: usize = 16 << 10;

/// The value of a secret. It has no `Display`, `Clone` or serialization, debug-prints as `[secret]`, and is zeroed when
/// dropped.
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Returns the bytes. Callers must not print or store them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Returns the value as text if it is UTF-8.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = SecretValue::new("canary");
        assert_eq!(format!("{:?}", Some(secret)), "Some([secret])");
    }
}
