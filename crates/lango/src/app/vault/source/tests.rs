//! Bound secrets over a real vault in memory.

use super::*;
use crate::app::vault::OsKeyring;
use lango_config::StoreLocation;
use lango_engine::SystemClock;
use lango_secrets::Origin;
use lango_store::Store;
use lango_vault::{NewSecret, UnlockSecret, Vault, VaultParts, key_file};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// The vaults of a process that unlocks with a key file.
struct Fixture {
    folder: TempDir,
    vaults: UserVaults,
    masks: Masks,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (database, key) = (folder.path().join("database"), folder.path().join("key"));
        std::fs::write(&database, "any").unwrap();
        key_file::create(&key).unwrap();
        let access = VaultAccess {
            vault: Vault::new(VaultParts {
                store: Arc::new(Store::in_memory()),
                clock: Arc::new(SystemClock),
                owner: UserId::from("nobody"),
                actor: "a test".into(),
            }),
            location: StoreLocation::Sqlite(database),
            is_default_location: true,
            own_passphrase: None,
            server_passphrase: None,
            key_file: Some(key),
            keyring: OsKeyring::new(&BTreeMap::new()),
            own_user: UserId::from("nobody"),
            failed: Arc::default(),
            echo_guard: None,
        };
        let masks = Masks::default();
        Self {
            folder,
            vaults: UserVaults::new(access, masks.clone()),
            masks,
        }
    }

    async fn create(&self, user: &str, unlock: &[&str]) -> OpenVault {
        let read = |name: &&str| {
            let path = self.folder.path().join(name);
            let key = key_file::read(&path).or_else(|_| key_file::create(&path));
            UnlockSecret::KeyFile(key.unwrap())
        };
        let vault = self.vaults.access.for_user(UserId::from(user)).vault;
        vault
            .create(unlock.iter().map(read).collect())
            .await
            .unwrap()
    }

    async fn uses(&self, user: &str) -> usize {
        self.subjects(user, "used").await.len()
    }

    /// Returns the subjects of an action's entries in the audit log.
    async fn subjects(&self, user: &str, action: &str) -> Vec<String> {
        let vault = self.vaults.access.for_user(UserId::from(user)).vault;
        let events = vault.events(1000).await.unwrap().into_iter();
        let events = events.filter(|event| &*event.action == action);
        let subjects = events.map(|event| event.subject.unwrap_or_default());
        subjects.map(|subject| subject.to_string()).collect()
    }
}

fn binding(tool: &str) -> Binding {
    let origin = Origin::parse("github.com").unwrap();
    Binding::header(tool, origin, "authorization", "GH_TOKEN").unwrap()
}

fn bound(binding: Binding) -> BoundSecret {
    BoundSecret {
        name: SecretName::new("TOKEN").unwrap(),
        binding,
    }
}

async fn store(vault: &OpenVault, value: &str) {
    let name = SecretName::new("TOKEN").unwrap();
    let secret = NewSecret::new(SecretValue::new(value));
    vault.set(&name, secret).await.unwrap();
}

#[tokio::test]
async fn a_user_has_the_secrets_of_their_own_vault_and_no_others() {
    let fixture = Fixture::new();
    let (ann, bob) = (UserId::from("ann"), UserId::from("bob"));
    let own = fixture.create("ann", &["key"]).await;
    store(&own, "value-of-ann").await;
    own.bind(&bound(binding("exec")).name, &binding("exec"))
        .await
        .unwrap();
    let vaults = &fixture.vaults;
    assert_eq!(
        vaults.bound_secrets(&ann, "exec").await.unwrap(),
        [bound(binding("exec"))]
    );
    assert!(
        vaults
            .bound_secrets(&ann, "mcp:x")
            .await
            .unwrap()
            .is_empty()
    );
    assert!(vaults.bound_secrets(&bob, "exec").await.unwrap().is_empty());
    let value = vaults
        .resolve(&SecretUser::from(&ann), &bound(binding("exec")))
        .await
        .unwrap();
    assert_eq!(value.expose(), b"value-of-ann");
    let refused = vaults
        .resolve(&SecretUser::from(&bob), &bound(binding("exec")))
        .await;
    assert!(matches!(refused, Err(SecretError::Unavailable { .. })));
    assert_eq!(
        fixture.masks.mask_text("is value-of-ann"),
        "is [secret TOKEN]"
    );
}

#[tokio::test]
async fn a_bound_value_is_masked_before_it_is_first_used_and_after_it_changed() {
    let fixture = Fixture::new();
    let ann = UserId::from("ann");
    let own = fixture.create("ann", &["key"]).await;
    store(&own, "first-value").await;
    let secret = bound(binding("exec"));
    own.bind(&secret.name, &secret.binding).await.unwrap();
    for value in ["first-value", "second-value"] {
        store(&own, value).await;
        fixture.vaults.bound_secrets(&ann, "exec").await.unwrap();
        assert_eq!(fixture.masks.mask_text(value), "[secret TOKEN]");
    }
    assert_eq!(fixture.uses("ann").await, 0);
}

#[tokio::test]
async fn every_stored_value_is_masked_once_the_vault_changed_or_was_opened() {
    let fixture = Fixture::new();
    let ann = UserId::from("ann");
    let masked = async |text: &str, max_age: Duration| {
        fixture.vaults.load_masks(&ann, max_age).await;
        fixture.masks.mask_text(text).into_owned()
    };
    let own = fixture.create("ann", &["key"]).await;
    store(&own, "unbound-value").await;
    assert_eq!(
        masked("unbound-value", Duration::ZERO).await,
        "[secret TOKEN]"
    );
    let expired = NewSecret {
        expires: Some(lango_core::Timestamp(SystemClock.now().0 + 30)),
        ..NewSecret::new(SecretValue::new("expired-value"))
    };
    own.set(&SecretName::new("OLD").unwrap(), expired)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(40)).await;
    let minute = Duration::from_secs(60);
    assert_eq!(masked("expired-value", minute).await, "expired-value");
    assert_eq!(
        masked("expired-value", Duration::ZERO).await,
        "[secret OLD]"
    );
    assert_eq!(fixture.uses("ann").await, 0);
}

#[tokio::test]
async fn the_values_of_a_locked_vault_are_masked_after_it_was_opened() {
    let fixture = Fixture::new();
    let bob = UserId::from("bob");
    let own = fixture.create("bob", &["other-key"]).await;
    store(&own, "value-of-bob").await;
    fixture.vaults.load_masks(&bob, Duration::ZERO).await;
    assert_eq!(fixture.masks.mask_text("value-of-bob"), "value-of-bob");
    fixture.vaults.store_open(&bob, own).await;
    fixture.vaults.load_masks(&bob, Duration::ZERO).await;
    assert_eq!(fixture.masks.mask_text("value-of-bob"), "[secret TOKEN]");
}

#[tokio::test]
async fn a_removed_binding_ends_immediately() {
    let fixture = Fixture::new();
    let ann = UserId::from("ann");
    let own = fixture.create("ann", &["key"]).await;
    store(&own, "value-of-ann").await;
    let secret = bound(binding("exec"));
    let refused = fixture
        .vaults
        .resolve(&SecretUser::from(&ann), &secret)
        .await;
    assert_eq!(
        refused.unwrap_err(),
        SecretError::NotBound {
            name: secret.name.clone()
        }
    );
    own.bind(&secret.name, &secret.binding).await.unwrap();
    fixture
        .vaults
        .resolve(&SecretUser::from(&ann), &secret)
        .await
        .unwrap();
    let elsewhere = bound(binding("mcp:x"));
    let refused = fixture
        .vaults
        .resolve(&SecretUser::from(&ann), &elsewhere)
        .await;
    assert!(matches!(refused, Err(SecretError::NotBound { .. })));
    own.unbind(&secret.name, &secret.binding).await.unwrap();
    let refused = fixture
        .vaults
        .resolve(&SecretUser::from(&ann), &secret)
        .await;
    assert!(matches!(refused, Err(SecretError::NotBound { .. })));
}

#[tokio::test]
async fn equal_uses_are_recorded_once_a_minute() {
    let fixture = Fixture::new();
    let ann = UserId::from("ann");
    let own = fixture.create("ann", &["key"]).await;
    store(&own, "value-of-ann").await;
    for tool in ["exec", "mcp:x"] {
        let secret = bound(binding(tool));
        own.bind(&secret.name, &secret.binding).await.unwrap();
        for _ in 0..50 {
            fixture
                .vaults
                .resolve(&SecretUser::from(&ann), &secret)
                .await
                .unwrap();
        }
    }
    assert_eq!(fixture.uses("ann").await, 2);
    let agent = SecretUser {
        user: ann.clone(),
        session: None,
        actor: Some("agent operator in session s_1".into()),
    };
    let secret = bound(binding("exec"));
    fixture.vaults.resolve(&agent, &secret).await.unwrap();
    assert_eq!(fixture.uses("ann").await, 3);
}

#[tokio::test]
async fn blocked_placeholders_are_recorded_once_a_minute() {
    let fixture = Fixture::new();
    let own = fixture.create("ann", &["key"]).await;
    store(&own, "value-of-ann").await;
    let secret = bound(binding("exec"));
    let agent = SecretUser {
        actor: Some("agent operator in session s_1".into()),
        ..SecretUser::from(&UserId::from("ann"))
    };
    for host in 0..50 {
        let place = format!("the body to evil{host}.example:443");
        let logged = fixture.vaults.log_blocked(&agent, &secret.name, &place);
        logged.await;
    }
    let expected = format!("{} (the body to evil0.example:443)", secret.name);
    assert_eq!(fixture.subjects("ann", "blocked").await, [expected]);
}

#[tokio::test]
async fn a_locked_vault_says_how_to_unlock_it() {
    let fixture = Fixture::new();
    let ann = UserId::from("ann");
    let own = fixture.create("ann", &["elsewhere"]).await;
    store(&own, "value-of-ann").await;
    // Without a binding there is no need to unlock it.
    assert!(
        fixture
            .vaults
            .bound_secrets(&ann, "exec")
            .await
            .unwrap()
            .is_empty()
    );
    let secret = bound(binding("exec"));
    own.bind(&secret.name, &secret.binding).await.unwrap();
    for refused in [
        fixture.vaults.bound_secrets(&ann, "exec").await.err(),
        fixture
            .vaults
            .resolve(&SecretUser::from(&ann), &secret)
            .await
            .err(),
    ] {
        let text = refused.unwrap().to_string();
        assert!(text.contains("`vault.keyFile`"), "{text}");
    }
}

#[tokio::test]
async fn a_new_master_key_is_found_without_a_restart() {
    let fixture = Fixture::new();
    let ann = UserId::from("ann");
    let own = fixture.create("ann", &["key"]).await;
    store(&own, "value-of-ann").await;
    let secret = bound(binding("exec"));
    own.bind(&secret.name, &secret.binding).await.unwrap();
    fixture
        .vaults
        .resolve(&SecretUser::from(&ann), &secret)
        .await
        .unwrap();
    let key = key_file::read(&fixture.folder.path().join("key")).unwrap();
    own.rotate_master(vec![UnlockSecret::KeyFile(key)], &[])
        .await
        .unwrap();
    fixture
        .vaults
        .resolve(&SecretUser::from(&ann), &secret)
        .await
        .unwrap();
}
