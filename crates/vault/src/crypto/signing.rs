//! Signatures of typed messages. The signed bytes start with a fixed line and the type of the message, so a signature
//! for one purpose is not valid for another, and a caller cannot make lango sign an arbitrary digest or transaction.
//!
//! Ed25519 signs these bytes. secp256k1 signs them as an Ethereum personal message (EIP-191), which cannot be mistaken
//! for a transaction or for typed data (EIP-712).

use crate::key::Key;
use crate::manifest::SecretKind;
use k256::ecdsa::{RecoveryId, SigningKey, VerifyingKey};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use sha3::{Digest, Keccak256};
use std::fmt;

/// The first line of all signed bytes.
const LABEL: &str = "lango signed message";

/// Maximum length of a message type in bytes.
const MAX_TYPE_BYTES: usize = 100;

/// The type of a message: its purpose, such as `release-manifest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageType(String);

impl MessageType {
    /// Validates a type. It consists of letters, digits and `._/-`, so it is always a single line.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
        let fits = !text.is_empty() && text.len() <= MAX_TYPE_BYTES;
        (fits && text.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    /// Returns the bytes to sign. Different types and texts have different bytes, because a type has no line break.
    fn content(&self, text: &str) -> Vec<u8> {
        format!("{LABEL}\ntype: {}\n\n{text}", self.0).into_bytes()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PublicKey {
    /// The bytes of an Ed25519 public key.
    Ed25519([u8; 32]),
    /// The Ethereum address of a secp256k1 public key.
    Address([u8; 20]),
}

/// A signature: 64 bytes for Ed25519; r, s and the recovery byte for secp256k1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature(pub Vec<u8>);

/// Returns the public key of a signing key; `None` for other kinds.
pub(crate) fn public_key(key: &Key, kind: SecretKind) -> Option<PublicKey> {
    match kind {
        SecretKind::Ed25519Key => {
            let pair = Ed25519KeyPair::from_seed_unchecked(key.expose()).ok()?;
            let bytes = pair.public_key().as_ref().try_into().ok()?;
            Some(PublicKey::Ed25519(bytes))
        }
        SecretKind::Secp256k1Key => {
            let key = SigningKey::from_slice(key.expose()).ok()?;
            Some(PublicKey::Address(address(key.verifying_key())))
        }
        _ => None,
    }
}

/// Signs a message; `None` if the key is not a signing key.
pub(crate) fn sign(
    key: &Key,
    kind: SecretKind,
    purpose: &MessageType,
    text: &str,
) -> Option<Signature> {
    let content = purpose.content(text);
    match kind {
        SecretKind::Ed25519Key => {
            let pair = Ed25519KeyPair::from_seed_unchecked(key.expose()).ok()?;
            Some(Signature(pair.sign(&content).as_ref().to_vec()))
        }
        SecretKind::Secp256k1Key => {
            let key = SigningKey::from_slice(key.expose()).ok()?;
            let (signature, recovery) = key.sign_prehash_recoverable(&personal_digest(&content));
            let mut bytes = signature.to_bytes().to_vec();
            bytes.push(27 + recovery.to_byte());
            Some(Signature(bytes))
        }
        _ => None,
    }
}

/// Verifies a signature that [`sign`] created.
pub(crate) fn verify(
    key: &PublicKey,
    purpose: &MessageType,
    text: &str,
    signature: &Signature,
) -> bool {
    let content = purpose.content(text);
    match key {
        PublicKey::Ed25519(bytes) => {
            let key = UnparsedPublicKey::new(&ED25519, bytes);
            key.verify(&content, &signature.0).is_ok()
        }
        PublicKey::Address(own) => recover(&content, signature).as_ref() == Some(own),
    }
}

fn recover(content: &[u8], signature: &Signature) -> Option<[u8; 20]> {
    let (recovery, bytes) = signature.0.split_last()?;
    let recovery = RecoveryId::from_byte(recovery.checked_sub(27)?)?;
    let signature = k256::ecdsa::Signature::from_slice(bytes).ok()?;
    let digest = personal_digest(content);
    let key = VerifyingKey::recover_from_prehash(&digest, &signature, recovery).ok()?;
    Some(address(&key))
}

/// Returns the digest of an Ethereum personal message.
fn personal_digest(content: &[u8]) -> [u8; 32] {
    let mut hash = Keccak256::new();
    hash.update(b"\x19Ethereum Signed Message:\n");
    hash.update(content.len().to_string());
    hash.update(content);
    hash.finalize().into()
}

fn address(key: &VerifyingKey) -> [u8; 20] {
    let point = key.to_sec1_point(false);
    // Skips the first byte, which only says that the point is not compressed.
    let digest = Keccak256::digest(&point.as_bytes()[1..]);
    let mut address = [0; 20];
    address.copy_from_slice(&digest[12..]);
    address
}

impl PublicKey {
    /// Parses a public key: 64 hexadecimal digits for Ed25519, an address for secp256k1. Does not verify the checksum
    /// of an address.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = super::from_hex(text)?;
        match bytes.len() {
            32 => bytes.try_into().map(Self::Ed25519).ok(),
            20 => bytes.try_into().map(Self::Address).ok(),
            _ => None,
        }
    }
}

impl fmt::Display for PublicKey {
    /// Formats the key as hexadecimal digits, and an address with its checksum (EIP-55).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match self {
            Self::Ed25519(bytes) => return f.write_str(&super::to_hex(bytes)),
            Self::Address(bytes) => bytes,
        };
        let digits = super::to_hex(bytes);
        let check = super::to_hex(&Keccak256::digest(digits.as_bytes()));
        f.write_str("0x")?;
        for (digit, check) in digits.chars().zip(check.chars()) {
            let is_upper = check.to_digit(16).is_some_and(|check| check >= 8);
            let digit = if is_upper {
                digit.to_ascii_uppercase()
            } else {
                digit
            };
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> MessageType {
        MessageType::new(text).unwrap()
    }

    #[test]
    fn addresses_match_those_of_ethereum() {
        // This is the first account of a well-known test phrase.
        let hex = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
        let key = Key::from_slice(&crate::crypto::from_hex(hex).unwrap()).unwrap();
        let public = public_key(&key, SecretKind::Secp256k1Key).unwrap();
        assert_eq!(
            public.to_string(),
            "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
        );
        assert_eq!(PublicKey::parse(&public.to_string()), Some(public));
    }

    #[test]
    fn a_signature_is_valid_for_only_one_key_type_and_text() {
        for kind_of_key in [SecretKind::Ed25519Key, SecretKind::Secp256k1Key] {
            let key = Key::random().unwrap();
            let other = public_key(&Key::random().unwrap(), kind_of_key).unwrap();
            let public = public_key(&key, kind_of_key).unwrap();
            let signed = sign(&key, kind_of_key, &kind("release"), "v1").unwrap();
            assert!(verify(&public, &kind("release"), "v1", &signed));
            assert!(!verify(&public, &kind("release"), "v2", &signed));
            assert!(!verify(&public, &kind("invoice"), "v1", &signed));
            assert!(!verify(&other, &kind("release"), "v1", &signed));
            for at in 0..signed.0.len() {
                let mut flipped = signed.clone();
                flipped.0[at] ^= 1;
                assert!(!verify(&public, &kind("release"), "v1", &flipped), "{at}");
            }
            assert!(!verify(
                &public,
                &kind("release"),
                "v1",
                &Signature(Vec::new())
            ));
        }
        let key = Key::random().unwrap();
        for other in [
            SecretKind::HmacKey,
            SecretKind::PaymentKey,
            SecretKind::Text,
        ] {
            assert!(sign(&key, other, &kind("a"), "b").is_none());
            assert!(public_key(&key, other).is_none());
        }
    }

    #[test]
    fn a_type_is_a_single_plain_line() {
        for text in ["", "a b", "a\nb", "ä", "a:b", &"x".repeat(101)] {
            assert!(MessageType::new(text).is_none(), "{text}");
        }
        // The end of the type cannot be confused with the start of the text.
        assert_ne!(kind("a").content("b\n\nc"), kind("a/b").content("c"));
    }
}
