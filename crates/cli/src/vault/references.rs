//! Resolves `secret:NAME` in the configuration: a setting that names the environment variable of a key or token can
//! name a secret of the vault instead.
//!
//! The values are added to lango's copy of the environment under the whole text of the setting. No program receives
//! them: the variables of MCP servers have plain names only.

use super::{Asking, Opening, VaultAccess};
use crate::config::{Loaded, Settings, Surroundings};
use crate::exit::Failure;
use crate::screen;
use crate::sessions::Kept;
use lango_core::RecordSelection;
use lango_vault::{OpenVault, SecretName, VaultError};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The prefix of a setting that names a secret.
const PREFIX: &str = "secret:";

/// The name of the secret with the server's token.
pub const SERVER_TOKEN: &str = "lango-server-token";

/// Returns the name of the secret in a setting, if it names one.
pub fn secret_of(setting: &str) -> Option<&str> {
    setting.strip_prefix(PREFIX)
}

/// Returns all settings that refer to a key or token: names of variables, and `secret:NAME`.
pub fn key_settings(settings: &Settings) -> BTreeSet<&str> {
    let providers = settings.providers.values();
    let searches = settings.search.providers.values();
    let servers = settings.mcp.servers.values();
    let remote = settings.a2a.remote_agents.0.iter();
    let names = providers.filter_map(|provider| provider.api_key_env.as_deref());
    names
        .chain(searches.filter_map(|search| search.api_key_env.as_deref()))
        .chain(
            servers
                .clone()
                .filter_map(|server| server.token_env.as_deref()),
        )
        .chain(servers.filter_map(|server| server.client_secret_env.as_deref()))
        .chain(remote.filter_map(|agent| agent.token_env.as_deref()))
        .collect()
}

impl VaultAccess {
    /// Opens the vault access, and adds the values of secrets that the settings name to the environment.
    pub async fn resolved(
        loaded: &Loaded,
        surroundings: &mut Surroundings,
        kept: &Kept,
        asking: Asking,
    ) -> Result<Self, Failure> {
        let access = Self::new(loaded, surroundings, kept);
        let (settings, env) = (&loaded.settings, &mut surroundings.env);
        access.resolve(settings, env, asking).await?;
        Ok(access)
    }

    /// Adds the values of all secrets that the settings name; does not touch the vault if there are none. If lango must
    /// not ask and the vault is locked, prints a notice and treats the settings as not set.
    async fn resolve(
        &self,
        settings: &Settings,
        env: &mut BTreeMap<OsString, OsString>,
        asking: Asking,
    ) -> Result<(), Failure> {
        // A variable of such a name would pass for a secret.
        env.retain(|name, _| !name.as_bytes().starts_with(PREFIX.as_bytes()));
        let named = key_settings(settings).into_iter();
        let named: Vec<(&str, &str)> = named
            .filter_map(|setting| Some((setting, secret_of(setting)?)))
            .collect();
        if named.is_empty() {
            return Ok(());
        }
        let open = match (asking, self.read(RecordSelection::None).await?) {
            (_, None) => return Ok(()),
            (Asking::Allowed, Some(_)) => self.open(asking).await?,
            (Asking::Never, Some(_)) => match self.try_open(asking).await? {
                Opening::Open(open) => open,
                Opening::Locked(_) => {
                    screen::say(
                        "the vault is locked, so the secrets that the configuration names are not used; `lango secrets unlock`",
                    );
                    return Ok(());
                }
            },
        };
        for (setting, name) in named {
            match open.use_value(&SecretName::new(name)?).await {
                Ok(value) => {
                    env.insert(setting.into(), OsStr::from_bytes(value.expose()).to_owned());
                }
                Err(VaultError::NotFound { .. }) => {}
                // Only what needs the key fails.
                Err(error @ VaultError::Expired { .. }) => {
                    screen::say(&format!(
                        "{error}, so it is not used; `lango secrets rotate {name}` gives it a new value"
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns the server's token if it is in the vault.
    pub async fn server_token(&self) -> Result<Option<String>, Failure> {
        let sealed = self.read(RecordSelection::None).await?;
        let mut names = sealed.iter().flat_map(|sealed| sealed.entries());
        if !names.any(|entry| entry.name.as_str() == SERVER_TOKEN) {
            return Ok(None);
        }
        let open = self.open(Asking::Allowed).await?;
        let token = existing(&open, SERVER_TOKEN).await?;
        Ok(token.and_then(|token| token.into_string().ok()))
    }
}

/// Returns the value of a secret; `None` if it does not exist.
async fn existing(open: &OpenVault, name: &str) -> Result<Option<OsString>, Failure> {
    match open.use_value(&SecretName::new(name)?).await {
        Ok(value) => Ok(Some(OsStr::from_bytes(value.expose()).to_owned())),
        Err(VaultError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
