//! Cryptographic primitives: authenticated encryption, key derivation, and the MAC of a head.

use crate::error::VaultError;
use crate::key::Key;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use lango_secrets::SecretValue;
use sha2::{Digest, Sha256};

/// Length of an XChaCha20-Poly1305 nonce. It is long enough for random nonces.
pub(crate) const NONCE_BYTES: usize = 24;

/// Length of the authentication tag of encrypted bytes.
pub(crate) const TAG_BYTES: usize = 16;

/// Length of a wrapped key with its nonce.
pub(crate) const SEALED_KEY_BYTES: usize = NONCE_BYTES + Key::BYTES + TAG_BYTES;

/// Length of digests and MACs.
pub(crate) const DIGEST_BYTES: usize = 32;

/// Fills bytes from the system's random generator.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), VaultError> {
    getrandom::fill(bytes).map_err(|error| {
        VaultError::System(format!("the system provides no random bytes: {error}"))
    })
}

pub(crate) fn random_key() -> Result<Key, VaultError> {
    let mut key = Key::zero();
    fill_random(key.expose_mut())?;
    Ok(key)
}

/// Encrypts `plain` with `context` as associated data. The result starts with the nonce.
pub(crate) fn seal(key: &Key, context: &[u8], plain: &[u8]) -> Result<Vec<u8>, VaultError> {
    let mut nonce = [0; NONCE_BYTES];
    fill_random(&mut nonce)?;
    let payload = Payload {
        msg: plain,
        aad: context,
    };
    let sealed = cipher(key)
        .encrypt(&XNonce::from(nonce), payload)
        .map_err(|_| VaultError::System("the value is too large to be encrypted".to_owned()))?;
    Ok([&nonce[..], &sealed].concat())
}

/// Decrypts the result of [`seal`]; `None` if the key, the context or the bytes differ.
pub(crate) fn open(key: &Key, context: &[u8], sealed: &[u8]) -> Option<SecretValue> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    let payload = Payload {
        msg: sealed,
        aad: context,
    };
    let plain = cipher(key).decrypt(&XNonce::from(*nonce), payload).ok()?;
    Some(SecretValue::new(plain))
}

pub(crate) fn open_key(key: &Key, context: &[u8], sealed: &[u8]) -> Option<Key> {
    Key::from_slice(open(key, context, sealed)?.expose())
}

fn cipher(key: &Key) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&(*key.expose()).into())
}

/// Derives a key for one purpose.
pub(crate) fn derive(source: &Key, salt: &[u8], purpose: &str) -> Result<Key, VaultError> {
    let mut derived = Key::zero();
    Hkdf::<Sha256>::new(Some(salt), source.expose())
        .expand(purpose.as_bytes(), derived.expose_mut())
        .map_err(|error| VaultError::System(format!("a key cannot be derived: {error}")))?;
    Ok(derived)
}

pub(crate) fn digest(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    Sha256::digest(bytes).into()
}

/// Computes the MAC of `bytes`.
pub(crate) fn authenticate(key: &Key, bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    code(key, bytes).finalize().into_bytes().into()
}

/// Verifies the MAC of `bytes` in constant time.
pub(crate) fn is_authentic(key: &Key, bytes: &[u8], expected: &[u8; DIGEST_BYTES]) -> bool {
    code(key, bytes).verify_slice(expected).is_ok()
}

fn code(key: &Key, bytes: &[u8]) -> Hmac<Sha256> {
    let mut code = <Hmac<Sha256> as KeyInit>::new(&block(key));
    code.update(bytes);
    code
}

/// Pads the key with zeros to the block size of the hash.
fn block(key: &Key) -> hmac::digest::Key<Hmac<Sha256>> {
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..Key::BYTES].copy_from_slice(key.expose());
    block
}
