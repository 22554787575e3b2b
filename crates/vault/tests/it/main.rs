//! Tests the vault with real stores: storing secrets, detecting tampering, and concurrent changes.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod bindings;
mod key_files;
mod methods;
mod races;
mod raw_store;
mod secrets;
mod tampering;
mod tools;

use lango_core::{Timestamp, UserId, VaultStore};
use lango_testkit::clock_and_ids::ManualClock;
use lango_vault::{
    Key, NewSecret, OpenVault, SecretName, SecretValue, UnlockSecret, Vault, VaultParts,
};
use std::sync::Arc;

/// A time on 2026-11-16, in milliseconds.
const NOW: u64 = 1_794_787_200_000;

fn vault_of(owner: &str, store: Arc<dyn VaultStore>) -> (Vault, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    clock.set(Timestamp(NOW));
    let vault = Vault::new(VaultParts {
        store,
        clock: Arc::clone(&clock) as _,
        owner: UserId::from(owner),
        actor: "a test".into(),
    });
    (vault, clock)
}

/// Returns a secret that unlocks a vault cheaply.
fn key_file(byte: u8) -> UnlockSecret {
    UnlockSecret::KeyFile(Key::new([byte; 32]))
}

fn passphrase(text: &str) -> UnlockSecret {
    UnlockSecret::Passphrase(SecretValue::new(text))
}

fn name(name: &str) -> SecretName {
    SecretName::new(name).unwrap()
}

fn new(value: &str) -> NewSecret {
    NewSecret::new(SecretValue::new(value))
}

async fn set(vault: &OpenVault, secret: &str, value: &str) -> u64 {
    vault.set(&name(secret), new(value)).await.unwrap().version
}

async fn value(vault: &OpenVault, secret: &str) -> Result<String, String> {
    let value = vault.value(&name(secret)).await;
    let value = value.map(|value| value.expose_text().unwrap().to_owned());
    value.map_err(|error| error.to_string())
}
