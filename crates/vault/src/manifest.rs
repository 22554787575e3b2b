//! The manifest: which records a vault has, each with its version and the digest of its envelope. The head authenticates it, so
//! that a record that is swapped, rolled back, added or deleted outside lango is noticed.

use crate::cipher::DIGEST_BYTES;
use crate::encoding::{Reader, Writer};
use crate::error::VaultError;
use crate::name::SecretName;
use lango_core::Timestamp;
use std::fmt;

/// How many secrets a vault may have. All of them are in the manifest, which is written with every change.
pub const MOST_SECRETS: usize = 500;

/// What a secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretKind {
    /// Any text, such as a password.
    #[default]
    Text,
    /// A key of a service, such as that of a model provider.
    ApiKey,
    /// A token that callers or lango itself present.
    Token,
}

impl SecretKind {
    /// All kinds, with the byte that stands for each.
    const ALL: [(Self, u8, &'static str); 3] = [
        (Self::Text, 0, "text"),
        (Self::ApiKey, 1, "api-key"),
        (Self::Token, 2, "token"),
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
    /// Counts its values, from 1.
    pub version: u64,
    /// What it is for.
    pub kind: SecretKind,
    /// When its first value was stored.
    pub created: Timestamp,
    /// When this value was stored.
    pub updated: Timestamp,
    /// From when on it is refused.
    pub expires: Option<Timestamp>,
    /// The digest of what the secret is bound to; zeros while it is bound to nothing.
    pub(crate) bindings: [u8; DIGEST_BYTES],
    /// The digest of its envelope.
    pub(crate) digest: [u8; DIGEST_BYTES],
}

impl Entry {
    /// Whether its time is over.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }

    /// Writes what identifies the record: all but the digest of its envelope, which the envelope cannot contain.
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
