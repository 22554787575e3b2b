//! Rows that were changed outside lango are refused, whichever byte or row was changed.

use crate::bindings::github;
use crate::raw_store::{RawStore, envelope};
use crate::{key_file, name, set, value, vault_of};
use lango_core::{RecordSelection, VaultRecord, VaultSnapshot};
use lango_vault::{OpenVault, Vault, VaultError};
use std::sync::Arc;

/// Creates a vault with two secrets, one of them bound, in a store whose rows can be edited.
async fn two_secrets(owner: &str, store: &Arc<RawStore>) -> (Vault, OpenVault) {
    let (vault, _) = vault_of(owner, Arc::clone(store) as _);
    let open = vault.create(vec![key_file(1), key_file(2)]).await.unwrap();
    set(&open, "A", "value of a").await;
    set(&open, "B", "value of b").await;
    open.bind(&name("A"), &github()).await.unwrap();
    (vault, open)
}

/// Asserts that no secret can be read, neither after unlocking again nor with a vault that was unlocked before.
async fn assert_refused(vault: &Vault, open: &OpenVault, description: &str) {
    let unlocked = vault.unlock(key_file(1)).await;
    let read = match unlocked {
        Ok(unlocked) => unlocked.value(&name("A")).await.map(drop),
        Err(error) => Err(error),
    };
    assert!(read.is_err(), "{description}: unlocked and read");
    assert!(open.value(&name("A")).await.is_err(), "{description}: read");
}

fn edited(rows: &VaultSnapshot, edit: impl FnOnce(&mut VaultSnapshot)) -> VaultSnapshot {
    let mut rows = rows.clone();
    edit(&mut rows);
    rows
}

#[tokio::test]
async fn every_flipped_byte_of_the_head_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let rows = store.rows("ann").await;
    for at in 0..rows.head.len() {
        for mask in [1, 0x80, 0xff] {
            store.replace("ann", edited(&rows, |rows| rows.head[at] ^= mask));
            assert_refused(&vault, &open, &format!("byte {at} ^ {mask}")).await;
        }
    }
}

#[tokio::test]
async fn every_flipped_byte_of_an_envelope_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let rows = store.rows("ann").await;
    let length = envelope(&mut rows.clone(), "A").len();
    for at in 0..length {
        store.replace("ann", edited(&rows, |rows| envelope(rows, "A")[at] ^= 1));
        assert_refused(&vault, &open, &format!("byte {at}")).await;
        assert_eq!(value(&open, "B").await.unwrap(), "value of b");
    }
}

#[tokio::test]
async fn a_truncated_or_extended_head_or_envelope_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let rows = store.rows("ann").await;
    let lengths = rows.head.len();
    for length in (0..lengths).chain([lengths + 1, lengths + 32]) {
        store.replace("ann", edited(&rows, |rows| rows.head.resize(length, 0)));
        assert_refused(&vault, &open, &format!("a head of {length} bytes")).await;
    }
    let lengths = envelope(&mut rows.clone(), "A").len();
    for length in (0..lengths).chain([lengths + 1, lengths + 32]) {
        let edit = |rows: &mut VaultSnapshot| envelope(rows, "A").resize(length, 0);
        store.replace("ann", edited(&rows, edit));
        assert_refused(&vault, &open, &format!("an envelope of {length} bytes")).await;
    }
}

#[tokio::test]
async fn a_revision_that_differs_from_its_head_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let rows = store.rows("ann").await;
    store.replace("ann", edited(&rows, |rows| rows.revision += 1));
    assert_refused(&vault, &open, "revision").await;
}

#[tokio::test]
async fn swapped_records_are_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let (_, _) = two_secrets("bob", &store).await;
    let (rows, other) = (store.rows("ann").await, store.rows("bob").await);
    let swapped = edited(&rows, |rows| {
        let a = envelope(rows, "A").clone();
        let b = std::mem::replace(envelope(rows, "B"), a);
        *envelope(rows, "A") = b;
    });
    store.replace("ann", swapped);
    assert_refused(&vault, &open, "A and B swapped").await;
    let text = value(&open, "B").await.unwrap_err();
    assert_eq!(
        text,
        "the stored record of `B` is not the one that the vault expects: it was changed outside lango"
    );
    let from_bob = edited(&rows, |rows| {
        *envelope(rows, "A") = envelope(&mut other.clone(), "A").clone();
    });
    store.replace("ann", from_bob);
    assert_refused(&vault, &open, "a record of another user").await;
    store.replace("ann", other);
    assert_refused(&vault, &open, "the whole vault of another user").await;
}

#[tokio::test]
async fn a_record_of_an_earlier_vault_of_the_same_user_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, _) = two_secrets("ann", &store).await;
    let old = store.rows("ann").await;
    vault.delete().await.unwrap();
    let (vault, open) = two_secrets("ann", &store).await;
    let rows = store.rows("ann").await;
    let mixed = edited(&rows, |rows| {
        *envelope(rows, "A") = envelope(&mut old.clone(), "A").clone();
    });
    store.replace("ann", mixed);
    assert_refused(&vault, &open, "a record of an earlier vault").await;
    store.replace("ann", old);
    assert!(matches!(
        open.value(&name("A")).await,
        Err(VaultError::KeyOutdated)
    ));
}

#[tokio::test]
async fn a_single_rolled_back_record_is_refused_and_named() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let old = store.rows("ann").await;
    set(&open, "A", "newer value").await;
    let rows = store.rows("ann").await;
    let rolled_back = edited(&rows, |rows| {
        *envelope(rows, "A") = envelope(&mut old.clone(), "A").clone();
    });
    store.replace("ann", rolled_back);
    assert_eq!(
        value(&open, "A").await.unwrap_err(),
        "the stored record of `A` is older than the vault expects (version 1, not 2): it was changed outside lango"
    );
    assert_refused(&vault, &open, "a record rolled back").await;
    assert_eq!(value(&open, "B").await.unwrap(), "value of b");
}

#[tokio::test]
async fn a_record_from_before_a_secret_was_deleted_and_stored_again_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let old = store.rows("ann").await;
    open.remove(&name("A")).await.unwrap();
    // The clock does not advance, so name, version and times are the same again; only the digest differs.
    set(&open, "A", "another value").await;
    let rows = store.rows("ann").await;
    let restored = edited(&rows, |rows| {
        *envelope(rows, "A") = envelope(&mut old.clone(), "A").clone();
    });
    store.replace("ann", restored);
    assert_refused(&vault, &open, "a record of before").await;
}

#[tokio::test]
async fn a_rolled_back_head_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let old = store.rows("ann").await;
    set(&open, "A", "newer value").await;
    let rows = store.rows("ann").await;
    let rolled_back = edited(&rows, |rows| {
        (rows.head, rows.revision) = (old.head.clone(), old.revision);
    });
    store.replace("ann", rolled_back);
    assert_refused(&vault, &open, "the head rolled back").await;
}

#[tokio::test]
async fn a_deleted_and_a_foreign_record_are_reported() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let rows = store.rows("ann").await;
    let changed = edited(&rows, |rows| {
        let a = rows.records.remove(0);
        rows.records.push(VaultRecord {
            name: "C".into(),
            ..a
        });
    });
    store.replace("ann", changed);
    let deleted = "the stored record of `A` is missing: it was deleted outside lango";
    let foreign =
        "the stored record `C` is not in the vault's manifest: it was added outside lango";
    assert_eq!(value(&open, "A").await.unwrap_err(), deleted);
    assert_eq!(
        value(&open, "C").await.unwrap_err(),
        "there is no secret `C`"
    );
    let found = open.check().await.unwrap();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, [deleted, foreign]);
    let sealed = vault.read(RecordSelection::All).await.unwrap().unwrap();
    assert_eq!(sealed.record_problems().len(), 2);
}

#[tokio::test]
async fn a_restored_unlock_method_is_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, open) = two_secrets("ann", &store).await;
    let old = store.rows("ann").await;
    open.remove_method(2).await.unwrap();
    let rows = store.rows("ann").await;
    // Restores the old head; only the revision of the row stays new.
    let restored = edited(&rows, |rows| rows.head = old.head.clone());
    store.replace("ann", restored);
    assert!(vault.unlock(key_file(2)).await.is_err());
}
