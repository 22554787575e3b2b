//! Vaults in memory.

use super::MemoryStore;
use crate::vault::{MOST_VAULT_EVENTS, check_change, check_owner};
use lango_core::{
    BoxFuture, RecordSelection, StoreError, Text, UserId, VaultChange, VaultChanged, VaultEvent,
    VaultRecord, VaultSnapshot, VaultStore,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{MutexGuard, PoisonError};

/// What one user has.
#[derive(Debug, Default)]
pub(super) struct UserVault {
    /// The revision and the head.
    head: Option<(u64, Vec<u8>)>,
    records: BTreeMap<Text, Vec<u8>>,
    /// The oldest first.
    events: VecDeque<VaultEvent>,
}

/// The vaults by user.
pub(super) type Vaults = BTreeMap<UserId, UserVault>;

impl VaultStore for MemoryStore {
    fn read_vault<'a>(
        &'a self,
        user: &'a UserId,
        records: RecordSelection,
    ) -> BoxFuture<'a, Result<Option<VaultSnapshot>, StoreError>> {
        let vaults = self.vaults();
        let snapshot = vaults.get(user).and_then(|vault| {
            let (revision, head) = vault.head.clone()?;
            let is_selected = |name: &Text| match &records {
                RecordSelection::None => false,
                RecordSelection::One(wanted) => name == wanted,
                RecordSelection::All => true,
            };
            let selected = vault.records.iter().filter(|(name, _)| is_selected(name));
            let records = selected.map(|(name, envelope)| VaultRecord {
                name: name.clone(),
                envelope: envelope.clone(),
            });
            Some(VaultSnapshot {
                revision,
                head,
                records: records.collect(),
            })
        });
        Box::pin(std::future::ready(Ok(snapshot)))
    }

    fn change_vault<'a>(
        &'a self,
        user: &'a UserId,
        change: VaultChange,
    ) -> BoxFuture<'a, Result<VaultChanged, StoreError>> {
        let changed = check_change(user, &change).map(|()| {
            let mut vaults = self.vaults();
            vaults.entry(user.clone()).or_default().apply(change)
        });
        Box::pin(std::future::ready(changed))
    }

    fn append_vault_event<'a>(
        &'a self,
        user: &'a UserId,
        event: VaultEvent,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let appended = check_owner(user).map(|()| {
            let mut vaults = self.vaults();
            vaults.entry(user.clone()).or_default().append(event);
        });
        Box::pin(std::future::ready(appended))
    }

    fn vault_events<'a>(
        &'a self,
        user: &'a UserId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<VaultEvent>, StoreError>> {
        let vaults = self.vaults();
        let events = vaults.get(user).into_iter();
        let events = events.flat_map(|vault| vault.events.iter().rev());
        let events = events.take(limit).cloned().collect();
        Box::pin(std::future::ready(Ok(events)))
    }
}

impl UserVault {
    fn apply(&mut self, change: VaultChange) -> VaultChanged {
        if self.head.as_ref().map(|(revision, _)| *revision) != change.expected {
            return VaultChanged::Outdated;
        }
        match change.head {
            Some(head) => self.head = Some((change.revision, head)),
            None => {
                self.head = None;
                self.records.clear();
            }
        }
        for name in &change.remove {
            self.records.remove(name);
        }
        let put = change.put.into_iter();
        self.records
            .extend(put.map(|record| (record.name, record.envelope)));
        self.append(change.event);
        VaultChanged::Applied
    }

    fn append(&mut self, event: VaultEvent) {
        self.events.push_back(event);
        while self.events.len() as u64 > MOST_VAULT_EVENTS {
            self.events.pop_front();
        }
    }
}

impl MemoryStore {
    fn vaults(&self) -> MutexGuard<'_, Vaults> {
        self.vaults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
