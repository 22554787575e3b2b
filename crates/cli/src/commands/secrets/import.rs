//! `lango secrets import-env`: moves keys into the vault, from environment variables and from plain files that lango
//! wrote itself.

use super::{Secrets, find, print_stored, warn_about_lost_expiry};
use crate::screen;
use lango::app::Failure;
use lango::app::token;
use lango::app::vault::{self, SERVER_TOKEN};
use lango_config::{NEW_VAULT_PASSPHRASE, SERVER_VAULT_PASSPHRASE, Settings, VAULT_PASSPHRASE};
use lango_mcp::is_sealed;
use lango_models::known_providers;
use lango_vault::{NewSecret, OpenVault, SecretKind, SecretName, SecretValue, VaultError};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Runs the command.
pub async fn import(secrets: &Secrets, names: &[String]) -> Result<(), Failure> {
    let variables = variables(secrets, names)?;
    let token_file = secrets.loaded.paths.server_token();
    let takes_token = names.is_empty() && token_file.exists();
    let grants = secrets.loaded.paths.mcp_grants();
    let takes_grants = names.is_empty() && grants.exists() && !is_sealed(&grants);
    if variables.is_empty() && !takes_token && !takes_grants {
        let message = "none of the variables named in the configuration is set, and there is no plain key file";
        return Err(Failure::usage(message).next("lango secrets import-env NAME"));
    }
    let open = secrets.open_or_create().await?;
    let import = Import {
        secrets,
        open: &open,
        is_named: !names.is_empty(),
    };
    let mut has_variables = false;
    for (name, value) in variables {
        import.variable(&name, value).await?;
        has_variables = true;
    }
    if takes_grants {
        vault::encrypt_grants(&open, &grants).await?;
        screen::print(&format!("encrypted {}", grants.display()))?;
    }
    if takes_token {
        let name = SecretName::new(SERVER_TOKEN)?;
        let value = SecretValue::new(token::server_token(&token_file)?);
        import.store(&name, value, SecretKind::Token).await?;
        // The stored record was read back, so the file is the only plain copy left.
        std::fs::remove_file(&token_file).map_err(|error| {
            let message = format!("`{}` cannot be deleted: {error}", token_file.display());
            Failure::failed(message).next("delete it yourself; its token is in the vault")
        })?;
        screen::print(&format!("deleted {}", token_file.display()))?;
        screen::say(&format!(
            "existing callers can keep using their token. No command prints it; for other callers, set a token of your choice: \
             `openssl rand -hex 32 | {} rotate {SERVER_TOKEN}`",
            secrets.access.command()
        ));
    }
    if has_variables {
        screen::say(
            "now name the secrets in the configuration, such as providers.openai.apiKeyEnv = \"secret:OPENAI_API_KEY\", \
             and remove the variables from your shell's start-up files",
        );
    }
    Ok(())
}

/// Returns the variables to import with their values: the named ones, or those of the configuration that are set.
fn variables(
    secrets: &Secrets,
    names: &[String],
) -> Result<Vec<(SecretName, SecretValue)>, Failure> {
    let env = &secrets.process_env.env;
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
        let configured = configured_variables(&secrets.loaded.settings);
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
    let named = vault::key_settings(settings).into_iter();
    let named = named.map(|setting| setting.value);
    let variables = known.chain(named.filter(|name| vault::secret_of(name).is_none()));
    variables.map(str::to_owned).collect()
}

/// The vault that values are imported into.
struct Import<'a> {
    secrets: &'a Secrets,
    open: &'a OpenVault,
    /// Whether the user named the variables.
    is_named: bool,
}

impl Import<'_> {
    /// Stores the value of a variable. An existing different value is replaced only if the user named the variable.
    async fn variable(&self, name: &SecretName, value: SecretValue) -> Result<(), Failure> {
        let is_stored = find(self.open, name).await?.is_some();
        if is_stored && !self.is_named && !self.has(name, &value).await? {
            let command = self.secrets.access.command();
            screen::print(&format!(
                "skipped {name}: the vault has a different value; `{command} import-env {name}` replaces it"
            ))?;
            return Ok(());
        }
        self.store(name, value, SecretKind::ApiKey).await
    }

    /// Stores a value unless the vault already has it, and reads it back. An existing secret keeps its kind.
    async fn store(
        &self,
        name: &SecretName,
        value: SecretValue,
        kind: SecretKind,
    ) -> Result<(), Failure> {
        if self.has(name, &value).await? {
            screen::print(&format!("{name} is already in the vault"))?;
            return Ok(());
        }
        let old = find(self.open, name).await?;
        let secret = NewSecret {
            kind: old.is_none().then_some(kind),
            ..NewSecret::new(SecretValue::new(value.expose()))
        };
        let entry = self.open.set(name, secret).await?;
        if !self.has(name, &value).await? {
            let message = format!("{name} was stored, but reading it back gave a different value");
            return Err(Failure::failed(message).next("run the command again"));
        }
        print_stored(&entry)?;
        warn_about_lost_expiry(self.secrets, old.as_ref(), &entry);
        Ok(())
    }

    /// Returns whether the vault has this value.
    async fn has(&self, name: &SecretName, value: &SecretValue) -> Result<bool, Failure> {
        match self.open.value(name).await {
            Ok(stored) => Ok(stored.expose() == value.expose()),
            Err(VaultError::NotFound { .. } | VaultError::Expired { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
