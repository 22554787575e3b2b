//! A value can be used only where its secret is bound, and bindings cannot be changed outside lango.

use crate::raw_store::{RawStore, envelope};
use crate::{key_file, name, new, set, vault_of};
use lango_secrets::{Binding, MAX_BINDINGS, Origin};
use lango_store::Store;
use lango_vault::{NewSecret, OpenVault, SecretKind, SecretValue, VaultError};
use std::sync::Arc;

pub(crate) fn github() -> Binding {
    header("github.com", "GH_TOKEN")
}

fn header(host: &str, variable: &str) -> Binding {
    let origin = Origin::parse(host).unwrap();
    Binding::header("exec", origin, "authorization", variable).unwrap()
}

async fn one_secret() -> OpenVault {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    set(&open, "A", "value of a").await;
    open
}

#[tokio::test]
async fn a_value_is_returned_only_for_its_bindings() {
    let open = one_secret().await;
    let refused = open.bound_value(&name("A"), &github()).await;
    assert!(matches!(refused, Err(VaultError::NotBound { .. })));
    let entry = open.bind(&name("A"), &github()).await.unwrap();
    assert_eq!((entry.version, entry.bindings), (1, vec![github()]));
    let value = open.bound_value(&name("A"), &github()).await.unwrap();
    assert_eq!(value.expose(), b"value of a");
    for other in [
        header("gitlab.com", "GH_TOKEN"),
        header("http://github.com", "GH_TOKEN"),
        header("github.com:8443", "GH_TOKEN"),
        header("github.com", "OTHER"),
        Binding::program("exec", "git", "GH_TOKEN").unwrap(),
    ] {
        let refused = open.bound_value(&name("A"), &other).await;
        assert!(
            matches!(refused, Err(VaultError::NotBound { .. })),
            "{other}"
        );
    }
    // A new value keeps the bindings.
    set(&open, "A", "newer").await;
    let value = open.bound_value(&name("A"), &github()).await.unwrap();
    assert_eq!(value.expose(), b"newer");
    let entry = open.unbind(&name("A"), &github()).await.unwrap();
    assert!(entry.bindings.is_empty());
    let refused = open.bound_value(&name("A"), &github()).await;
    assert!(matches!(refused, Err(VaultError::NotBound { .. })));
    assert!(open.check().await.unwrap().is_empty());
}

#[tokio::test]
async fn bindings_are_limited_distinct_and_do_not_share_a_variable() {
    let open = one_secret().await;
    set(&open, "B", "value of b").await;
    for number in 0..MAX_BINDINGS {
        let binding = header(&format!("h{number}.example"), "TOKEN");
        open.bind(&name("A"), &binding).await.unwrap();
    }
    let again = open.bind(&name("A"), &header("h0.example", "TOKEN")).await;
    assert!(matches!(again, Err(VaultError::AlreadyBound { .. })));
    let more = open.bind(&name("A"), &github()).await;
    assert!(matches!(more, Err(VaultError::Limit { .. })));
    let taken = open.bind(&name("B"), &header("b.example", "TOKEN")).await;
    assert_eq!(
        taken.unwrap_err().to_string(),
        "`TOKEN` of `exec` is already used by the secret `A`; choose another variable, or unbind that secret first"
    );
    let absent = open.bind(&name("C"), &github()).await;
    assert!(matches!(absent, Err(VaultError::NotFound { .. })));
    let absent = open.unbind(&name("B"), &github()).await;
    assert!(matches!(absent, Err(VaultError::NotBound { .. })));
}

#[tokio::test]
async fn keys_cannot_be_bound_replaced_or_used_as_another_kind() {
    let open = one_secret().await;
    let kind = SecretKind::HmacKey;
    let key = open.create_key(&name("K"), kind).await.unwrap();
    assert_eq!(key.kind, kind);
    let bound = open.bind(&name("K"), &github()).await;
    assert!(matches!(bound, Err(VaultError::IsKey { .. })));
    let replaced = open.set(&name("K"), new("known")).await;
    assert!(matches!(replaced, Err(VaultError::IsKey { .. })));
    let renamed = NewSecret {
        kind: Some(SecretKind::Text),
        ..NewSecret::new(SecretValue::new("known"))
    };
    let replaced = open.set(&name("K"), renamed).await;
    assert!(matches!(replaced, Err(VaultError::IsKey { .. })));
    let again = open.create_key(&name("K"), kind).await;
    assert!(matches!(again, Err(VaultError::IsKey { .. })));
    let taken = open.create_key(&name("A"), kind).await;
    assert!(matches!(taken, Err(VaultError::NameTaken { .. })));
    for kind in [SecretKind::Text, SecretKind::ApiKey, SecretKind::PaymentKey] {
        let refused = open.create_key(&name("N"), kind).await;
        assert!(matches!(refused, Err(VaultError::WrongKind { .. })));
    }
    open.key(&name("K"), kind, "hmac").await.unwrap();
    for (secret, kind) in [
        ("A", SecretKind::HmacKey),
        ("A", SecretKind::SymmetricKey),
        ("K", SecretKind::SymmetricKey),
        ("K", SecretKind::Ed25519Key),
    ] {
        let refused = open.key(&name(secret), kind, "hmac").await;
        assert!(matches!(refused, Err(VaultError::WrongKind { .. })));
    }
}

#[tokio::test]
async fn a_secret_value_never_becomes_a_key() {
    let open = one_secret().await;
    for kind in [
        SecretKind::SymmetricKey,
        SecretKind::HmacKey,
        SecretKind::Ed25519Key,
        SecretKind::Secp256k1Key,
    ] {
        let known = NewSecret {
            kind: Some(kind),
            ..NewSecret::new(SecretValue::new([7; 32]))
        };
        let refused = open.set(&name("K"), known).await;
        assert!(matches!(refused, Err(VaultError::IsKey { .. })), "{kind}");
    }
}

#[tokio::test]
async fn rolled_back_bindings_are_refused() {
    let store = Arc::new(RawStore::default());
    let (vault, _) = vault_of("ann", Arc::clone(&store) as _);
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    set(&open, "A", "value of a").await;
    let unbound = store.rows("ann").await;
    open.bind(&name("A"), &github()).await.unwrap();
    let bound = store.rows("ann").await;
    open.unbind(&name("A"), &github()).await.unwrap();
    let newest = store.rows("ann").await;
    for (older, what) in [(&unbound, "before"), (&bound, "while it was bound")] {
        let mut record = newest.clone();
        *envelope(&mut record, "A") = envelope(&mut older.clone(), "A").clone();
        store.replace("ann", record);
        let refused = open.value(&name("A")).await;
        assert!(
            matches!(refused, Err(VaultError::RecordChanged { .. })),
            "the record of {what}"
        );
        let mut head = newest.clone();
        head.head = older.head.clone();
        store.replace("ann", head.clone());
        assert!(open.entries().await.is_err(), "the head of {what}");
        head.revision = older.revision;
        store.replace("ann", head);
        let refused = open.bound_value(&name("A"), &github()).await;
        assert!(refused.is_err(), "head and revision of {what}");
    }
}

#[tokio::test]
async fn the_audit_log_records_bindings_and_their_uses() {
    let (vault, _) = vault_of("ann", Arc::new(Store::in_memory()));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    set(&open, "A", "canary").await;
    open.bind(&name("A"), &github()).await.unwrap();
    open.log_use(&name("A"), &github()).await.unwrap();
    open.unbind(&name("A"), &github()).await.unwrap();
    let events = vault.events(3).await.unwrap();
    let shown = events
        .iter()
        .map(|event| format!("{} {}", event.action, event.subject.as_deref().unwrap()));
    let shown: Vec<String> = shown.collect();
    let place = "A (exec: header `authorization` to https://github.com, placeholder in GH_TOKEN)";
    assert_eq!(
        shown,
        [
            format!("unbound {place}"),
            format!("used {place}"),
            format!("bound {place}"),
        ]
    );
}

#[tokio::test]
async fn a_value_that_is_not_valid_in_a_header_cannot_be_bound_to_one() {
    let open = one_secret().await;
    let unfit = |stored: Result<_, VaultError>| {
        assert!(matches!(stored, Err(VaultError::UnfitForHeader { .. })));
    };
    set(&open, "LINES", "first\nsecond").await;
    unfit(open.bind(&name("LINES"), &github()).await);
    // It can be bound to a program.
    let program = Binding::program("exec", "openssl", "KEY").unwrap();
    open.bind(&name("LINES"), &program).await.unwrap();
    // A bound secret cannot get such a value either.
    open.bind(&name("A"), &github()).await.unwrap();
    unfit(open.set(&name("A"), new("one\r\ntwo")).await);
    let value = open.bound_value(&name("A"), &github()).await.unwrap();
    assert_eq!(value.expose(), b"value of a");
    set(&open, "A", "tab\tand ü").await;
}
