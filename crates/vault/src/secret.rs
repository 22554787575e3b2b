//! Values that must not be printed or left in memory.

use crate::cipher;
use crate::error::VaultError;
use std::fmt;
use zeroize::Zeroizing;

/// Maximum size of a secret in bytes.
pub const MOST_SECRET_BYTES: usize = 16 << 10;

/// The value of a secret. It has no `Display`, `Clone` or serialization, debug-prints as `[secret]`, and is zeroed when
/// dropped.
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    /// Wraps bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Returns the bytes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Returns the value as text if it is UTF-8.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns its length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A 256-bit key. Like a [`SecretValue`], it is never printed and is zeroed when dropped.
pub struct Key(Zeroizing<[u8; Key::BYTES]>);

impl Key {
    /// Length of a key in bytes.
    pub const BYTES: usize = 32;

    /// Wraps bytes.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Copies a key from bytes; `None` if the length is wrong.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().map(Self::new).ok()
    }

    /// Generates a random key.
    pub fn random() -> Result<Self, VaultError> {
        cipher::random_key()
    }

    /// Returns the bytes.
    pub fn expose(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    pub(crate) fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }

    pub(crate) fn zero() -> Self {
        Self::new([0; Self::BYTES])
    }

    pub(crate) fn expose_mut(&mut self) -> &mut [u8; Self::BYTES] {
        &mut self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = SecretValue::new("canary");
        assert_eq!(
            format!("{secret:?} {:?}", Key::new([7; 32])),
            "[secret] [key]"
        );
        assert_eq!(format!("{:?}", Some(secret)), "Some([secret])");
    }
}
