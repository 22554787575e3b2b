//! An unlocked vault. Every operation reads and authenticates the vault again, so it sees changes by other replicas and
//! rejects changes made outside lango.

mod bind;
mod keys;
mod methods;

use crate::audit::AuditAction;
use crate::cipher;
use crate::cipher::DIGEST_BYTES;
use crate::envelope;
use crate::error::VaultError;
use crate::head::{Head, Keys};
use crate::key::Key;
use crate::manifest::{MAX_PUBLIC_ID_BYTES, MAX_SECRETS, SecretEntry, SecretKind};
use crate::vault::{MAX_ATTEMPTS, Vault, pause};
use lango_core::{RecordSelection, Text, Timestamp, VaultChange, VaultChangeOutcome, VaultRecord};
use lango_secrets::{MAX_SECRET_BYTES, SecretName, SecretValue};
use std::sync::Arc;

/// A secret to be stored.
#[derive(Debug)]
pub struct NewSecret {
    pub value: SecretValue,
    /// By default the kind of the previous value, or `Text` for a new secret.
    pub kind: Option<SecretKind>,
    pub expires: Option<Timestamp>,
    /// The public identifier of a key. It is not encrypted, so anyone who can read the database sees it.
    pub public_id: Option<Text>,
}

impl NewSecret {
    /// Creates a secret that does not expire.
    pub fn new(value: SecretValue) -> Self {
        Self {
            value,
            kind: None,
            expires: None,
            public_id: None,
        }
    }
}

#[derive(Debug)]
pub struct OpenVault {
    vault: Vault,
    master: Key,
    keys: Arc<Keys>,
    /// The id of the method that unlocked the vault; `None` if it was opened with a master key.
    unlocked_by: Option<u16>,
}

/// What to do if a secret of the same name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConflictPolicy {
    Replace,
    Refuse,
}

/// The changes to rows other than the head.
#[derive(Default)]
struct RowChanges {
    put: Vec<VaultRecord>,
    remove: Vec<Text>,
}

/// The audit entry of a change.
struct AuditRecord {
    action: AuditAction,
    subject: Option<Text>,
}

impl OpenVault {
    pub(crate) fn new(vault: Vault, master: Key, keys: Keys) -> Self {
        Self {
            vault,
            master,
            keys: Arc::new(keys),
            unlocked_by: None,
        }
    }

    /// Sets the method that unlocked the vault.
    pub(crate) fn with_method(self, id: u16) -> Self {
        Self {
            unlocked_by: Some(id),
            ..self
        }
    }

    /// Returns a handle to this vault that logs its uses under another actor.
    pub fn acting_as(&self, actor: Text) -> Self {
        Self {
            vault: self.vault.acting_as(actor),
            master: self.master.duplicate(),
            keys: Arc::clone(&self.keys),
            unlocked_by: self.unlocked_by,
        }
    }

    /// Returns the master key, so that it can be cached.
    pub fn master(&self) -> &Key {
        &self.master
    }

    /// Lists the secrets without their values.
    pub async fn entries(&self) -> Result<Vec<SecretEntry>, VaultError> {
        let (head, _) = self.read(RecordSelection::None).await?;
        Ok(head.entries.into_values().collect())
    }

    /// Opens every record and returns the problems.
    pub async fn check(&self) -> Result<Vec<VaultError>, VaultError> {
        let sealed = self.vault.read(RecordSelection::All).await?;
        let sealed = sealed.ok_or(VaultError::Absent)?;
        let mut problems = sealed.record_problems();
        let (head, records) = sealed.verify(&self.keys)?;
        for entry in head.entries.values() {
            // A missing or changed record is already among the problems.
            if let Ok(record) = Head::record(entry, &records) {
                let opened =
                    envelope::open(&self.keys.wrapping, &head.vault, entry, &record.envelope);
                problems.extend(opened.err());
            }
        }
        Ok(problems)
    }

    /// Returns the value of a secret. Fails if the secret has expired.
    pub async fn value(&self, name: &SecretName) -> Result<SecretValue, VaultError> {
        let (head, records) = self.read(RecordSelection::One(name.text())).await?;
        self.value_in(&head, &records, name)
    }

    fn value_in(
        &self,
        head: &Head,
        records: &[VaultRecord],
        name: &SecretName,
    ) -> Result<SecretValue, VaultError> {
        let entry = head.entry(name)?;
        let record = Head::record(entry, records)?;
        if let Some(at) = entry
            .expires
            .filter(|_| entry.is_expired(self.vault.clock().now()))
        {
            let name = name.to_string();
            return Err(VaultError::Expired { name, at });
        }
        envelope::open(&self.keys.wrapping, &head.vault, entry, &record.envelope)
    }

    /// Returns a value that may be sent to a service. Fails for keys, which stay inside lango.
    pub async fn sendable_value(&self, name: &SecretName) -> Result<SecretValue, VaultError> {
        let (head, records) = self.read(RecordSelection::One(name.text())).await?;
        let entry = head.entry(name)?;
        if entry.kind.is_key() {
            return Err(is_key(entry));
        }
        self.value_in(&head, &records, name)
    }

    /// Returns all values except keys, for masking. Includes expired values; skips records that cannot be opened.
    pub async fn values_to_mask(&self) -> Result<Vec<(SecretName, SecretValue)>, VaultError> {
        let (head, records) = self.read(RecordSelection::All).await?;
        let entries = head.entries.values().filter(|entry| !entry.kind.is_key());
        let values = entries.filter_map(|entry| {
            let record = Head::record(entry, &records).ok()?;
            let value =
                envelope::open(&self.keys.wrapping, &head.vault, entry, &record.envelope).ok()?;
            Some((entry.name.clone(), value))
        });
        Ok(values.collect())
    }

    /// Records in the audit log that the value of a secret was used.
    pub async fn log_value(&self, name: &SecretName) -> Result<(), VaultError> {
        self.vault.log(AuditAction::Used, name.text()).await
    }

    /// Returns the value of a secret, after recording its use in the audit log.
    pub async fn use_value(&self, name: &SecretName) -> Result<SecretValue, VaultError> {
        let value = self.value(name).await?;
        self.log_value(name).await?;
        Ok(value)
    }

    /// Stores a value, replacing the previous one. Keeps the bindings. Fails for keys.
    pub async fn set(&self, name: &SecretName, new: NewSecret) -> Result<SecretEntry, VaultError> {
        refuse_key(name, &new)?;
        self.insert(name, &new, ConflictPolicy::Replace).await
    }

    /// Stores a new secret. Fails for keys, and if a secret of this name already exists.
    pub async fn add(&self, name: &SecretName, new: NewSecret) -> Result<SecretEntry, VaultError> {
        refuse_key(name, &new)?;
        self.insert(name, &new, ConflictPolicy::Refuse).await
    }

    async fn insert(
        &self,
        name: &SecretName,
        new: &NewSecret,
        policy: ConflictPolicy,
    ) -> Result<SecretEntry, VaultError> {
        check_value(new, self.vault.clock().now())?;
        let change = |head: &mut Head, _: &[VaultRecord]| {
            let now = self.vault.clock().now();
            let old = head.entries.get(name);
            check_existing(old, policy)?;
            if let Some(old) = old {
                bind::check_value(name, &old.bindings, &new.value)?;
            }
            if old.is_none() && head.entries.len() >= MAX_SECRETS {
                let (limit, things) = (MAX_SECRETS, "secrets");
                return Err(VaultError::Limit { limit, things });
            }
            let action = match old {
                Some(_) => AuditAction::Replaced,
                None => AuditAction::Created,
            };
            let mut entry = SecretEntry {
                name: name.clone(),
                version: old.map_or(0, |old| old.version) + 1,
                kind: new.kind.or(old.map(|old| old.kind)).unwrap_or_default(),
                created: old.map_or(now, |old| old.created),
                updated: now,
                expires: new.expires,
                bindings: old.map_or_else(Vec::new, |old| old.bindings.clone()),
                public_id: new.public_id.clone(),
                digest: [0; DIGEST_BYTES],
            };
            let envelope = envelope::seal(&self.keys.wrapping, &head.vault, &entry, &new.value)?;
            entry.digest = cipher::digest(&envelope);
            head.entries.insert(name.clone(), entry.clone());
            let rows = RowChanges {
                put: vec![VaultRecord {
                    name: name.text(),
                    envelope,
                }],
                ..RowChanges::default()
            };
            Ok((rows, AuditRecord::of(action, name.text()), entry))
        };
        self.change(RecordSelection::None, change).await
    }

    pub async fn remove(&self, name: &SecretName) -> Result<(), VaultError> {
        let change = |head: &mut Head, _: &[VaultRecord]| {
            head.entry(name)?;
            head.entries.remove(name);
            let rows = RowChanges {
                remove: vec![name.text()],
                ..RowChanges::default()
            };
            Ok((rows, AuditRecord::of(AuditAction::Removed, name.text()), ()))
        };
        self.change(RecordSelection::None, change).await
    }

    async fn read(&self, records: RecordSelection) -> Result<(Head, Vec<VaultRecord>), VaultError> {
        let sealed = self.vault.read(records).await?;
        sealed.ok_or(VaultError::Absent)?.verify(&self.keys)
    }

    async fn change<T>(
        &self,
        records: RecordSelection,
        edit: impl Fn(&mut Head, &[VaultRecord]) -> Result<(RowChanges, AuditRecord, T), VaultError>,
    ) -> Result<T, VaultError> {
        self.change_as(&self.keys, records, edit).await
    }

    /// Edits the head, authenticates it with `keys`, and stores it. If another replica has stored a newer head in the
    /// meantime, applies the edit to that one.
    async fn change_as<T>(
        &self,
        keys: &Keys,
        records: RecordSelection,
        edit: impl Fn(&mut Head, &[VaultRecord]) -> Result<(RowChanges, AuditRecord, T), VaultError>,
    ) -> Result<T, VaultError> {
        for attempt in 0..MAX_ATTEMPTS {
            let (mut head, found) = self.read(records.clone()).await?;
            let expected = head.revision;
            head.revision += 1;
            let (rows, audit, result) = edit(&mut head, &found)?;
            let change = VaultChange {
                expected: Some(expected),
                revision: head.revision,
                head: Some(head.encode(keys)),
                put: rows.put,
                remove: rows.remove,
                event: self.vault.event(audit.action, audit.subject),
            };
            if self.vault.apply(change).await? == VaultChangeOutcome::Applied {
                return Ok(result);
            }
            pause(attempt).await?;
        }
        Err(VaultError::Contended)
    }
}

impl AuditRecord {
    fn of(action: AuditAction, subject: Text) -> Self {
        let subject = Some(subject);
        Self { action, subject }
    }
}

fn check_existing(old: Option<&SecretEntry>, policy: ConflictPolicy) -> Result<(), VaultError> {
    match old {
        Some(key) if key.kind.is_key() => Err(is_key(key)),
        Some(old) if policy == ConflictPolicy::Refuse => Err(VaultError::NameTaken {
            name: old.name.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Refuses a new secret that is a key. lango generates keys itself; only the key of a wallet may be imported.
fn refuse_key(name: &SecretName, new: &NewSecret) -> Result<(), VaultError> {
    match new.kind {
        Some(kind) if kind.is_key() && kind != SecretKind::PaymentKey => Err(VaultError::IsKey {
            name: name.to_string(),
            kind,
        }),
        _ => Ok(()),
    }
}

fn is_key(entry: &SecretEntry) -> VaultError {
    VaultError::IsKey {
        name: entry.name.to_string(),
        kind: entry.kind,
    }
}

fn check_value(new: &NewSecret, now: Timestamp) -> Result<(), VaultError> {
    let detail = if new.value.is_empty() {
        "the value is empty".to_owned()
    } else if new.value.len() > MAX_SECRET_BYTES {
        format!("the value is longer than {MAX_SECRET_BYTES} bytes")
    } else if new.expires.is_some_and(|expires| expires <= now) {
        "the expiry is in the past".to_owned()
    } else if new
        .public_id
        .as_ref()
        .is_some_and(|id| id.len() > MAX_PUBLIC_ID_BYTES)
    {
        format!("the public identifier is longer than {MAX_PUBLIC_ID_BYTES} bytes")
    } else {
        return Ok(());
    };
    Err(VaultError::InvalidValue { detail })
}
