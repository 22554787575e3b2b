//! The seam to the rows of a user's vault. A store sees opaque bytes: which secrets they contain, and whether somebody changed
//! them, is known to the vault alone.

use crate::{BoxFuture, StoreError, Text, Timestamp, UserId};

/// The sealed bytes of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultRecord {
    /// The name of the secret, unique in its vault.
    pub name: Text,
    /// The sealed value.
    pub envelope: Vec<u8>,
}

/// A vault as it was at one moment, so that its head and its records fit together whatever other replicas do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultSnapshot {
    /// The number of this state; every change has a greater one.
    pub revision: u64,
    /// Unlock methods and manifest, as the vault encoded them.
    pub head: Vec<u8>,
    /// The records that were asked for, by name.
    pub records: Vec<VaultRecord>,
}

/// Which records of a vault to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordSelection {
    /// None: the head is enough.
    None,
    /// The one with this name, if it exists.
    One(Text),
    /// All of them.
    All,
}

/// A change of a vault that is applied as a whole, and only to the state it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultChange {
    /// The revision it was made for; none where there must be no vault.
    pub expected: Option<u64>,
    /// The revision of the result, greater than any before it.
    pub revision: u64,
    /// The new head; none deletes the vault with all its records.
    pub head: Option<Vec<u8>>,
    /// Records to add or replace.
    pub put: Vec<VaultRecord>,
    /// Names of records to delete.
    pub remove: Vec<Text>,
    /// The entry of the audit log that belongs to it.
    pub event: VaultEvent,
}

/// Whether a [`VaultChange`] was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultChanged {
    /// It was.
    Applied,
    /// Another replica was faster; nothing was changed.
    Outdated,
}

/// An entry of a vault's audit log. It never contains a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultEvent {
    /// When it happened.
    pub time: Timestamp,
    /// What was done, such as `created`.
    pub action: Text,
    /// The secret or unlock method it was done to.
    pub subject: Option<Text>,
    /// Who did it.
    pub actor: Text,
}

/// The vaults of a database, one for each user. No export contains them.
pub trait VaultStore: Send + Sync {
    /// Returns a user's vault with some of its records, all as of one moment.
    fn read_vault<'a>(
        &'a self,
        user: &'a UserId,
        records: RecordSelection,
    ) -> BoxFuture<'a, Result<Option<VaultSnapshot>, StoreError>>;

    /// Applies a change if the vault still has the revision that it was made for.
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
