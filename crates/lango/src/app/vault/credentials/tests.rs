//! Credentials over a real vault in memory.

use super::*;
use crate::app::vault::{OsKeyring, VaultAccess};
use lango_config::StoreLocation;
use lango_engine::SystemClock;
use lango_store::Store;
use lango_vault::{NewSecret, OpenVault, UnlockSecret, Vault, VaultParts, key_file};
use tempfile::TempDir;

/// Returns credentials that unlock with a key file, and the same vault as another process sees it.
async fn fixture(folder: &TempDir) -> (Credentials, Vault, OpenVault) {
    let (database, key) = (folder.path().join("database"), folder.path().join("key"));
    std::fs::write(&database, "any").unwrap();
    let unlock = UnlockSecret::KeyFile(key_file::create(&key).unwrap());
    let user = UserId::from("ann");
    let vault = Vault::new(VaultParts {
        store: Arc::new(Store::in_memory()),
        clock: Arc::new(SystemClock),
        owner: user.clone(),
        actor: "a test".into(),
    });
    let access = VaultAccess {
        vault,
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
    let vault = access.vault.clone();
    let open = access.vault.create(vec![unlock]).await.unwrap();
    let masks = Masks::default();
    let credentials = Credentials {
        env: BTreeMap::from([("PLAIN".into(), " plain-canary\n".into())]),
        user,
        vaults: Arc::new(UserVaults::new(access, masks.clone())),
        masks,
        stored: StoredKeys::default(),
        listed: BTreeSet::new(),
        cache: Arc::default(),
        uses: Mutex::default(),
        cache_time: Duration::ZERO,
    };
    (credentials, vault, open)
}

async fn set(open: &OpenVault, value: &str) {
    let name = SecretName::new("KEY").unwrap();
    let secret = NewSecret::new(SecretValue::new(value));
    open.set(&name, secret).await.unwrap();
}

async fn value(credentials: &Credentials, setting: &str) -> String {
    let value = credentials.look_up(setting).await.unwrap();
    value.expose_text().unwrap().to_owned()
}

#[tokio::test]
async fn a_rotated_secret_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (mut credentials, vault, open) = fixture(&folder).await;
    set(&open, "first-canary").await;
    assert_eq!(value(&credentials, "secret:KEY").await, "first-canary");
    set(&open, "second-canary").await;
    assert_eq!(value(&credentials, "secret:KEY").await, "second-canary");
    let masked = credentials
        .masks
        .mask_text("first-canary second-canary")
        .into_owned();
    assert_eq!(masked, "[secret KEY] [secret KEY]");
    // Both uses fall within a minute, so the log records one of them.
    let events = vault.events(1000).await.unwrap();
    let used = events.iter().filter(|event| &*event.action == "used");
    assert_eq!(used.count(), 1);
    credentials.cache_time = CACHE_TIME;
    set(&open, "third-canary").await;
    assert_eq!(value(&credentials, "secret:KEY").await, "second-canary");
}

#[tokio::test]
async fn a_missing_value_is_an_error_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let (credentials, _, _) = fixture(&folder).await;
    assert_eq!(value(&credentials, "PLAIN").await, "plain-canary");
    let error = credentials.look_up("ABSENT").await.unwrap_err().to_string();
    assert!(error.contains("`ABSENT` is not set"), "{error}");
    let error = credentials
        .look_up("secret:ABSENT")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("lango secrets set ABSENT"), "{error}");
}
