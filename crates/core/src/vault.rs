//! The seam to the rows of a user's vault. A store sees opaque bytes; only the vault decrypts and authenticates them.

use crate::{BoxFuture, StoreError, Text, Timestamp, UserId};

/// The encrypted record of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultRecord {
    /// The name of the secret, unique in its vault.
    pub name: Text,
    /// The sealed value.
    pub envelope: Vec<u8>,
}

/// A consistent snapshot of a vault: its head and records of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultSnapshot {
    /// The revision; every change has a greater one.
    pub revision: u64,
    /// The encoded unlock methods and manifest.
    pub head: Vec<u8>,
    /// The selected records, by name.
    pub records: Vec<VaultRecord>,
}

/// The records of a vault to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordSelection {
    /// None: the head is enough.
    None,
    /// The one with this name, if it exists.
    One(Text),
    /// All of them.
    All,
}

/// An atomic change of a vault that applies only to one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultChange {
    /// The expected revision; `None` if there must be no vault, and no record of one.
    pub expected: Option<u64>,
    /// The revision of the result, greater than any before it.
    pub revision: u64,
    /// The new head; `None` deletes the vault with all its records. With the expected revision 0 it deletes records that are
    /// stored without a head.
    pub head: Option<Vec<u8>>,
    /// Records to add or replace.
    pub put: Vec<VaultRecord>,
    /// Names of records to delete.
    pub remove: Vec<Text>,
    /// Its entry in the audit log.
    pub event: VaultEvent,
}

/// The result of applying a [`VaultChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultChanged {
    /// The change was applied.
    Applied,
    /// The revision differs; nothing was changed.
    Outdated,
}

/// An entry of a vault's audit log. It never contains a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultEvent {
    /// When it happened.
    pub time: Timestamp,
    /// The action, such as `created`.
    pub action: Text,
    /// The affected secret or unlock method.
    pub subject: Option<Text>,
    /// The actor.
    pub actor: Text,
}

/// The vaults of a database, one for each user. No export contains them.
pub trait VaultStore: Send + Sync {
    /// Returns a user's vault with some of its records, all as of one moment. If records are stored without a head, the head
    /// is empty and the revision 0.
    fn read_vault<'a>(
        &'a self,
        user: &'a UserId,
        records: RecordSelection,
    ) -> BoxFuture<'a, Result<Option<VaultSnapshot>, StoreError>>;

    /// Applies a change if the vault has the expected revision.
    fn change_vault<'a>(
        &'a self,
        user: &'a UserId,
        change: VaultChange,
    ) -> BoxFuture<'a, Result<VaultChanged, StoreError>>;

    /// Appends to the audit log. A store deletes a user's oldest entries beyond its limit.
    fn append_vault_event<'a>(
        &'a self,
        user: &'a UserId,
        event: VaultEvent,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the newest entries of the audit log, the newest first.
    fn vault_events<'a>(
        &'a self,
        user: &'a UserId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<VaultEvent>, StoreError>>;
}
