//! `secret:NAME` in the configuration: wherever a setting names the environment variable that has a key or token, it can name a
//! secret of the vault instead.
//!
//! The values are put beside the environment's, under the whole text of the setting. No program is given them: the variables of
//! MCP servers have plain names only.

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

/// What a setting begins with that names a secret.
const PREFIX: &str = "secret:";

/// Under which name the token of the server is stored.
pub const SERVER_TOKEN: &str = "lango-server-token";

/// The secret that a setting names, if it names one.
pub fn secret_of(setting: &str) -> Option<&str> {
    setting.strip_prefix(PREFIX)
}

/// All settings that say where a key or token is: names of variables, and `secret:NAME`.
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
    /// The vault, after the values of secrets that the settings name were added to the environment.
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

    /// Adds the values of all secrets that the settings name. The vault is not touched if there are none. Where nobody may be
    /// asked, a locked vault is said to be so, and the settings count as not set.
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

    /// The token of the server, if it is in the vault.
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

/// The value of a secret; none if there is no such secret.
async fn existing(open: &OpenVault, name: &str) -> Result<Option<OsString>, Failure> {
    match open.use_value(&SecretName::new(name)?).await {
        Ok(value) => Ok(Some(OsStr::from_bytes(value.expose()).to_owned())),
        Err(VaultError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
