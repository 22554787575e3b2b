//! Selects the model: the configured one, else one whose key is in the environment, else one that runs on this
//! machine, else the built-in rules. A selected model that fails is never replaced by the rules.
//!
//! If only a key is set, the first of lango's preferences that its provider offers is selected. If the provider does
//! not list its models, lango still starts: it takes its first preference, and the first call reports what is wrong.

use crate::app::failure::Failure;
use crate::app::model_lists::{ListKey, ModelList, ModelLists};
use crate::app::notice::notice;
use crate::app::vault::{Credentials, secret_of};
use lango_config::{ProviderConfig, Settings};
use lango_core::Model;
use lango_models::{
    KnownProvider, MaskedModel, OfflineModel, Provider, ProviderFamily, ProviderSettings,
    ProviderTimeouts, ResilientModel, known_providers,
};
use lango_net::{PlainHttp, Url};
use lango_secrets::Credential;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a server on this machine may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(250);

/// The assumed context window of a model, in tokens, if it is unknown.
const CONTEXT_TOKENS: u64 = 128_000;

/// A model and why it was chosen.
pub struct ChosenModel {
    pub model: Arc<dyn Model>,
    pub reason: String,
    /// A warning to print before the first call.
    pub warning: Option<String>,
}

impl ChosenModel {
    fn new(model: impl Model + 'static, reason: String) -> Self {
        Self {
            model: Arc::new(model),
            reason,
            warning: None,
        }
    }

    /// Prints the warning, if there is one.
    pub fn warn(&self) {
        if let Some(warning) = &self.warning {
            notice(&format!("warning: {warning}"));
        }
    }
}

/// Selects and builds models from the configuration.
pub struct ModelSelector<'a> {
    pub settings: &'a Settings,
    pub credentials: &'a Arc<Credentials>,
    /// The models that providers offer.
    pub lists: &'a ModelLists,
}

impl ModelSelector<'_> {
    /// Selects the model of this run, with its fallbacks.
    pub async fn choose(&self) -> Result<ChosenModel, Failure> {
        let agent = &self.settings.agent;
        let first = match &agent.model {
            Some(name) => ChosenModel {
                model: self.model_by_name(name)?,
                reason: "agent.model".to_owned(),
                warning: None,
            },
            None => self.find().await?,
        };
        if agent.fallback.is_empty() {
            self.check_key(first.model.name()).await?;
        }
        let fallback: Vec<Arc<dyn Model>> = agent
            .fallback
            .iter()
            .map(|name| self.model_by_name(name))
            .collect::<Result<_, _>>()?;
        Ok(ChosenModel {
            model: self.resilient(first.model, fallback)?,
            ..first
        })
    }

    /// Returns the model that an agent specifies. It has no fallback, so that the agent's data goes to no other
    /// provider.
    pub fn agent_model(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        self.resilient(self.model_by_name(name)?, Vec::new())
    }

    fn resilient(
        &self,
        first: Arc<dyn Model>,
        fallback: Vec<Arc<dyn Model>>,
    ) -> Result<Arc<dyn Model>, Failure> {
        let unpriced = std::iter::once(&first)
            .chain(&fallback)
            .find(|model| model.info().price.is_none());
        if let (Some(model), Some(_)) = (unpriced, self.settings.agent.max_cost) {
            let message = format!(
                "the price of `{}` is not known, so agent.maxCost cannot be enforced",
                model.name()
            );
            return Err(Failure::config(message).next("set agent.maxTokens instead"));
        }
        let is_offline = first.name() == OfflineModel::NAME;
        let model: Arc<dyn Model> = if is_offline && fallback.is_empty() {
            first
        } else {
            Arc::new(ResilientModel::new(first, fallback))
        };
        let masks = self.credentials.masks().clone();
        Ok(Arc::new(MaskedModel::new(model, masks)))
    }

    /// Returns the model with this name, such as `openai/gpt-6.1-sol`.
    pub fn model_by_name(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        if name == OfflineModel::NAME || name == "offline" {
            return Ok(Arc::new(OfflineModel));
        }
        let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty())
        else {
            let message = format!("`{name}` is not the name of a model; write provider/model");
            return Err(
                Failure::config(message).next("run `lango models` to list the available models")
            );
        };
        Ok(Arc::new(self.provider(provider)?.model(model)))
    }

    /// Returns the provider with this name.
    pub fn provider(&self, id: &str) -> Result<Provider, Failure> {
        self.provider_settings(id).map(Provider::new)
    }

    /// Returns the address, API family and key of a provider.
    pub fn provider_settings(&self, id: &str) -> Result<ProviderSettings, Failure> {
        let known = known_providers().iter().find(|known| known.id == id);
        let config = self.settings.providers.get(id).cloned().unwrap_or_default();
        let kind = config.kind.or(known.map(|known| known.kind));
        let base_url = config
            .base_url
            .clone()
            .or(known.map(|known| known.base_url.clone()));
        let (Some(kind), Some(base_url)) = (kind, base_url) else {
            return Err(self.unknown_provider(
                id,
                known.is_some() || self.settings.providers.contains_key(id),
            ));
        };
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            let message = format!("providers.{id}.baseUrl must start with http:// or https://");
            return Err(Failure::config(message));
        }
        if config.api.is_some() && kind != ProviderFamily::OpenAi {
            let kind = kind.name();
            let message = format!(
                "providers.{id}.api is set, but providers of the kind `{kind}` have only one API"
            );
            return Err(Failure::config(message).next(format!(
                "remove providers.{id}.api, or set providers.{id}.kind to openai"
            )));
        }
        let (api_key, key_source) = self.key(id, &config, known)?;
        let plain_http = if config.allow_plain_http {
            PlainHttp::Allowed
        } else {
            PlainHttp::LocalOnly
        };
        if api_key.is_some()
            && let Ok(url) = Url::parse(&base_url)
            && let Err(refusal) = plain_http.check(&url)
        {
            let message = format!("providers.{id}.baseUrl: {refusal}");
            return Err(Failure::config(message).next(format!(
                "use https://, or set providers.{id}.allowPlainHttp = true if you trust the network in between"
            )));
        }
        Ok(ProviderSettings {
            id: id.to_owned(),
            kind,
            api: config.api,
            base_url,
            api_key,
            plain_http,
            masks: self.credentials.masks().clone(),
            key_source,
            stream: config.stream,
            context_tokens: config.context_tokens,
            default_context_tokens: known
                .and_then(|known| known.context_tokens)
                .or(Some(CONTEXT_TOKENS)),
            timeouts: ProviderTimeouts {
                idle: self.settings.agent.idle_timeout,
                ..ProviderTimeouts::default()
            },
        })
    }

    /// Returns the ids of available providers: configured ones, those with a key, and those that run on this machine.
    pub async fn reachable(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.settings.providers.keys().cloned().collect();
        for known in known_providers() {
            let is_available = match &known.probe {
                Some(address) => is_listening(address).await,
                None => self.key_variable(known).is_some(),
            };
            if is_available && !ids.contains(&known.id) {
                ids.push(known.id.clone());
            }
        }
        ids
    }

    /// Lists the models of a provider, for display.
    pub async fn list_models(&self, id: &str) -> Result<ModelList, Failure> {
        let (key, provider) = self.listed_provider(id)?;
        Ok(self.lists.list_for_display(&key, &provider).await)
    }

    fn listed_provider(&self, id: &str) -> Result<(ListKey, Provider), Failure> {
        let settings = self.provider_settings(id)?;
        let key = ListKey {
            provider: id.to_owned(),
            base_url: settings.base_url.clone(),
        };
        Ok((key, Provider::new(settings)))
    }

    /// Selects a model if none is configured.
    async fn find(&self) -> Result<ChosenModel, Failure> {
        let with_key = known_providers()
            .iter()
            .filter(|known| known.probe.is_none());
        for known in with_key {
            if let Some(variable) = self.key_variable(known) {
                return self.preferred(known, variable).await;
            }
        }
        for known in known_providers() {
            let Some(address) = &known.probe else {
                continue;
            };
            if !is_listening(address).await {
                continue;
            }
            // Something is listening; the list shows whether it is a model server.
            let provider = self.provider(&known.id)?;
            if let Ok(Ok(ids)) = tokio::time::timeout(PROBE_TIMEOUT, provider.list()).await
                && let Some(id) = ids.first()
            {
                let reason = format!("{} runs at {address}", known.id);
                return Ok(ChosenModel::new(provider.model(id), reason));
            }
        }
        Ok(ChosenModel::new(
            OfflineModel,
            "no model is set up".to_owned(),
        ))
    }

    /// Selects among the models that a provider offers.
    async fn preferred(
        &self,
        known: &KnownProvider,
        variable: &str,
    ) -> Result<ChosenModel, Failure> {
        let (key, provider) = self.listed_provider(&known.id)?;
        let list = self.lists.list_for_start(&key, &provider).await;
        let id = &known.id;
        if let Some(model) = known.preferred(&list.models) {
            let reason = format!("{variable} is set; lango's preferred model of {id}");
            return Ok(ChosenModel::new(provider.model(model), reason));
        }
        let first = known.prefer.first().map_or("", String::as_str);
        let model = provider.model(first);
        if list.models.is_empty() {
            let error = list.error.as_deref().unwrap_or("it is empty");
            let reason = format!(
                "{variable} is set; the models of {id} cannot be listed ({error}), so lango uses its first preference"
            );
            return Ok(ChosenModel::new(model, reason));
        }
        let reason = format!(
            "{variable} is set; {id} offers none of lango's preferred models, so lango uses its first preference"
        );
        let warning = format!(
            "{id} offers none of lango's preferred models, so lango uses {first}; run `lango models` to list its models, and choose one with -c agent.model={id}/…"
        );
        Ok(ChosenModel {
            warning: Some(warning),
            ..ChosenModel::new(model, reason)
        })
    }

    /// Returns the variable with the key of a provider, if one is set.
    fn key_variable<'a>(&'a self, known: &'a KnownProvider) -> Option<&'a str> {
        let config = self.settings.providers.get(&known.id);
        let own = config.and_then(|config| config.api_key_env.as_ref());
        let variables = own.map_or(known.keys.as_slice(), std::slice::from_ref);
        let mut variables = variables.iter().map(String::as_str);
        variables.find(|variable| self.credentials.has(variable))
    }

    fn key(
        &self,
        id: &str,
        config: &ProviderConfig,
        known: Option<&KnownProvider>,
    ) -> Result<(Option<Credential>, String), Failure> {
        let variables: Vec<&str> = match (&config.api_key_env, known) {
            (Some(variable), _) => vec![variable],
            // A known name with another address is the user's own server; it gets no key that was not configured for
            // it.
            (None, Some(known)) if config.base_url.is_none() => {
                known.keys.iter().map(String::as_str).collect()
            }
            (None, _) => Vec::new(),
        };
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
            return Ok((Some(key), source));
        }
        if variables.is_empty() {
            return Ok((
                None,
                format!("none is set; set providers.{id}.apiKeyEnv to its variable"),
            ));
        }
        let first = variables[0];
        let (state, give) = match secret_of(first) {
            Some(secret) => (
                "the vault has no such secret",
                format!("lango secrets set {secret}"),
            ),
            None => ("not set", format!("export {first}=…")),
        };
        let message = format!(
            "`{id}` has no key: looked in {} ({state})",
            variables.join(", ")
        );
        Err(Failure::config(message).next(format!("{give}, or use -c agent.model=offline")))
    }

    /// Checks the key of a model before the first call, so that a locked vault is reported at the start.
    async fn check_key(&self, model: &str) -> Result<(), Failure> {
        let id = model.split('/').next().unwrap_or_default();
        if model == OfflineModel::NAME {
            return Ok(());
        }
        let Some(key) = self.provider_settings(id)?.api_key else {
            return Ok(());
        };
        let checked = self.credentials.check(key.setting()).await;
        checked.map_err(|error| {
            Failure::config(format!("`{id}` has no key: {error}"))
                .next("unlock the vault or store the key, or use -c agent.model=offline")
        })
    }

    fn unknown_provider(&self, id: &str, is_named: bool) -> Failure {
        let message = if is_named {
            format!("providers.{id}.kind and providers.{id}.baseUrl must both be set")
        } else {
            let known: Vec<&str> = known_providers()
                .iter()
                .map(|known| known.id.as_str())
                .collect();
            format!(
                "there is no provider `{id}`; lango knows {}, {}",
                OfflineModel::NAME,
                known.join(", ")
            )
        };
        let next = format!(
            "-c providers.{id}.kind=openai -c providers.{id}.baseUrl=http://127.0.0.1:8000/v1"
        );
        Failure::config(message).next(next)
    }
}

/// Returns whether something listens at this address.
async fn is_listening(address: &str) -> bool {
    matches!(
        tokio::time::timeout(PROBE_TIMEOUT, TcpStream::connect(address)).await,
        Ok(Ok(_))
    )
}
