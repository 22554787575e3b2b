//! Keys that lango creates and uses inside the vault. A key is never returned to a model, and a secret of another kind
//! is never used as a key.

use super::{AuditRecord, ConflictPolicy, NewSecret, OpenVault, RowChanges};
use crate::audit::AuditAction;
use crate::cipher;
use crate::error::VaultError;
use crate::head::Head;
use crate::key::Key;
use crate::manifest::{MAX_PUBLIC_ID_BYTES, SecretEntry, SecretKind};
use lango_core::{RecordSelection, Text, VaultRecord};
use lango_secrets::{SecretName, SecretValue};

impl OpenVault {
    /// Creates a random key. Fails if a secret of this name exists, or if keys of this kind cannot be generated.
    pub async fn create_key(
        &self,
        name: &SecretName,
        kind: SecretKind,
    ) -> Result<SecretEntry, VaultError> {
        let (found, needed) = (kind, SecretKind::SymmetricKey);
        if !kind.is_key() || kind == SecretKind::PaymentKey {
            let name = name.to_string();
            return Err(VaultError::WrongKind {
                name,
                found,
                needed,
            });
        }
        let new = NewSecret {
            kind: Some(kind),
            ..NewSecret::new(SecretValue::new(*random_scalar()?.expose()))
        };
        self.insert(name, &new, ConflictPolicy::Refuse).await
    }

    /// Stores the public identifier of a key, unless the key already has one. Keys stored by older versions have none.
    pub async fn add_public_id(&self, name: &SecretName, id: Text) -> Result<(), VaultError> {
        if id.is_empty() || id.len() > MAX_PUBLIC_ID_BYTES {
            return Err(VaultError::InvalidValue {
                detail: format!("a public identifier has 1 to {MAX_PUBLIC_ID_BYTES} bytes"),
            });
        }
        let change = |head: &mut Head, _: &[VaultRecord]| {
            let entry = head.entries.get_mut(name);
            let entry = entry.ok_or_else(|| VaultError::NotFound {
                name: name.to_string(),
            })?;
            if entry.public_id.is_none() {
                entry.public_id = Some(Text::clone(&id));
            }
            let audit = AuditRecord::of(AuditAction::PublicIdAdded, name.text());
            Ok((RowChanges::default(), audit, ()))
        };
        self.change(RecordSelection::None, change).await
    }

    /// Returns a key for one operation, after recording the use in the audit log. Fails if the secret is of another
    /// kind.
    pub async fn key(
        &self,
        name: &SecretName,
        kind: SecretKind,
        operation: &str,
    ) -> Result<Key, VaultError> {
        let (head, records) = self.read(RecordSelection::One(name.text())).await?;
        let entry = head.entry(name)?;
        if entry.kind != kind {
            return Err(VaultError::WrongKind {
                name: name.to_string(),
                found: entry.kind,
                needed: kind,
            });
        }
        let value = self.value_in(&head, &records, name)?;
        let key = Key::from_slice(value.expose());
        let key = key.ok_or_else(|| VaultError::changed("it has a key of a wrong length"))?;
        let subject = Text::from(format!("{name} ({operation})"));
        self.vault.log(AuditAction::Used, subject).await?;
        Ok(key)
    }
}

/// Generates 32 random bytes that are also a valid secp256k1 secret key. Values near the ends of the range, which may
/// be invalid, are rejected.
fn random_scalar() -> Result<Key, VaultError> {
    loop {
        let key = cipher::random_key()?;
        let start = &key.expose()[..8];
        if start != [0; 8] && start != [0xff; 8] {
            return Ok(key);
        }
    }
}
