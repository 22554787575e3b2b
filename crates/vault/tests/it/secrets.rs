//! Storing, replacing, expiring and logging secrets.

use crate::{NOW, key_file, name, new, set, value, vault_of};
use lango_core::{RecordSelection, Timestamp, UserId, VaultStore};
use lango_store::Store;
use lango_vault::{MAX_SECRET_BYTES, MAX_SECRETS, NewSecret, SecretKind, SecretValue, VaultError};
use std::sync::Arc;

#[tokio::test]
async fn a_value_can_be_stored_read_and_replaced() {
    let (vault, clock) = vault_of("ann", Arc::new(Store::in_memory()));
    assert!(vault.read(RecordSelection::All).await.unwrap().is_none());
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    let secret = NewSecret {
        kind: Some(SecretKind::ApiKey),
        ..new("first")
    };
    assert_eq!(open.set(&name("KEY"), secret).await.unwrap().version, 1);
    clock.set(Timestamp(NOW + 5));
    let second = open.set(&name("KEY"), new("second")).await.unwrap();
    assert_eq!((second.version, second.kind), (2, SecretKind::ApiKey));
    assert_eq!(second.created, Timestamp(NOW));
    assert_eq!(second.updated, Timestamp(NOW + 5));
    assert_eq!(value(&open, "KEY").await.unwrap(), "second");
    assert_eq!(open.entries().await.unwrap(), [second]);
    open.remove(&name("KEY")).await.unwrap();
    assert_eq!(
        value(&open, "KEY").await.unwrap_err(),
        "there is no secret `KEY`"
    );
    let again = open.remove(&name("KEY")).await;
    assert!(matches!(again, Err(VaultError::NotFound { .. })));
}

#[tokio::test]
async fn a_secret_is_refused_from_the_moment_it_expires() {
    let (vault, clock) = vault_of("ann", Arc::new(Store::in_memory()));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    let secret = |expires| NewSecret {
        expires: Some(Timestamp(expires)),
        ..new("value")
    };
    let refused = open.set(&name("KEY"), secret(NOW)).await;
    assert!(matches!(refused, Err(VaultError::InvalidValue { .. })));
    open.set(&name("KEY"), secret(NOW + 1000)).await.unwrap();
    clock.set(Timestamp(NOW + 999));
    assert_eq!(value(&open, "KEY").await.unwrap(), "value");
    clock.set(Timestamp(NOW + 1000));
    assert_eq!(
        value(&open, "KEY").await.unwrap_err(),
        "the secret `KEY` expired on 2026-11-16 00:00 UTC"
    );
    // A new value does not inherit the expiry.
    set(&open, "KEY", "newer").await;
    assert_eq!(value(&open, "KEY").await.unwrap(), "newer");
}

#[tokio::test]
async fn values_and_vaults_have_limits() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    for bytes in [0, MAX_SECRET_BYTES + 1] {
        let secret = NewSecret::new(SecretValue::new(vec![7; bytes]));
        let refused = open.set(&name("KEY"), secret).await;
        assert!(matches!(refused, Err(VaultError::InvalidValue { .. })));
    }
    let largest = NewSecret::new(SecretValue::new(vec![7; MAX_SECRET_BYTES]));
    open.set(&name("KEY"), largest).await.unwrap();
    for number in 1..MAX_SECRETS {
        set(&open, &format!("K{number}"), "v").await;
    }
    let refused = open.set(&name("ONE_MORE"), new("v")).await;
    assert!(matches!(refused, Err(VaultError::Limit { .. })));
    set(&open, "K1", "replaced").await;
}

#[tokio::test]
async fn the_audit_log_records_every_change_and_no_value() {
    let store = Arc::new(Store::in_memory());
    let (vault, _) = vault_of("ann", Arc::clone(&store) as _);
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    set(&open, "KEY", "canary-1").await;
    set(&open, "KEY", "canary-2").await;
    open.use_value(&name("KEY")).await.unwrap();
    open.remove(&name("KEY")).await.unwrap();
    open.use_value(&name("KEY")).await.unwrap_err();
    vault.unlock(key_file(1)).await.unwrap();
    vault.unlock(key_file(9)).await.unwrap_err();
    let events = vault.events(100).await.unwrap();
    let shown = events.iter().map(|event| {
        let subject = event.subject.as_deref().unwrap_or("-");
        format!("{} {subject} by {}", event.action, event.actor)
    });
    let shown: Vec<String> = shown.collect();
    assert_eq!(
        shown,
        [
            "unlock failed key file by a test",
            "unlocked key file by a test",
            "removed KEY by a test",
            "used KEY by a test",
            "replaced KEY by a test",
            "created KEY by a test",
            "vault created - by a test",
        ]
    );
}

#[tokio::test]
async fn stored_rows_do_not_reveal_a_value() {
    let store = Arc::new(Store::in_memory());
    let (vault, _) = vault_of("ann", Arc::clone(&store) as _);
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    set(&open, "KEY", "canary-value").await;
    let ann = UserId::from("ann");
    let rows = store.read_vault(&ann, RecordSelection::All).await;
    let rows = rows.unwrap().unwrap();
    let mut bytes = rows.head.clone();
    bytes.extend(rows.records.iter().flat_map(|record| &record.envelope));
    assert!(!bytes.windows(6).any(|part| part == b"canary"));
    assert!(!format!("{open:?} {vault:?}").contains("canary"));
}

#[tokio::test]
async fn a_wallet_without_an_address_gets_one_and_keeps_it() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    let wallet = NewSecret {
        kind: Some(SecretKind::PaymentKey),
        ..new("the key")
    };
    open.set(&name("WALLET"), wallet).await.unwrap();
    for address in ["0xabc", "0xdef"] {
        open.add_public_id(&name("WALLET"), address.into())
            .await
            .unwrap();
    }
    let sealed = vault.read(RecordSelection::None).await.unwrap().unwrap();
    let shown = sealed.entries().next().unwrap().public_id.clone();
    assert_eq!(shown.as_deref(), Some("0xabc"));
    assert_eq!(value(&open, "WALLET").await.unwrap(), "the key");
    let too_long = "x".repeat(201);
    for refused in ["", &too_long] {
        let refused = open.add_public_id(&name("WALLET"), refused.into()).await;
        assert!(matches!(refused, Err(VaultError::InvalidValue { .. })));
    }
}
