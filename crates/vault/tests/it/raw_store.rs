//! A store whose rows a test can edit, like an attacker with access to the database.

use lango_core::{
    BoxFuture, RecordSelection, StoreError, Text, UserId, VaultChange, VaultChangeOutcome,
    VaultEvent, VaultSnapshot, VaultStore,
};
use lango_store::Store;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The edited rows that replace those of a user.
type EditedRows = BTreeMap<UserId, VaultSnapshot>;

/// A store whose rows can be replaced.
#[derive(Default)]
pub(crate) struct RawStore {
    store: Store,
    edited: Mutex<EditedRows>,
}

impl RawStore {
    /// Returns a user's current rows.
    pub(crate) async fn rows(&self, user: &str) -> VaultSnapshot {
        let user = UserId::from(user);
        let rows = self.read_vault(&user, RecordSelection::All).await;
        rows.unwrap().unwrap()
    }

    /// Makes every read return these rows, until they are replaced again.
    pub(crate) fn replace(&self, user: &str, rows: VaultSnapshot) {
        self.edited.lock().unwrap().insert(UserId::from(user), rows);
    }
}

impl VaultStore for RawStore {
    fn read_vault<'a>(
        &'a self,
        user: &'a UserId,
        records: RecordSelection,
    ) -> BoxFuture<'a, Result<Option<VaultSnapshot>, StoreError>> {
        let edited = self.edited.lock().unwrap().get(user).cloned();
        let Some(mut rows) = edited else {
            return self.store.read_vault(user, records);
        };
        rows.records.retain(|record| match &records {
            RecordSelection::None => false,
            RecordSelection::One(name) => record.name == *name,
            RecordSelection::All => true,
        });
        Box::pin(std::future::ready(Ok(Some(rows))))
    }

    fn change_vault<'a>(
        &'a self,
        user: &'a UserId,
        change: VaultChange,
    ) -> BoxFuture<'a, Result<VaultChangeOutcome, StoreError>> {
        self.store.change_vault(user, change)
    }

    fn append_vault_event<'a>(
        &'a self,
        user: &'a UserId,
        event: VaultEvent,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.append_vault_event(user, event)
    }

    fn vault_events<'a>(
        &'a self,
        user: &'a UserId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<VaultEvent>, StoreError>> {
        self.store.vault_events(user, limit)
    }
}

/// Returns the envelope of a record in the rows.
pub(crate) fn envelope<'a>(rows: &'a mut VaultSnapshot, name: &str) -> &'a mut Vec<u8> {
    let name = Text::from(name);
    let mut records = rows.records.iter_mut();
    &mut records.find(|record| record.name == name).unwrap().envelope
}
