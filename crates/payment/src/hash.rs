//! Keccak-256 hashes and hexadecimal encoding.

use sha3::{Digest, Keccak256};

pub(crate) fn keccak(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

/// Returns the hash of the concatenation of several parts.
pub(crate) fn keccak_all(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Keccak256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// Encodes bytes as lower-case hexadecimal digits, without `0x`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

/// Decodes hexadecimal digits without `0x`. Returns `None` if they are invalid.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    base16ct::mixed::decode_vec(text).ok()
}
