//! An unlocked vault. Every operation reads and authenticates the vault again, so it sees changes of other replicas and
//! refuses changes made outside lango.

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
use crate::manifest::{Entry, MOST_PUBLIC_ID_BYTES, MOST_SECRETS, SecretKind};
use crate::vault::{TRIES, Vault, pause};
use lango_core::{RecordSelection, Text, Timestamp, VaultChange, VaultChanged, VaultRecord};
use lango_secrets::{MOST_SECRET_BYTES, SecretName, SecretValue};
use std::sync::Arc;

/// A secret to be stored.
#[derive(Debug)]
pub struct NewSecret {
    /// Its value.
    pub value: SecretValue,
    /// Its kind; by default that of the previous value, or `Text` for a new secret.
    pub kind: Option<SecretKind>,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// The public identifier of a key, which everybody who can read the database sees.
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

/// An unlocked vault.
#[derive(Debug)]
pub struct OpenVault {
    vault: Vault,
    master: Key,
    keys: Arc<Keys>,
    /// The id of the method that unlocked it; `None` if its master key was known.
    unlocked_by: Option<u16>,
}

/// What happens to a secret that exists when another value is stored under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Replaced,
    Refused,
}

/// The changes of the rows besides the head.
#[derive(Default)]
struct RowChanges {
    put: Vec<VaultRecord>,
    remove: Vec<Text>,
}

/// The audit entry of a change.
struct Audit {
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

    /// Returns the same with the method that unlocked it.
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

    /// Returns the master key, for a cache.
    pub fn master(&self) -> &Key {
        &self.master
    }

    /// Lists the secrets without their values.
    pub async fn entries(&self) -> Result<Vec<Entry>, VaultError> {
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
            // What cannot be found is among the problems already.
            if let Ok(record) = Head::record(entry, &records) {
                let opened =
                    envelope::open(&self.keys.wrapping, &head.vault, entry, &record.envelope);
                problems.extend(opened.err());
            }
        }
        Ok(problems)
    }

    /// Returns the value of a secret. Fails if it has expired.
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

    /// Returns all values that are no keys, expired ones included, for masks. Leaves out records that cannot be opened.
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

    /// Stores a value and deletes the previous one. The bindings stay. Fails for keys.
    pub async fn set(&self, name: &SecretName, new: NewSecret) -> Result<Entry, VaultError> {
        refuse_key(name, &new)?;
        self.insert(name, &new, Existing::Replaced).await
    }

    /// Stores the value of a secret that does not exist yet.
    pub async fn add(&self, name: &SecretName, new: NewSecret) -> Result<Entry, VaultError> {
        refuse_key(name, &new)?;
        self.insert(name, &new, Existing::Refused).await
    }

    async fn insert(
        &self,
        name: &SecretName,
        new: &NewSecret,
        existing: Existing,
    ) -> Result<Entry, VaultError> {
        check_value(new, self.vault.clock().now())?;
        let change = |head: &mut Head, _: &[VaultRecord]| {
            let now = self.vault.clock().now();
            let old = head.entries.get(name);
            check_existing(old, existing)?;
            if let Some(old) = old {
                bind::check_value(name, &old.bindings, &new.value)?;
            }
            if old.is_none() && head.entries.len() >= MOST_SECRETS {
                let (most, things) = (MOST_SECRETS, "secrets");
                return Err(VaultError::Limit { most, things });
            }
            let action = match old {
                Some(_) => AuditAction::Replaced,
                None => AuditAction::Created,
            };
            let mut entry = Entry {
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
            Ok((rows, Audit::of(action, name.text()), entry))
        };
        self.change(RecordSelection::None, change).await
    }

    /// Deletes a secret.
    pub async fn remove(&self, name: &SecretName) -> Result<(), VaultError> {
        let change = |head: &mut Head, _: &[VaultRecord]| {
            head.entry(name)?;
            head.entries.remove(name);
            let rows = RowChanges {
                remove: vec![name.text()],
                ..RowChanges::default()
            };
            Ok((rows, Audit::of(AuditAction::Removed, name.text()), ()))
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
        edit: impl Fn(&mut Head, &[VaultRecord]) -> Result<(RowChanges, Audit, T), VaultError>,
    ) -> Result<T, VaultError> {
        self.change_as(&self.keys, records, edit).await
    }

    /// Edits the head, authenticates it with `keys`, and stores it. If another replica stored a newer head first,
    /// applies the edit to that one.
    async fn change_as<T>(
        &self,
        keys: &Keys,
        records: RecordSelection,
        edit: impl Fn(&mut Head, &[VaultRecord]) -> Result<(RowChanges, Audit, T), VaultError>,
    ) -> Result<T, VaultError> {
        for attempt in 0..TRIES {
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
            if self.vault.apply(change).await? == VaultChanged::Applied {
                return Ok(result);
            }
            pause(attempt).await?;
        }
        Err(VaultError::Contended)
    }
}

impl Audit {
    fn of(action: AuditAction, subject: Text) -> Self {
        let subject = Some(subject);
        Self { action, subject }
    }
}

fn check_existing(old: Option<&Entry>, existing: Existing) -> Result<(), VaultError> {
    match old {
        Some(key) if key.kind.is_key() => Err(is_key(key)),
        Some(old) if existing == Existing::Refused => Err(VaultError::NameTaken {
            name: old.name.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Keys are created at random; only the key of a wallet may come from elsewhere.
fn refuse_key(name: &SecretName, new: &NewSecret) -> Result<(), VaultError> {
    match new.kind {
        Some(kind) if kind.is_key() && kind != SecretKind::PaymentKey => Err(VaultError::IsKey {
            name: name.to_string(),
            kind,
        }),
        _ => Ok(()),
    }
}

fn is_key(entry: &Entry) -> VaultError {
    VaultError::IsKey {
        name: entry.name.to_string(),
        kind: entry.kind,
    }
}

fn check_value(new: &NewSecret, now: Timestamp) -> Result<(), VaultError> {
    let detail = if new.value.is_empty() {
        "the value is empty".to_owned()
    } else if new.value.len() > MOST_SECRET_BYTES {
        format!("the value is longer than {MOST_SECRET_BYTES} bytes")
    } else if new.expires.is_some_and(|expires| expires <= now) {
        "the secret would have expired already".to_owned()
    } else if new
        .public_id
        .as_ref()
        .is_some_and(|id| id.len() > MOST_PUBLIC_ID_BYTES)
    {
        format!("the public identifier is longer than {MOST_PUBLIC_ID_BYTES} bytes")
    } else {
        return Ok(());
    };
    Err(VaultError::InvalidValue { detail })
}
