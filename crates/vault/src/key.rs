//! Cryptographic keys.

use crate::cipher;
use crate::error::VaultError;
use std::fmt;
use zeroize::Zeroizing;

/// A 256-bit key. Like a [`SecretValue`](lango_secrets::SecretValue), it is never printed and is zeroed when dropped.
pub struct Key(Zeroizing<[u8; Key::BYTES]>);

impl Key {
    /// Length of a key in bytes.
    pub const BYTES: usize = 32;

    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Copies a key from bytes; `None` if the length is wrong.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().map(Self::new).ok()
    }

    pub fn random() -> Result<Self, VaultError> {
        cipher::random_key()
    }

    /// Returns the bytes. Callers must not print or store them.
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
    fn a_key_is_not_printed() {
        assert_eq!(format!("{:?}", Key::new([7; 32])), "[key]");
    }
}
