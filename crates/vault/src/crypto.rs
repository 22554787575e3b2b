//! Hashes, and operations with keys of the vault. The keys themselves are never returned; each operation returns only
//! its result.

mod signing;

pub(crate) use signing::{MessageType, PublicKey, Signature, public_key, sign, verify};

use crate::cipher;
use crate::encoding::Writer;
use crate::error::VaultError;
use crate::key::Key;
use blake2::Blake2b512;
use lango_secrets::{SecretName, SecretValue};
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest, Sha256, Sha512};
use sha3::Keccak256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HashAlgorithm {
    Sha256,
    Sha512,
    // BLAKE2b with 512 bits. Doc comments on variants would split the JSON schema, and errors would no longer list the
    // names.
    Blake2b,
    // Keccak-256 as used by Ethereum.
    Keccak256,
}

impl HashAlgorithm {
    pub(crate) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
            Self::Blake2b => Blake2b512::digest(bytes).to_vec(),
            Self::Keccak256 => Keccak256::digest(bytes).to_vec(),
        }
    }
}

/// Computes an HMAC-SHA-256.
pub(crate) fn hmac(key: &Key, text: &[u8]) -> Vec<u8> {
    cipher::authenticate(key, text).to_vec()
}

/// Encrypts a text with a named key. `context` is authenticated but not encrypted.
pub(crate) fn encrypt(
    key: &Key,
    name: &SecretName,
    context: &str,
    text: &str,
) -> Result<Vec<u8>, VaultError> {
    cipher::seal(key, &associated_data(name, context), text.as_bytes())
}

/// Decrypts the result of [`encrypt`]; `None` if the key, the context or the bytes differ.
pub(crate) fn decrypt(
    key: &Key,
    name: &SecretName,
    context: &str,
    sealed: &[u8],
) -> Option<SecretValue> {
    cipher::open(key, &associated_data(name, context), sealed)
}

fn associated_data(name: &SecretName, context: &str) -> Vec<u8> {
    let mut data = Writer::labelled("lango vault text");
    data.text(name.as_str());
    data.text(context);
    data.into_bytes()
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

/// Parses hexadecimal digits, with or without `0x`.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    base16ct::mixed::decode_vec(text.strip_prefix("0x").unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_their_standards() {
        let hex = |algorithm: HashAlgorithm, text: &str| to_hex(&algorithm.digest(text.as_bytes()));
        assert_eq!(
            hex(HashAlgorithm::Sha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert!(hex(HashAlgorithm::Sha512, "abc").starts_with("ddaf35a193617abacc417349ae204131"));
        assert!(hex(HashAlgorithm::Blake2b, "abc").starts_with("ba80a53f981c4d0d6a2797b69f12f6e9"));
        assert_eq!(
            hex(HashAlgorithm::Keccak256, ""),
            "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
        );
        assert_eq!(from_hex("0x00ff").unwrap(), [0, 255]);
        assert!(from_hex("0").is_none() && from_hex("zz").is_none());
    }

    #[test]
    fn a_text_can_be_decrypted_only_with_its_key_name_and_context() {
        let name = |text| SecretName::new(text).unwrap();
        let (key, other) = (cipher::random_key().unwrap(), cipher::random_key().unwrap());
        let sealed = encrypt(&key, &name("K"), "letters", "dear").unwrap();
        let opened = decrypt(&key, &name("K"), "letters", &sealed).unwrap();
        assert_eq!(opened.expose(), b"dear");
        assert!(decrypt(&other, &name("K"), "letters", &sealed).is_none());
        assert!(decrypt(&key, &name("L"), "letters", &sealed).is_none());
        assert!(decrypt(&key, &name("K"), "", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert!(decrypt(&key, &name("K"), "letters", &flipped).is_none());
        }
        // A tool cannot decrypt data that the vault itself encrypted.
        let own = cipher::seal(&key, b"lango vault record value", b"value").unwrap();
        assert!(decrypt(&key, &name("K"), "", &own).is_none());
    }
}
