//! The keys of providers: from the variable or secret that the configuration names, from the usual variables of a known
//! provider, or from the file that `lango setup` writes.

use super::{ModelSelector, known_provider};
use crate::app::failure::Failure;
use crate::app::provider_address::with_scheme;
use crate::app::vault::secret_of;
use lango_models::{KnownProvider, OfflineModel};
use lango_secrets::Credential;

/// The key of a provider, and where it comes from.
#[derive(Debug, Clone, Default)]
pub struct ProviderKey {
    /// `None` if the provider needs no key.
    pub credential: Option<Credential>,
    /// Where lango looked for the key; shown in errors.
    pub source: String,
}

impl ModelSelector<'_> {
    /// Returns the variable with the key of a provider, if one is set.
    pub(super) fn key_variable<'a>(&'a self, known: &'a KnownProvider) -> Option<&'a str> {
        let config = self.settings.providers.get(&known.id);
        let own = config.and_then(|config| config.api_key_env.as_ref());
        let variables = own.map_or(known.keys.as_slice(), std::slice::from_ref);
        let mut variables = variables.iter().map(String::as_str);
        variables.find(|variable| self.credentials.has(variable))
    }

    /// Returns the setting whose key a provider gets now, if there is one: a variable, or a secret of the vault.
    pub fn key_setting(&self, id: &str) -> Option<&str> {
        let mut settings = self.variables(id).into_iter();
        settings.find(|setting| self.credentials.has(setting))
    }

    /// Returns whether `lango setup` stored a key for this provider at its current address.
    pub(super) fn has_stored_key(&self, known: &KnownProvider) -> bool {
        let config = self.settings.providers.get(&known.id);
        let own = config.and_then(|config| config.base_url.as_deref());
        let address = with_scheme(own.unwrap_or(&known.base_url));
        address.is_ok_and(|address| self.credentials.find_stored(&known.id, &address).is_some())
    }

    /// Finds the key of a provider at this address. Fails if it needs one and has none.
    pub(super) fn find_key(&self, id: &str, address: &str) -> Result<ProviderKey, Failure> {
        let variables = self.variables(id);
        if let Some((variable, key)) = variables
            .iter()
            .find_map(|name| Some((name, self.credentials.find(name)?)))
        {
            let source = match secret_of(variable) {
                Some(secret) => {
                    format!("from {variable}; `lango secrets rotate {secret}` sets a new value")
                }
                None => format!("from {variable}"),
            };
            return Ok(ProviderKey {
                credential: Some(key),
                source,
            });
        }
        let names_secret = variables.iter().any(|name| secret_of(name).is_some());
        let stored = self.credentials.find_stored(id, address);
        if let Some(key) = stored.filter(|_| !names_secret) {
            let path = self.credentials.stored().path().display();
            return Ok(ProviderKey {
                credential: Some(key),
                source: format!("from {path}; `lango setup --provider {id}` replaces it"),
            });
        }
        let Some(first) = variables.first() else {
            // A key may be in the file. A request without it would only fail for another reason.
            let runs_here = known_provider(id).is_some_and(|known| known.probe.is_some());
            let config = self.settings.providers.get(id);
            if !runs_here || config.is_some_and(|config| config.base_url.is_some()) {
                self.credentials.stored().check()?;
            }
            return Ok(ProviderKey {
                credential: None,
                source: format!(
                    "none is set; `lango setup --provider {id}` stores one, or set providers.{id}.apiKeyEnv to its variable"
                ),
            });
        };
        let (state, give) = match secret_of(first) {
            Some(secret) => (
                "the vault has no such secret",
                format!("lango secrets set {secret}"),
            ),
            None => (
                "not set",
                format!("run `lango setup --provider {id}`, or export {first}=…"),
            ),
        };
        let mut message = format!(
            "`{id}` has no key: looked in {} ({state})",
            variables.join(", ")
        );
        let problem = self.credentials.stored().problem();
        if let Some(problem) = problem.filter(|_| !names_secret) {
            let path = self.credentials.stored().path().display();
            message.push_str(&format!(" and {path} (cannot be used: {})", problem.text));
            if let Some(next) = problem.next {
                return Err(Failure::config(message).next(next));
            }
        }
        Err(Failure::config(message).next(format!("{give}, or use -c agent.model=offline")))
    }

    /// Returns the settings that may have the key of a provider: variables, or a secret of the vault.
    fn variables(&self, id: &str) -> Vec<&str> {
        let config = self.settings.providers.get(id);
        let own = config.and_then(|config| config.api_key_env.as_deref());
        let has_address = config.is_some_and(|config| config.base_url.is_some());
        match (own, known_provider(id)) {
            (Some(variable), _) => vec![variable],
            // A known name with another address is the user's own server; it gets no key that was not configured for
            // it.
            (None, Some(known)) if !has_address => known.keys.iter().map(String::as_str).collect(),
            (None, _) => Vec::new(),
        }
    }

    /// Checks the key of a model before the first call, so that a locked vault is reported at the start.
    pub(super) async fn check_key(&self, model: &str) -> Result<(), Failure> {
        let id = model.split('/').next().unwrap_or_default();
        if model == OfflineModel::NAME {
            return Ok(());
        }
        let Some(key) = self.provider_settings(id)?.api_key else {
            return Ok(());
        };
        key.check().await.map_err(|error| {
            Failure::config(format!("`{id}` has no key: {error}"))
                .next("unlock the vault or store the key, or use -c agent.model=offline")
        })
    }
}
