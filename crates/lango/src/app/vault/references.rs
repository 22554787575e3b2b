//! The settings that name a key or token: an environment variable, or `secret:NAME` for a secret in the vault.

use super::{PromptMode, VaultAccess};
use crate::app::failure::{Failure, FailureKind};
use crate::app::token;
use lango_config::Settings;
use lango_core::RecordSelection;
use lango_vault::{SecretName, VaultError};

/// The prefix of a setting that names a secret.
const PREFIX: &str = "secret:";

/// The name of the secret with the server's token.
pub const SERVER_TOKEN: &str = "lango-server-token";

/// Returns the name of the secret in a setting, if it names one.
pub fn secret_of(setting: &str) -> Option<&str> {
    setting.strip_prefix(PREFIX)
}

/// A setting that names a key or token.
pub struct KeySetting<'a> {
    /// The key of the configuration, such as `providers.openai.apiKeyEnv`.
    pub key: String,
    /// Its value: the name of a variable, or `secret:NAME`.
    pub value: &'a str,
    /// The model provider whose key this is, if any.
    provider: Option<&'a str>,
}

impl KeySetting<'_> {
    /// Returns whether the key is needed with these settings. The key of a model provider is not needed if other
    /// providers' models are configured.
    pub fn is_needed_now(&self, settings: &Settings) -> bool {
        let Some(provider) = self.provider else {
            return true;
        };
        let Some(model) = &settings.agent.model else {
            return true;
        };
        let mut models = std::iter::once(model).chain(&settings.agent.fallback);
        models.any(|model| model.split('/').next() == Some(provider))
    }
}

/// Returns all settings that name a key or token.
pub fn key_settings(settings: &Settings) -> Vec<KeySetting<'_>> {
    let providers = settings.providers.iter().map(|(id, provider)| KeySetting {
        key: format!("providers.{id}.apiKeyEnv"),
        value: provider.api_key_env.as_deref().unwrap_or_default(),
        provider: Some(id),
    });
    let searches = settings.search.providers.iter().map(|(id, search)| {
        let key = format!("search.providers.{id}.apiKeyEnv");
        (key, search.api_key_env.as_deref())
    });
    let servers = settings.mcp.servers.iter().flat_map(|(id, server)| {
        let named = |name: &str| format!("mcp.servers.{id}.{name}");
        [
            (named("tokenEnv"), server.token_env.as_deref()),
            (
                named("clientSecretEnv"),
                server.client_secret_env.as_deref(),
            ),
        ]
    });
    let programs = settings.mcp.servers.iter().flat_map(|(id, server)| {
        let secrets = server.env.0.iter().filter_map(move |(variable, value)| {
            let value = value
                .as_deref()
                .filter(|value| secret_of(value).is_some())?;
            Some((format!("mcp.servers.{id}.env.{variable}"), Some(value)))
        });
        secrets.collect::<Vec<_>>()
    });
    let remote = settings.a2a.remote_agents.0.iter().flat_map(|agent| {
        let named = |field: &str| format!("a2a.remoteAgents: {field} of `{}`", agent.name);
        let headers = agent.headers_env.iter();
        let headers = headers.map(|(name, variable)| {
            let key = named(&format!("headersEnv.{name}"));
            (key, Some(variable.as_str()))
        });
        let token = (named("tokenEnv"), agent.token_env.as_deref());
        std::iter::once(token).chain(headers).collect::<Vec<_>>()
    });
    let others = searches.chain(servers).chain(programs).chain(remote);
    let others = others.filter_map(|(key, value)| {
        Some(KeySetting {
            key,
            value: value?,
            provider: None,
        })
    });
    providers
        .filter(|provider| !provider.value.is_empty())
        .chain(others)
        .collect()
}

impl VaultAccess {
    /// Returns the server's token, if the vault has it.
    pub async fn server_token(&self) -> Result<Option<String>, Failure> {
        let sealed = self.read(RecordSelection::None).await?;
        let mut names = sealed.iter().flat_map(|sealed| sealed.entries());
        if !names.any(|entry| entry.name.as_str() == SERVER_TOKEN) {
            return Ok(None);
        }
        let open = self.open(PromptMode::Allowed).await;
        let open = open.map_err(|failure| match failure.kind {
            FailureKind::Config => failure.at("the server's token is in the vault"),
            _ => failure,
        })?;
        let value = match open.use_value(&SecretName::new(SERVER_TOKEN)?).await {
            Err(VaultError::NotFound { .. }) => return Ok(None),
            value => value?,
        };
        let token = value.expose_text().unwrap_or_default();
        token::check(token)?;
        Ok(Some(token.to_owned()))
    }
}
