//! Several unlock methods for one vault, and replacing the master key.

use crate::{key_file, passphrase, set, value, vault_of};
use lango_core::{RecordSelection, UserId, VaultStore};
use lango_store::Store;
use lango_vault::{Key, MAX_METHODS, MethodKind, UnlockSecret, VaultError};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::test]
async fn each_of_several_methods_unlocks_and_can_be_removed() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let methods = vec![passphrase("correct horse"), key_file(1)];
    let open = vault.create(methods).await.unwrap();
    set(&open, "KEY", "value").await;
    let keyring = || UnlockSecret::Keyring(Key::new([3; 32]));
    assert_eq!(open.add_method(keyring()).await.unwrap(), 3);
    for secret in [passphrase("correct horse"), key_file(1), keyring()] {
        let open = vault.unlock(secret).await.unwrap();
        assert_eq!(value(&open, "KEY").await.unwrap(), "value");
    }
    // A key does not unlock a method of another kind.
    let other_kind = UnlockSecret::Keyring(Key::new([1; 32]));
    assert!(vault.unlock(other_kind).await.is_err());
    open.remove_method(1).await.unwrap();
    assert!(matches!(
        vault.unlock(passphrase("correct horse")).await,
        Err(VaultError::NoMethod {
            method: MethodKind::Passphrase
        })
    ));
    open.remove_method(2).await.unwrap();
    let gone = open.remove_method(2).await;
    assert!(matches!(gone, Err(VaultError::NoSuchMethod { id: 2 })));
    let last = open.remove_method(3).await;
    assert!(matches!(last, Err(VaultError::LastMethod)));
    // Ids are never reused.
    assert_eq!(open.add_method(key_file(1)).await.unwrap(), 4);
}

#[tokio::test]
async fn a_vault_has_at_least_one_method_and_a_limited_number_of_them() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let none = vault.create(Vec::new()).await;
    assert!(matches!(none, Err(VaultError::LastMethod)));
    let methods = (0..MAX_METHODS as u8).map(key_file);
    let open = vault.create(methods.collect()).await.unwrap();
    let refused = open.add_method(key_file(99)).await;
    assert!(matches!(refused, Err(VaultError::Limit { .. })));
    let second = vault.create(vec![key_file(1)]).await;
    assert!(matches!(second, Err(VaultError::Exists)));
}

#[tokio::test]
async fn a_wrong_passphrase_takes_a_hundred_milliseconds_and_reveals_nothing() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    vault
        .create(vec![passphrase("correct horse")])
        .await
        .unwrap();
    let mut texts = Vec::new();
    for wrong in ["", "c", "correct hors", "correct horse ", "something else"] {
        let started = Instant::now();
        let refused = vault.unlock(passphrase(wrong)).await;
        let elapsed = started.elapsed();
        assert!(
            elapsed >= Duration::from_millis(100),
            "{wrong}: {elapsed:?}"
        );
        texts.push(refused.unwrap_err().to_string());
    }
    texts.dedup();
    assert_eq!(texts, ["the passphrase does not unlock the vault"]);
}

#[tokio::test]
async fn a_new_master_key_does_not_change_sealed_values_and_invalidates_the_old_key() {
    let store = Arc::new(Store::in_memory());
    let (vault, _) = vault_of("ann", Arc::clone(&store) as _);
    let methods = vec![key_file(1), key_file(2)];
    let open = vault.create(methods).await.unwrap();
    set(&open, "A", "value of a").await;
    set(&open, "B", "value of b").await;
    let ann = UserId::from("ann");
    let before = store.read_vault(&ann, RecordSelection::All).await;
    let before = before.unwrap().unwrap().records;
    let missing = open.rotate_master(vec![key_file(1)], &[]).await;
    let missing = missing.unwrap_err().to_string();
    assert_eq!(
        missing,
        "no given passphrase or key matches unlock method 2 (key file)"
    );
    assert_eq!(value(&open, "A").await.unwrap(), "value of a");
    let secrets = vec![key_file(2), key_file(1)];
    let rotated = open.rotate_master(secrets, &[]).await.unwrap();
    assert_eq!(value(&rotated, "A").await.unwrap(), "value of a");
    assert_eq!(value(&rotated, "B").await.unwrap(), "value of b");
    let after = store.read_vault(&ann, RecordSelection::All).await;
    let after = after.unwrap().unwrap().records;
    for (before, after) in before.iter().zip(&after) {
        // The last bytes are the nonce, the value and its tag.
        let sealed_value = 24 + "value of a".len() + 16;
        let at = before.envelope.len() - sealed_value;
        assert_eq!(before.envelope[at..], after.envelope[at..]);
        assert_ne!(before.envelope[..at], after.envelope[..at]);
    }
    let outdated = "the master key of the vault was replaced; unlock the vault again";
    assert_eq!(value(&open, "A").await.unwrap_err(), outdated);
    for secret in [key_file(1), key_file(2)] {
        vault.unlock(secret).await.unwrap();
    }
    let alone = rotated
        .rotate_master(vec![key_file(1)], &[2])
        .await
        .unwrap();
    assert_eq!(value(&alone, "B").await.unwrap(), "value of b");
    assert!(vault.unlock(key_file(2)).await.is_err());
    assert!(alone.check().await.unwrap().is_empty());
}

#[tokio::test]
async fn replacing_the_master_key_requires_all_methods_and_lists_all_missing_ones() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let methods = (1..=4).map(key_file).collect();
    let open = vault.create(methods).await.unwrap();
    let missing = async |given: Vec<UnlockSecret>, without: &[u16]| {
        let refused = open.rotate_master(given, without).await.unwrap_err();
        let text = refused.to_string();
        match refused {
            VaultError::MethodsNotGiven { without, .. } => (text, without),
            other => panic!("{other}"),
        }
    };
    let (text, without) = missing(vec![key_file(1)], &[3]).await;
    assert!(
        text.ends_with("unlock methods 2 (key file) and 4 (key file)"),
        "{text}"
    );
    // The suggestion includes the methods that were already left out, so that the next attempt succeeds.
    assert_eq!(without, [2, 3, 4]);
    let (text, without) = missing(Vec::new(), &[]).await;
    assert!(text.contains("1 (key file), 2 (key file)"), "{text}");
    assert!(without.is_empty(), "no method would be left: {without:?}");
    let unknown = open.rotate_master(vec![key_file(1)], &[2, 3, 4, 9]).await;
    assert!(matches!(unknown, Err(VaultError::NoSuchMethod { id: 9 })));
    open.rotate_master(vec![key_file(1)], &[2, 3, 4])
        .await
        .unwrap();
}

#[tokio::test]
async fn an_unlocked_vault_knows_the_method_that_unlocked_it() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let methods = vec![key_file(1), key_file(2)];
    assert_eq!(vault.create(methods).await.unwrap().unlocked_by(), None);
    let open = vault.unlock(key_file(2)).await.unwrap();
    assert_eq!(open.unlocked_by(), Some(2));
    let sealed = vault.read(RecordSelection::None).await.unwrap().unwrap();
    assert_eq!(sealed.method_of(key_file(1)).await.unwrap(), Some(1));
    assert_eq!(sealed.method_of(key_file(9)).await.unwrap(), None);
}

#[tokio::test]
async fn a_short_passphrase_is_refused() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let refused = vault.create(vec![passphrase("short")]).await;
    assert!(matches!(refused, Err(VaultError::ShortPassphrase { .. })));
}

#[tokio::test]
async fn a_master_key_opens_the_vault_again() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    set(&open, "KEY", "value").await;
    let master = Key::from_slice(open.master().expose()).unwrap();
    let again = vault.open(master).await.unwrap();
    assert_eq!(value(&again, "KEY").await.unwrap(), "value");
    let other = vault.open(Key::new([0; 32])).await;
    assert!(matches!(other, Err(VaultError::KeyOutdated)));
}
