//! The store of users' vaults. A store sees only opaque bytes; the vault crate decrypts and authenticates them.

use crate::{BoxFuture, StoreError, Text, Timestamp, UserId};

/// The encrypted record of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultRecord {
    /// The name of the secret, unique in its vault.
    pub name: Text,
    pub envelope: Vec<u8>,
}

/// A consistent snapshot of a vault: the head and the records of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultSnapshot {
    /// Increases with every change.
    pub revision: u64,
    /// The encoded unlock methods and manifest.
    pub head: Vec<u8>,
    /// The selected records, by name.
    pub records: Vec<VaultRecord>,
}

/// Selects the records of a vault to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordSelection {
    /// No records, only the head.
    None,
    /// The record with this name, if it exists.
    One(Text),
    All,
}

/// An atomic change of a vault that applies only to one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultChange {
    /// The expected revision; `None` if the user must have neither a vault nor records.
    pub expected: Option<u64>,
    /// The new revision, greater than all earlier ones.
    pub revision: u64,
    /// The new head; `None` deletes the vault with all its records. With the expected revision 0, `None` deletes records
    /// that are stored without a head.
    pub head: Option<Vec<u8>>,
    /// Records to add or replace.
    pub put: Vec<VaultRecord>,
    /// Names of records to delete.
    pub remove: Vec<Text>,
    /// The entry to append to the audit log.
    pub event: VaultEvent,
}

/// The result of applying a [`VaultChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultChangeOutcome {
    Applied,
    /// The vault's revision differs from the expected one; nothing was changed.
    Outdated,
}

/// An entry of a vault's audit log. It never contains a secret's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultEvent {
    pub time: Timestamp,
    /// The action, such as `created`.
    pub action: Text,
    /// The affected secret or unlock method.
    pub subject: Option<Text>,
    pub actor: Text,
}

/// The vaults of all users, one for each user. Exports leave them out.
pub trait VaultStore: Send + Sync {
    /// Returns a consistent snapshot of a user's vault with the selected records. If records are stored without a head, the
    /// head is empty and the revision is 0.
    fn read_vault<'a>(
        &'a self,
        user: &'a UserId,
        records: RecordSelection,
    ) -> BoxFuture<'a, Result<Option<VaultSnapshot>, StoreError>>;

    /// Applies a change atomically if the vault has the expected revision.
    fn change_vault<'a>(
        &'a self,
        user: &'a UserId,
        change: VaultChange,
    ) -> BoxFuture<'a, Result<VaultChangeOutcome, StoreError>>;

    /// Appends to the audit log, then deletes the user's oldest entries beyond the store's limit.
    fn append_vault_event<'a>(
        &'a self,
        user: &'a UserId,
        event: VaultEvent,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns at most `limit` entries of the audit log, newest first.
    fn vault_events<'a>(
        &'a self,
        user: &'a UserId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<VaultEvent>, StoreError>>;
}
