//! The manifest: the records of a vault, each with its version and the digest of its envelope. The head authenticates
//! it, so lango detects records that were swapped, rolled back, added or deleted outside lango.

use crate::cipher::DIGEST_BYTES;
use crate::encoding::{Reader, Writer};
use crate::error::VaultError;
use crate::name::SecretName;
use lango_core::Timestamp;
use std::fmt;

/// Maximum number of secrets. The manifest lists all of them and is rewritten with every change.
pub const MOST_SECRETS: usize = 500;

/// The kind of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretKind {
    /// Any text, such as a password.
    #[default]
    Text,
    /// A key of a service, such as that of a model provider.
    ApiKey,
    /// A token that callers or lango itself send.
    Token,
    /// The key of a wallet that pays.
    PaymentKey,
}

impl SecretKind {
    /// All kinds, with the byte that stands for each.
    const ALL: [(Self, u8, &'static str); 4] = [
        (Self::Text, 0, "text"),
        (Self::ApiKey, 1, "api-key"),
        (Self::Token, 2, "token"),
        (Self::PaymentKey, 16, "payment-key"),
    ];

    fn byte(self) -> u8 {
        let row = Self::ALL.iter().find(|(kind, ..)| *kind == self);
        row.map_or(0, |(_, byte, _)| *byte)
    }

    fn of_byte(byte: u8) -> Option<Self> {
        let row = Self::ALL.iter().find(|(_, own, _)| *own == byte);
        row.map(|(kind, ..)| *kind)
    }
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = Self::ALL.iter().find(|(kind, ..)| kind == self);
        f.write_str(row.map_or("text", |(_, _, name)| name))
    }
}

/// A record of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of the secret.
    pub name: SecretName,
    /// The version of its value, from 1.
    pub version: u64,
    /// Its kind.
    pub kind: SecretKind,
    /// When its first value was stored.
    pub created: Timestamp,
    /// When this value was stored.
    pub updated: Timestamp,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// The digest of its bindings; zeros without bindings.
    pub(crate) bindings: [u8; DIGEST_BYTES],
    /// The digest of its envelope.
    pub(crate) digest: [u8; DIGEST_BYTES],
}

impl Entry {
    /// Returns whether it has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }

    /// Writes the identity of the record: everything but the digest of its envelope.
    pub(crate) fn write_identity(&self, to: &mut Writer) {
        to.text(self.name.as_str());
        to.long(self.version);
        to.byte(self.kind.byte());
        to.long(self.created.0);
        to.long(self.updated.0);
        to.optional_long(self.expires.map(|time| time.0));
        to.array(&self.bindings);
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        self.write_identity(to);
        to.array(&self.digest);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, VaultError> {
        let unwritten = |_| VaultError::changed("it has a name that lango never writes");
        Ok(Self {
            name: SecretName::new(from.text()?).map_err(unwritten)?,
            version: from.long()?,
            kind: SecretKind::of_byte(from.byte()?).ok_or_else(|| {
                VaultError::changed("it has a kind of secret that lango never writes")
            })?,
            created: Timestamp(from.long()?),
            updated: Timestamp(from.long()?),
            expires: from.optional_long()?.map(Timestamp),
            bindings: from.array()?,
            digest: from.array()?,
        })
    }
}
