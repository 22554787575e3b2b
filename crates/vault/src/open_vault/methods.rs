//! Changes the unlock methods of an unlocked vault, and replaces its master key.

use super::{AuditRecord, OpenVault, RowChanges};
use crate::audit::AuditAction;
use crate::cipher;
use crate::envelope;
use crate::error::VaultError;
use crate::head::{Head, Keys};
use crate::key::Key;
use crate::method::{UnlockMethod, UnlockSecret};
use crate::vault::run_blocking;
use lango_core::{RecordSelection, VaultRecord};

impl OpenVault {
    /// Returns the id of the method that unlocked the vault; `None` if it was opened with a master key.
    pub fn unlocked_by(&self) -> Option<u16> {
        self.unlocked_by
    }

    pub async fn methods(&self) -> Result<Vec<UnlockMethod>, VaultError> {
        Ok(self.read(RecordSelection::None).await?.0.methods)
    }

    /// Adds an unlock method and returns its id. The master key and the records do not change.
    pub async fn add_method(&self, secret: UnlockSecret) -> Result<u16, VaultError> {
        let (head, _) = self.read(RecordSelection::None).await?;
        let (vault, now) = (head.vault, self.vault.clock().now());
        let (master, kind) = (self.master.duplicate(), secret.kind());
        let created = run_blocking(move || UnlockMethod::new(now, &vault, &secret, &master));
        let method = created.await?;
        let change = |head: &mut Head, _: &[VaultRecord]| {
            let id = head.add_method(method.clone())?;
            let audit = AuditRecord::of(AuditAction::MethodAdded, format!("{id} ({kind})").into());
            Ok((RowChanges::default(), audit, id))
        };
        self.change(RecordSelection::None, change).await
    }

    /// Removes an unlock method. Fails for the last one.
    pub async fn remove_method(&self, id: u16) -> Result<(), VaultError> {
        let change = |head: &mut Head, _: &[VaultRecord]| {
            let at = head.methods.iter().position(|method| method.id == id);
            let method = head
                .methods
                .remove(at.ok_or(VaultError::NoSuchMethod { id })?);
            if head.methods.is_empty() {
                return Err(VaultError::LastMethod);
            }
            let subject = format!("{id} ({})", method.kind()).into();
            let audit = AuditRecord::of(AuditAction::MethodRemoved, subject);
            Ok((RowChanges::default(), audit, ()))
        };
        self.change(RecordSelection::None, change).await
    }

    /// Replaces the master key: re-wraps the keys of all records, and wraps the new master key for every method. Does
    /// not change the encrypted values. Needs the secret of every method except those in `without`, which are removed.
    pub async fn rotate_master(
        &self,
        secrets: Vec<UnlockSecret>,
        without: &[u16],
    ) -> Result<Self, VaultError> {
        let (head, _) = self.read(RecordSelection::None).await?;
        let old = head.methods.clone();
        let vault = head.vault;
        let is_known = |id: &u16| old.iter().any(|method| method.id == *id);
        if let Some(id) = without.iter().copied().find(|id| !is_known(id)) {
            return Err(VaultError::NoSuchMethod { id });
        }
        let mut methods = head.methods;
        methods.retain(|method| !without.contains(&method.id));
        if methods.is_empty() {
            return Err(VaultError::LastMethod);
        }
        let (identity, left_out) = (vault.clone(), without.to_vec());
        let sealing = run_blocking(move || {
            let master = cipher::random_key()?;
            reseal_all(&mut methods, &identity, &secrets, &master, left_out)?;
            Ok((master, methods))
        });
        let (master, methods) = sealing.await?;
        let keys = Keys::derive(&master, vault.id)?;
        let change = |head: &mut Head, records: &[VaultRecord]| {
            if head.methods != old {
                return Err(VaultError::Contended);
            }
            head.methods = methods.clone();
            let mut put = Vec::with_capacity(head.entries.len());
            for entry in head.entries.values_mut() {
                let record = Head::record(entry, records)?;
                let (from, to) = (&self.keys.wrapping, &keys.wrapping);
                let envelope = envelope::rewrap(from, to, &head.vault, entry, &record.envelope)?;
                entry.digest = cipher::digest(&envelope);
                let name = entry.name.text();
                put.push(VaultRecord { name, envelope });
            }
            let rows = RowChanges {
                put,
                ..RowChanges::default()
            };
            let audit = AuditRecord {
                action: AuditAction::MasterRotated,
                subject: None,
            };
            Ok((rows, audit, ()))
        };
        self.change_as(&keys, RecordSelection::All, change).await?;
        Ok(Self::new(self.vault.clone(), master, keys))
    }
}

/// Wraps another master key for all methods. If there are methods that none of the secrets unlocks, fails with the list
/// of those methods and the value of `without` that would succeed.
fn reseal_all(
    methods: &mut [UnlockMethod],
    vault: &envelope::VaultIdentity,
    secrets: &[UnlockSecret],
    master: &Key,
    mut without: Vec<u16>,
) -> Result<(), VaultError> {
    let mut missing = Vec::new();
    for method in methods.iter_mut() {
        if !reseal(method, vault, secrets, master)? {
            missing.push(method.described_id());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    without.extend(missing.iter().map(|method| method.id));
    if missing.len() == methods.len() {
        without.clear();
    }
    without.sort_unstable();
    without.dedup();
    Err(VaultError::MethodsNotGiven { missing, without })
}

/// Wraps another master key for a method. Returns whether one of the secrets unlocks the method.
fn reseal(
    method: &mut UnlockMethod,
    vault: &envelope::VaultIdentity,
    secrets: &[UnlockSecret],
    master: &Key,
) -> Result<bool, VaultError> {
    for secret in secrets {
        if method.unlock(vault, secret)?.is_some() {
            method.reseal(vault, secret, master)?;
            return Ok(true);
        }
    }
    Ok(false)
}
