//! `lango secrets import-env`: takes keys out of environment variables, and out of plain files that lango wrote itself.

use super::Secrets;
use crate::config::Settings;
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::token;
use crate::vault::{self, SERVER_TOKEN};
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
        let message = "none of the variables that the configuration names is set, and there is no plain key file";
        return Err(Failure::new(Exit::Usage, message).next("lango secrets import-env NAME"));
    }
    let open = secrets.open_or_create().await?;
    let mut has_variables = false;
    for (name, value) in variables {
        store(&open, &name, value, SecretKind::ApiKey).await?;
        has_variables = true;
    }
    if takes_grants {
        vault::encrypt_grants(&open, &grants).await?;
        screen::print(&format!("encrypted {}", grants.display()))?;
    }
    if takes_token {
        let name = SecretName::new(SERVER_TOKEN)?;
        let value = SecretValue::new(token::server_token(&token_file)?);
        store(&open, &name, value, SecretKind::Token).await?;
        // The record was read back, so the file is the only plain copy left.
        std::fs::remove_file(&token_file).map_err(|error| {
            let message = format!("`{}` cannot be deleted: {error}", token_file.display());
            Failure::new(Exit::Failed, message)
                .next("delete it yourself; its token is in the vault")
        })?;
        screen::print(&format!("deleted {}", token_file.display()))?;
    }
    if has_variables {
        screen::say(
            "now name the secrets in the configuration, such as providers.openai.apiKeyEnv = \"secret:OPENAI_API_KEY\", \
             and take the variables out of your shell's start-up files",
        );
    }
    Ok(())
}

/// Returns the variables to import with their values: the named ones, or those of the configuration that are set.
fn variables(
    secrets: &Secrets,
    names: &[String],
) -> Result<Vec<(SecretName, SecretValue)>, Failure> {
    let env = &secrets.surroundings.env;
    let value = |name: &str| {
        let value = env.get(OsStr::new(name)).filter(|value| !value.is_empty());
        value.map(|value| SecretValue::new(value.as_bytes()))
    };
    let mut found = Vec::new();
    for name in names {
        let value = value(name).ok_or_else(|| {
            let message = format!("the environment variable `{name}` is not set");
            Failure::new(Exit::Usage, message).next(format!("lango secrets set {name}"))
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

/// Returns the names of all variables that have keys: those of providers that lango knows, and those that the
/// configuration names.
fn configured_variables(settings: &Settings) -> BTreeSet<String> {
    let known = known_providers().iter();
    let known = known.flat_map(|known| known.keys.iter().map(String::as_str));
    let named = vault::key_settings(settings).into_iter();
    let named = named.map(|setting| setting.value);
    let variables = known.chain(named.filter(|name| vault::secret_of(name).is_none()));
    variables.map(str::to_owned).collect()
}

/// Stores a value unless the vault has it already, and reads it back.
async fn store(
    open: &OpenVault,
    name: &SecretName,
    value: SecretValue,
    kind: SecretKind,
) -> Result<(), Failure> {
    let stored = match open.value(name).await {
        Ok(stored) if stored.expose() == value.expose() => {
            screen::print(&format!("{name} is in the vault already"))?;
            return Ok(());
        }
        Ok(_) | Err(VaultError::NotFound { .. } | VaultError::Expired { .. }) => {
            let copy = SecretValue::new(value.expose());
            let secret = NewSecret {
                kind: Some(kind),
                ..NewSecret::new(copy)
            };
            open.set(name, secret).await?;
            open.value(name).await?
        }
        Err(error) => return Err(error.into()),
    };
    if stored.expose() != value.expose() {
        let message = format!("{name} was stored and is not what was read back");
        return Err(Failure::new(Exit::Failed, message).next("run the command again"));
    }
    screen::print(&format!("stored {name}"))?;
    Ok(())
}
