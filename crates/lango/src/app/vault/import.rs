//! Moves keys into the vault: from environment variables, and from the token file that lango wrote itself.

use super::entries::has_value;
use super::{SERVER_TOKEN, find_entry, key_settings, secret_of};
use crate::app::{Failure, token};
use lango_config::{NEW_VAULT_PASSPHRASE, SERVER_VAULT_PASSPHRASE, Settings, VAULT_PASSPHRASE};
use lango_models::known_providers;
use lango_vault::{NewSecret, OpenVault, SecretEntry, SecretKind, SecretName, SecretValue};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The result of importing a value.
pub enum ImportResult {
    Stored {
        new: Box<SecretEntry>,
        old: Option<Box<SecretEntry>>,
    },
    AlreadyStored,
    /// The vault has a different value, which was not replaced.
    Different,
}

/// Whether an import may replace a different value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Allowed,
    Never,
}

/// Stores the value of a variable, and reads it back. An existing secret keeps its kind.
pub async fn import_variable(
    open: &OpenVault,
    name: &SecretName,
    value: SecretValue,
    replace: Replace,
) -> Result<ImportResult, Failure> {
    let is_stored = find_entry(open, name).await?.is_some();
    if is_stored && replace == Replace::Never && !has_value(open, name, &value).await? {
        return Ok(ImportResult::Different);
    }
    store(open, name, value, SecretKind::ApiKey).await
}

/// Stores the server's token from its file under [`SERVER_TOKEN`]. The file stays, see [`delete_token_file`].
pub async fn import_token(open: &OpenVault, file: &Path) -> Result<ImportResult, Failure> {
    let name = SecretName::new(SERVER_TOKEN)?;
    let value = SecretValue::new(token::server_token(file)?);
    store(open, &name, value, SecretKind::Token).await
}

/// Deletes the token file after its token was imported.
pub fn delete_token_file(file: &Path) -> Result<(), Failure> {
    std::fs::remove_file(file).map_err(|error| {
        let message = format!("`{}` cannot be deleted: {error}", file.display());
        Failure::failed(message).next("delete it yourself; its token is in the vault")
    })
}

/// Stores a value unless the vault already has it, and reads it back.
async fn store(
    open: &OpenVault,
    name: &SecretName,
    value: SecretValue,
    kind: SecretKind,
) -> Result<ImportResult, Failure> {
    if has_value(open, name, &value).await? {
        return Ok(ImportResult::AlreadyStored);
    }
    let old = find_entry(open, name).await?;
    let secret = NewSecret {
        kind: old.is_none().then_some(kind),
        ..NewSecret::new(SecretValue::new(value.expose()))
    };
    let new = open.set(name, secret).await?;
    if !has_value(open, name, &value).await? {
        let message = format!("{name} was stored, but reading it back gave a different value");
        return Err(Failure::failed(message).next("run the command again"));
    }
    Ok(ImportResult::Stored {
        new: Box::new(new),
        old: old.map(Box::new),
    })
}

/// Returns the variables to import with their values: the named ones, or those of the configuration that are set.
pub fn variables(
    settings: &Settings,
    env: &BTreeMap<OsString, OsString>,
    names: &[String],
) -> Result<Vec<(SecretName, SecretValue)>, Failure> {
    let value = |name: &str| {
        let value = env.get(OsStr::new(name)).filter(|value| !value.is_empty());
        value.map(|value| SecretValue::new(value.as_bytes()))
    };
    let mut found = Vec::new();
    for name in names {
        refuse_passphrase(name)?;
        let value = value(name).ok_or_else(|| {
            let message = format!("the environment variable `{name}` is not set");
            Failure::usage(message).next(format!("lango secrets set {name}"))
        })?;
        found.push((SecretName::new(name)?, value));
    }
    if names.is_empty() {
        let configured = configured_variables(settings);
        let set = configured.iter().filter_map(|name| {
            let value = value(name)?;
            Some((SecretName::new(name).ok()?, value))
        });
        found.extend(set);
    }
    Ok(found)
}

/// Refuses vault passphrases: a passphrase inside the vault that it opens could not be read.
fn refuse_passphrase(variable: &str) -> Result<(), Failure> {
    let own = [
        VAULT_PASSPHRASE,
        SERVER_VAULT_PASSPHRASE,
        NEW_VAULT_PASSPHRASE,
    ];
    if !own.contains(&variable) {
        return Ok(());
    }
    let message = format!("{variable} holds the passphrase of a vault and cannot be stored in one");
    Err(Failure::usage(message).next(
        "use `lango secrets methods add --key-file PATH` or `--keyring` to unlock the vault without a variable",
    ))
}

/// Returns the names of all variables that hold keys: those of known providers, and those that the configuration
/// names.
fn configured_variables(settings: &Settings) -> BTreeSet<String> {
    let known = known_providers().iter();
    let known = known.flat_map(|known| known.keys.iter().map(String::as_str));
    let named = key_settings(settings).into_iter();
    let named = named.map(|setting| setting.value);
    let variables = known.chain(named.filter(|name| secret_of(name).is_none()));
    variables.map(str::to_owned).collect()
}
