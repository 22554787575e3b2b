//! Keys that lango creates and uses inside the vault. Nothing returns one to a model, and a stored secret of another kind is
//! never used as a key.

use super::{Audit, Existing, NewSecret, OpenVault, RowChanges};
use crate::audit::AuditAction;
use crate::cipher;
use crate::error::VaultError;
use crate::head::Head;
use crate::key::Key;
use crate::manifest::{Entry, MOST_PUBLIC_ID_BYTES, SecretKind};
use lango_core::{RecordSelection, Text, VaultRecord};
use lango_secrets::{SecretName, SecretValue};

impl OpenVault {
    /// Creates a random key. Fails if there is a secret of this name, or if the kind is no kind of key.
    pub async fn create_key(
        &self,
        name: &SecretName,
        kind: SecretKind,
    ) -> Result<Entry, VaultError> {
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
        self.insert(name, &new, Existing::Refused).await
    }

    /// Stores the public identifier of a key in clear, unless there is one. Older versions stored none.
    pub async fn add_public_id(&self, name: &SecretName, id: Text) -> Result<(), VaultError> {
        if id.is_empty() || id.len() > MOST_PUBLIC_ID_BYTES {
            return Err(VaultError::InvalidValue {
                detail: format!("a public identifier has 1 to {MOST_PUBLIC_ID_BYTES} bytes"),
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
            let audit = Audit::of(AuditAction::PublicIdAdded, name.text());
            Ok((RowChanges::default(), audit, ()))
        };
        self.change(RecordSelection::None, change).await
    }

    /// Returns a key of this kind for one operation, after recording the use in the audit log.
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

/// Generates 32 random bytes that are also a valid secret key of secp256k1: the values near the ends of the range are
/// drawn anew.
fn random_scalar() -> Result<Key, VaultError> {
    loop {
        let key = cipher::random_key()?;
        let start = &key.expose()[..8];
        if start != [0; 8] && start != [0xff; 8] {
            return Ok(key);
        }
    }
}
