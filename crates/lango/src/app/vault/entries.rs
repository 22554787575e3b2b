//! The entries of an open vault: finds them by name, stores values, and describes what changed.

use super::{SERVER_TOKEN, VaultAccess};
use crate::app::{Failure, token};
use lango_vault::{
    OpenVault, SealedVault, SecretEntry, SecretKind, SecretName, SecretValue, VaultError,
    date_and_time,
};

/// Returns the entry with this name; `None` if there is none.
pub async fn find_entry(
    open: &OpenVault,
    name: &SecretName,
) -> Result<Option<SecretEntry>, Failure> {
    let entries = open.entries().await?;
    Ok(entries.into_iter().find(|entry| entry.name == *name))
}

/// Returns the entry with this name; fails if there is none.
pub async fn existing_entry(open: &OpenVault, name: &SecretName) -> Result<SecretEntry, Failure> {
    let entry = find_entry(open, name).await?;
    Ok(entry.ok_or_else(|| VaultError::NotFound {
        name: name.to_string(),
    })?)
}

/// Returns whether the vault has this value under this name. An expired value counts as absent.
pub(super) async fn has_value(
    open: &OpenVault,
    name: &SecretName,
    value: &SecretValue,
) -> Result<bool, Failure> {
    match open.value(name).await {
        Ok(stored) => Ok(stored.expose() == value.expose()),
        Err(VaultError::NotFound { .. } | VaultError::Expired { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Fails if the secret is the server's token and the server would not accept its value.
pub fn check_token(name: &SecretName, value: &SecretValue) -> Result<(), Failure> {
    if name.as_str() == SERVER_TOKEN {
        token::check(value.expose_text().unwrap_or_default())?;
    }
    Ok(())
}

/// Describes an entry that was just stored.
pub fn describe_stored(entry: &SecretEntry) -> String {
    let name = &entry.name;
    match entry.version {
        1 => format!("stored {name}"),
        version => format!("stored {name} (version {version}; the previous value was deleted)"),
    }
}

/// Returns a warning if a new value does not expire although the previous one did.
pub fn lost_expiry_warning(
    access: &VaultAccess,
    old: Option<&SecretEntry>,
    new: &SecretEntry,
) -> Option<String> {
    let before = old?.expires.filter(|_| new.expires.is_none())?;
    Some(format!(
        "{} no longer expires; the previous value would have expired on {}. `{} rotate` keeps the lifetime",
        new.name,
        date_and_time(before),
        access.command()
    ))
}

/// Deletes a secret. The key of a wallet is deleted only if the user confirmed it.
pub async fn remove_secret(
    open: &OpenVault,
    name: &SecretName,
    is_confirmed: bool,
) -> Result<(), Failure> {
    let entry = find_entry(open, name).await?;
    let is_wallet = entry.is_some_and(|entry| entry.kind == SecretKind::PaymentKey);
    if is_wallet && !is_confirmed {
        let message =
            format!("`{name}` is the key of a wallet: without it, the wallet's funds are lost");
        return Err(Failure::usage(message).next(format!(
            "if the wallet is empty, run `lango secrets rm {name} --yes`"
        )));
    }
    Ok(open.remove(name).await?)
}

/// Describes what deleting a vault would lose.
pub fn describe_contents(sealed: &SealedVault) -> String {
    let entries = sealed.entries();
    let is_wallet = |entry: &&SecretEntry| entry.kind == SecretKind::PaymentKey;
    let wallets: Vec<&str> = sealed
        .entries()
        .filter(is_wallet)
        .map(|entry| entry.name.as_str())
        .collect();
    let count = entries.count();
    match wallets.as_slice() {
        [] => format!(" with {count} secrets"),
        wallets => format!(
            " with {count} secrets, among them the keys of the wallets {}",
            wallets.join(", ")
        ),
    }
}
