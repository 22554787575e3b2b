//! Encrypts data outside the vault with a key that is stored as a secret of the vault.

use crate::cipher;
use crate::encoding::Writer;
use crate::error::VaultError;
use crate::key::Key;
use crate::key_file;
use lango_secrets::SecretValue;

/// Seals and opens bytes for one purpose.
#[derive(Debug)]
pub struct Sealer {
    key: Key,
    purpose: &'static str,
}

impl Sealer {
    /// Generates a random key as text, to be stored as a secret.
    pub fn new_key() -> Result<SecretValue, VaultError> {
        let hex = key_file::to_hex(&Key::random()?);
        Ok(SecretValue::new(hex.as_bytes()))
    }

    /// Creates a sealer from the value of a secret; `None` if the value is not a key. Data sealed for one purpose
    /// cannot be opened for another.
    pub fn new(secret: &SecretValue, purpose: &'static str) -> Option<Self> {
        let key = key_file::from_hex(secret.expose_text()?)?;
        Some(Self { key, purpose })
    }

    /// Encrypts and authenticates bytes.
    pub fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
        cipher::seal(&self.key, &self.context(), plain)
    }

    /// Decrypts sealed bytes; `None` if they were changed.
    pub fn open(&self, sealed: &[u8]) -> Option<SecretValue> {
        cipher::open(&self.key, &self.context(), sealed)
    }

    fn context(&self) -> Vec<u8> {
        let mut context = Writer::labelled("lango vault file");
        context.text(self.purpose);
        context.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_open_with_the_same_key_for_the_same_purpose() {
        let key = Sealer::new_key().unwrap();
        let sealer = Sealer::new(&key, "a").unwrap();
        let sealed = sealer.seal(b"value").unwrap();
        assert_eq!(sealer.open(&sealed).unwrap().expose(), b"value");
        assert!(Sealer::new(&key, "b").unwrap().open(&sealed).is_none());
        let other = Sealer::new_key().unwrap();
        assert!(Sealer::new(&other, "a").unwrap().open(&sealed).is_none());
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert!(sealer.open(&flipped).is_none(), "byte {at}");
        }
        assert!(Sealer::new(&SecretValue::new("no key"), "a").is_none());
    }
}
