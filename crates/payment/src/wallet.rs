//! The wallet: one secp256k1 key. The key is in memory only while it signs, and it signs only authorizations and the
//! transactions that submit them.

use crate::address::Address;
use crate::error::PaymentError;
use crate::hash::{hex, keccak, unhex};
use k256::ecdsa::SigningKey;
use lango_core::BoxFuture;
use zeroize::Zeroizing;

/// A private key, zeroed when dropped.
pub type KeyBytes = Zeroizing<[u8; 32]>;

/// The source of the wallet's key.
pub trait WalletKey: Send + Sync {
    /// Returns the key for one signature.
    fn key(&self) -> BoxFuture<'_, Result<KeyBytes, PaymentError>>;
}

/// A key that signs digests, zeroed when dropped.
pub(crate) struct Signer(SigningKey);

/// A signature with its recovery id, 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature {
    pub r: [u8; 32],
    pub s: [u8; 32],
    pub parity: u8,
}

impl Signer {
    pub(crate) fn new(key: &KeyBytes) -> Result<Self, PaymentError> {
        let signing = SigningKey::from_slice(&key[..]);
        signing.map(Self).map_err(|_| PaymentError::Key {
            detail: "it is not a secp256k1 key".to_owned(),
        })
    }

    pub(crate) fn address(&self) -> Address {
        let point = self.0.verifying_key().to_sec1_point(false);
        let hash = keccak(&point.as_bytes()[1..]);
        let mut address = [0; 20];
        address.copy_from_slice(&hash[12..]);
        Address(address)
    }

    /// Signs a digest with a deterministic nonce (RFC 6979).
    pub(crate) fn sign(&self, digest: &[u8; 32]) -> Signature {
        let (signature, recovery) = self.0.sign_prehash_recoverable(digest);
        let (r, s) = signature.split_bytes();
        Signature {
            r: r.into(),
            s: s.into(),
            parity: recovery.to_byte() & 1,
        }
    }
}

impl Signature {
    /// Returns `r`, `s` and 27 or 28, the format that contracts expect.
    pub(crate) fn to_bytes(self) -> [u8; 65] {
        let mut bytes = [0; 65];
        bytes[..32].copy_from_slice(&self.r);
        bytes[32..64].copy_from_slice(&self.s);
        bytes[64] = 27 + self.parity;
        bytes
    }
}

/// Parses a private key: 64 hexadecimal digits, with or without `0x`.
pub fn parse_key(text: &str) -> Result<KeyBytes, PaymentError> {
    let wrong = || PaymentError::Key {
        detail: "it must be 64 hexadecimal digits, with or without `0x`".to_owned(),
    };
    let text = text.trim();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let bytes = Zeroizing::new(unhex(digits).ok_or_else(wrong)?);
    let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| wrong())?;
    let key = Zeroizing::new(key);
    Signer::new(&key)?;
    Ok(key)
}

/// Returns the address of the wallet with this key.
pub fn address_of(key: &KeyBytes) -> Result<Address, PaymentError> {
    Ok(Signer::new(key)?.address())
}

/// Formats a key as it is stored: `0x` and hexadecimal digits.
pub fn key_text(key: &KeyBytes) -> Zeroizing<String> {
    Zeroizing::new(format!("0x{}", hex(&key[..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first account of the well-known test mnemonic, which has no value.
    const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

    #[test]
    fn the_address_is_derived_from_the_key() {
        let key = parse_key(KEY).unwrap();
        let address = address_of(&key).unwrap().to_string();
        assert_eq!(address, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        assert_eq!(&**key_text(&key), KEY);
    }

    #[test]
    fn an_invalid_key_is_refused_and_the_error_does_not_repeat_it() {
        let order = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        let zero = "0".repeat(64);
        for wrong in ["", "0x12", &KEY[..65], order, &zero] {
            let error = parse_key(wrong).unwrap_err().to_string();
            assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
        }
    }
}
