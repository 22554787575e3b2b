//! Values that must not be shown or left behind in memory.

use crate::cipher;
use crate::error::VaultError;
use std::fmt;
use zeroize::Zeroizing;

/// How many bytes a secret may have.
pub const MOST_SECRET_BYTES: usize = 16 << 10;

/// The value of a secret. It has no `Display`, no `Clone` and no serialization, is printed as `[secret]`, and is overwritten
/// when it is dropped.
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    /// Takes over bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// The bytes, for the one place that needs them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The value as text, if it is UTF-8.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A key of 256 bits. Like a [`SecretValue`] it is never printed, and overwritten when it is dropped.
pub struct Key(Zeroizing<[u8; Key::BYTES]>);

impl Key {
    /// How long a key is.
    pub const BYTES: usize = 32;

    /// Takes over bytes.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Copies a key out of bytes; none if they are not as many as a key has.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().map(Self::new).ok()
    }

    /// Makes a random key.
    pub fn random() -> Result<Self, VaultError> {
        cipher::random_key()
    }

    /// The bytes, for the one place that needs them.
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
