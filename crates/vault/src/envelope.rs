//! The encrypted form of one secret.
//!
//! An envelope consists of a format byte, the version, the record key wrapped by a key derived from the master key, and
//! the value encrypted by the record key. Both encryptions also authenticate the record's identity: owner, name,
//! version, kind, times and bindings. So an envelope can be opened only as its own record. Replacing the master key
//! changes only the wrapped key.

use crate::cipher::{self, DIGEST_BYTES, NONCE_BYTES, SEALED_KEY_BYTES, TAG_BYTES};
use crate::encoding::{Reader, Writer};
use crate::error::VaultError;
use crate::key::Key;
use crate::manifest::SecretEntry;
use lango_core::UserId;
use lango_secrets::SecretValue;

/// The current format.
const FORMAT: u8 = 1;

/// Number of bytes before the wrapped key.
const PREFIX_BYTES: usize = 1 + size_of::<u64>();

/// The identity of a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VaultIdentity {
    /// A random id.
    pub id: [u8; 16],
    pub owner: UserId,
}

/// Returns the associated data of both encryptions: everything that a reader trusts about a record.
fn context(purpose: &str, vault: &VaultIdentity, entry: &SecretEntry) -> Vec<u8> {
    let mut context = Writer::labelled(purpose);
    context.byte(FORMAT);
    context.array(&vault.id);
    context.text(vault.owner.as_str());
    entry.write_identity(&mut context);
    context.into_bytes()
}

fn key_context(vault: &VaultIdentity, entry: &SecretEntry) -> Vec<u8> {
    context("lango vault record key", vault, entry)
}

fn value_context(vault: &VaultIdentity, entry: &SecretEntry) -> Vec<u8> {
    context("lango vault record value", vault, entry)
}

/// Encrypts a value with a new random key.
pub(crate) fn seal(
    wrapping: &Key,
    vault: &VaultIdentity,
    entry: &SecretEntry,
    value: &SecretValue,
) -> Result<Vec<u8>, VaultError> {
    let key = cipher::random_key()?;
    let sealed_key = cipher::seal(wrapping, &key_context(vault, entry), key.expose())?;
    let sealed_value = cipher::seal(&key, &value_context(vault, entry), value.expose())?;
    Ok(join(entry.version, &sealed_key, &sealed_value))
}

/// Opens an envelope as the record that `entry` describes.
pub(crate) fn open(
    wrapping: &Key,
    vault: &VaultIdentity,
    entry: &SecretEntry,
    envelope: &[u8],
) -> Result<SecretValue, VaultError> {
    let (key, sealed_value) = open_key(wrapping, vault, entry, envelope)?;
    cipher::open(&key, &value_context(vault, entry), sealed_value).ok_or_else(|| changed(entry))
}

/// Re-wraps the record key; the encrypted value does not change.
pub(crate) fn rewrap(
    old: &Key,
    new: &Key,
    vault: &VaultIdentity,
    entry: &SecretEntry,
    envelope: &[u8],
) -> Result<Vec<u8>, VaultError> {
    let (key, sealed_value) = open_key(old, vault, entry, envelope)?;
    let sealed_key = cipher::seal(new, &key_context(vault, entry), key.expose())?;
    Ok(join(entry.version, &sealed_key, sealed_value))
}

fn open_key<'a>(
    wrapping: &Key,
    vault: &VaultIdentity,
    entry: &SecretEntry,
    envelope: &'a [u8],
) -> Result<(Key, &'a [u8]), VaultError> {
    check(entry, envelope)?;
    let mut reader = Reader::new(envelope);
    reader.take(PREFIX_BYTES)?;
    let sealed_key = reader.take(SEALED_KEY_BYTES)?;
    let sealed_value = &envelope[PREFIX_BYTES + SEALED_KEY_BYTES..];
    let key = cipher::open_key(wrapping, &key_context(vault, entry), sealed_key)
        .ok_or_else(|| changed(entry))?;
    Ok((key, sealed_value))
}

/// Fails if the envelope does not match the manifest. Needs no key, but proves nothing without an authenticated
/// manifest.
pub(crate) fn check(entry: &SecretEntry, envelope: &[u8]) -> Result<(), VaultError> {
    let digest: [u8; DIGEST_BYTES] = cipher::digest(envelope);
    let mut reader = Reader::new(envelope);
    let format = reader.byte().map_err(|_| changed(entry))?;
    let version = reader.long().map_err(|_| changed(entry))?;
    let min_length = PREFIX_BYTES + SEALED_KEY_BYTES + NONCE_BYTES + TAG_BYTES;
    if format == FORMAT && version < entry.version && envelope.len() >= min_length {
        return Err(VaultError::RolledBack {
            name: entry.name.to_string(),
            found: version,
            expected: entry.version,
            kind: entry.kind,
        });
    }
    let fits = format == FORMAT && version == entry.version && envelope.len() >= min_length;
    if fits && digest == entry.digest {
        Ok(())
    } else {
        Err(changed(entry))
    }
}

fn changed(entry: &SecretEntry) -> VaultError {
    VaultError::RecordChanged {
        name: entry.name.to_string(),
        kind: entry.kind,
    }
}

fn join(version: u64, sealed_key: &[u8], sealed_value: &[u8]) -> Vec<u8> {
    let mut envelope = Writer::default();
    envelope.byte(FORMAT);
    envelope.long(version);
    envelope.array(sealed_key);
    envelope.array(sealed_value);
    envelope.into_bytes()
}

#[cfg(test)]
mod tests;
