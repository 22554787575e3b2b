//! The manifest lists the records of a vault, each with its version and the digest of its envelope. The head
//! authenticates it, so lango detects records that were swapped, rolled back, added or deleted outside lango.

use crate::bindings;
use crate::cipher::DIGEST_BYTES;
use crate::encoding::{Reader, Writer};
use crate::error::VaultError;
use lango_core::{Text, Timestamp};
use lango_secrets::{Binding, SecretName};
use std::fmt;

/// Maximum number of secrets. The manifest lists all of them and is rewritten with every change.
pub const MAX_SECRETS: usize = 500;

/// Maximum length of the public identifier of a key in bytes.
pub(crate) const MAX_PUBLIC_ID_BYTES: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretKind {
    /// Any text, such as a password.
    #[default]
    Text,
    /// The key of a service, such as a model provider.
    ApiKey,
    /// A token that lango or its callers send.
    Token,
    /// A key for encryption.
    SymmetricKey,
    /// A key for message authentication codes.
    HmacKey,
    /// A key for Ed25519 signatures.
    Ed25519Key,
    /// A key for secp256k1 signatures.
    Secp256k1Key,
    /// The key of a payment wallet.
    PaymentKey,
}

impl SecretKind {
    /// All kinds, each with its encoding and its name.
    const ALL: [(Self, u8, &'static str); 8] = [
        (Self::Text, 0, "text"),
        (Self::ApiKey, 1, "api-key"),
        (Self::Token, 2, "token"),
        (Self::SymmetricKey, 3, "symmetric-key"),
        (Self::HmacKey, 4, "hmac-key"),
        (Self::Ed25519Key, 5, "ed25519-key"),
        (Self::Secp256k1Key, 6, "secp256k1-key"),
        (Self::PaymentKey, 7, "payment-key"),
    ];

    /// Returns whether the kind is a key that is used only inside lango. Such a key cannot be bound or replaced by
    /// another value.
    pub fn is_key(self) -> bool {
        match self {
            Self::Text | Self::ApiKey | Self::Token => false,
            Self::SymmetricKey
            | Self::HmacKey
            | Self::Ed25519Key
            | Self::Secp256k1Key
            | Self::PaymentKey => true,
        }
    }

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

/// The entry of a secret in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretEntry {
    pub name: SecretName,
    /// The version of the value, starting at 1.
    pub version: u64,
    pub kind: SecretKind,
    /// When the first value was stored.
    pub created: Timestamp,
    /// When the current value was stored.
    pub updated: Timestamp,
    pub expires: Option<Timestamp>,
    /// Where the value may go, in the order in which the user added the bindings.
    pub bindings: Vec<Binding>,
    /// The public identifier of a key, such as the address of a wallet. It is not encrypted.
    pub public_id: Option<Text>,
    /// The digest of the envelope.
    pub(crate) digest: [u8; DIGEST_BYTES],
}

impl SecretEntry {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }

    /// Writes the identity of the record: all fields except the public identifier and the digest of the envelope. The
    /// bindings are represented by their digest.
    pub(crate) fn write_identity(&self, to: &mut Writer) {
        to.text(self.name.as_str());
        to.long(self.version);
        to.byte(self.kind.byte());
        to.long(self.created.0);
        to.long(self.updated.0);
        to.optional_long(self.expires.map(|time| time.0));
        to.array(&bindings::digest(&self.bindings));
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        self.write_identity(to);
        to.array(&self.digest);
        bindings::write(&self.bindings, to);
        to.text(self.public_id.as_deref().unwrap_or_default());
    }

    /// Reads an entry from a head of this format. Format 1 has no bindings; formats 1 and 2 have no public identifiers.
    pub(crate) fn read(from: &mut Reader<'_>, format: u8) -> Result<Self, VaultError> {
        let invalid = |_| VaultError::changed("it has a name that lango never writes");
        let name = SecretName::new(from.text()?).map_err(invalid)?;
        let version = from.long()?;
        let kind = SecretKind::of_byte(from.byte()?).ok_or_else(|| {
            VaultError::changed("it has a kind of secret that lango never writes")
        })?;
        let created = Timestamp(from.long()?);
        let updated = Timestamp(from.long()?);
        let expires = from.optional_long()?.map(Timestamp);
        let bindings_digest: [u8; DIGEST_BYTES] = from.array()?;
        let digest = from.array()?;
        let bindings = match format {
            1 => Vec::new(),
            _ => bindings::read(from)?,
        };
        let public_id = match format {
            1 | 2 => "",
            _ => from.text()?,
        };
        if public_id.len() > MAX_PUBLIC_ID_BYTES {
            return Err(VaultError::changed(
                "it has a public identifier that lango never writes",
            ));
        }
        if bindings::digest(&bindings) != bindings_digest {
            return Err(VaultError::changed(
                "it has bindings that lango never writes",
            ));
        }
        Ok(Self {
            name,
            version,
            kind,
            created,
            updated,
            expires,
            bindings,
            public_id: (!public_id.is_empty()).then(|| public_id.into()),
            digest,
        })
    }
}
