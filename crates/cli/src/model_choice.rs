//! Which model answers: the one that is named, else one whose key is in the environment, else one that runs on this machine,
//! else the built-in rules. A model that was chosen and fails is never replaced by the rules.
//!
//! What a key alone selects is the first of lango's preferences that its provider offers. A provider that cannot be asked
//! is no reason not to start: then the first preference is taken, and its first call tells what is wrong.

use crate::config::{ProviderConfig, Settings};
use crate::exit::{Exit, Failure};
use crate::model_lists::{ListKey, ModelList, ModelLists};
use crate::screen;
use crate::vault::{Credentials, secret_of};
use lango_core::Model;
use lango_models::{
    Kind, KnownProvider, MaskedModel, Offline, Patience, Provider, ProviderSettings, Resilient,
    known_providers,
};
use lango_secrets::Credential;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a server on this machine has to answer.
const PROBE: Duration = Duration::from_millis(250);

/// What a model takes at once when nobody says.
const CONTEXT_TOKENS: u64 = 128_000;

/// A model and how it was chosen.
pub struct Choice {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Why it is this one.
    pub reason: String,
    /// What the user should know before the first call.
    pub warning: Option<String>,
}

impl Choice {
    fn new(model: impl Model + 'static, reason: String) -> Self {
        Self {
            model: Arc::new(model),
            reason,
            warning: None,
        }
    }

    /// Shows the warning, if there is one.
    pub fn warn(&self) {
        if let Some(warning) = &self.warning {
            screen::say(&format!("warning: {warning}"));
        }
    }
}

/// What a choice is made of.
pub struct ModelChoice<'a> {
    /// The configuration.
    pub settings: &'a Settings,
    /// The keys.
    pub credentials: &'a Arc<Credentials>,
    /// What providers offer.
    pub lists: &'a ModelLists,
}

impl ModelChoice<'_> {
    /// The model of this run, with its fallbacks.
    pub async fn choose(&self) -> Result<Choice, Failure> {
        let agent = &self.settings.agent;
        let first = match &agent.model {
            Some(name) => Choice {
                model: self.named(name)?,
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
            .map(|name| self.named(name))
            .collect::<Result<_, _>>()?;
        Ok(Choice {
            model: self.resilient(first.model, fallback)?,
            ..first
        })
    }

    /// The model that a single agent was given. It has no fallback: what was meant for it goes to nobody else.
    pub fn own(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        self.resilient(self.named(name)?, Vec::new())
    }

    fn resilient(
        &self,
        first: Arc<dyn Model>,
        fallback: Vec<Arc<dyn Model>>,
    ) -> Result<Arc<dyn Model>, Failure> {
        let unpriced = std::iter::once(&first)
            .chain(&fallback)
            .find(|model| model.terms().price.is_none());
        if let (Some(model), Some(_)) = (unpriced, self.settings.agent.max_cost) {
            let message = format!(
                "the price of `{}` is not known, so agent.maxCost cannot be held",
                model.name()
            );
            return Err(
                Failure::new(Exit::Config, message).next("set agent.maxTokens in its place")
            );
        }
        let is_offline = first.name() == Offline::NAME;
        let model: Arc<dyn Model> = if is_offline && fallback.is_empty() {
            first
        } else {
            Arc::new(Resilient::new(first, fallback))
        };
        let masks = self.credentials.masks().clone();
        Ok(Arc::new(MaskedModel::new(model, masks)))
    }

    /// The model of this name, such as `openai/gpt-6.1-sol`.
    pub fn named(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        if name == Offline::NAME || name == "offline" {
            return Ok(Arc::new(Offline));
        }
        let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty())
        else {
            let message = format!("`{name}` is not a model's name: write provider/model");
            return Err(Failure::new(Exit::Config, message)
                .next("`lango models` lists what can be reached"));
        };
        Ok(Arc::new(self.provider(provider)?.model(model)))
    }

    /// The provider of this name.
    pub fn provider(&self, id: &str) -> Result<Provider, Failure> {
        self.provider_settings(id).map(Provider::new)
    }

    /// Where a provider is and how it is spoken to.
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
            let message = format!("providers.{id}.baseUrl must begin with http:// or https://");
            return Err(Failure::new(Exit::Config, message));
        }
        if config.api.is_some() && kind != Kind::OpenAi {
            let kind = kind.name();
            let message = format!(
                "providers.{id}.api is set, but providers of the kind `{kind}` have one API only"
            );
            return Err(Failure::new(Exit::Config, message).next(format!(
                "remove providers.{id}.api, or set providers.{id}.kind to openai"
            )));
        }
        let (api_key, key_source) = self.key(id, &config, known)?;
        Ok(ProviderSettings {
            id: id.to_owned(),
            kind,
            api: config.api,
            base_url,
            api_key,
            masks: self.credentials.masks().clone(),
            key_source,
            stream: config.stream,
            context_tokens: config.context_tokens,
            default_context_tokens: known
                .and_then(|known| known.context_tokens)
                .or(Some(CONTEXT_TOKENS)),
            patience: Patience {
                idle: self.settings.agent.idle_timeout,
                ..Patience::default()
            },
        })
    }

    /// The ids of providers that can be asked: those of the configuration, those with a key, those that run here.
    pub async fn reachable(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.settings.providers.keys().cloned().collect();
        for known in known_providers() {
            let is_here = match &known.probe {
                Some(address) => answers(address).await,
                None => self.key_variable(known).is_some(),
            };
            if is_here && !ids.contains(&known.id) {
                ids.push(known.id.clone());
            }
        }
        ids
    }

    /// Lists what a provider offers, to be shown.
    pub async fn offered(&self, id: &str) -> Result<ModelList, Failure> {
        let (key, provider) = self.listed_provider(id)?;
        Ok(self.lists.to_show(&key, &provider).await)
    }

    fn listed_provider(&self, id: &str) -> Result<(ListKey, Provider), Failure> {
        let settings = self.provider_settings(id)?;
        let key = ListKey {
            provider: id.to_owned(),
            base_url: settings.base_url.clone(),
        };
        Ok((key, Provider::new(settings)))
    }

    /// Finds a model without being told one.
    async fn find(&self) -> Result<Choice, Failure> {
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
            if !answers(address).await {
                continue;
            }
            // Something listens; whether it is a model server it has to show.
            let provider = self.provider(&known.id)?;
            if let Ok(Ok(ids)) = tokio::time::timeout(PROBE, provider.list()).await
                && let Some(id) = ids.first()
            {
                let reason = format!("{} runs at {address}", known.id);
                return Ok(Choice::new(provider.model(id), reason));
            }
        }
        Ok(Choice::new(Offline, "no model is set up".to_owned()))
    }

    /// Chooses among the models that a provider offers.
    async fn preferred(&self, known: &KnownProvider, variable: &str) -> Result<Choice, Failure> {
        let (key, provider) = self.listed_provider(&known.id)?;
        let list = self.lists.for_start(&key, &provider).await;
        let id = &known.id;
        if let Some(model) = known.preferred(&list.models) {
            let reason = format!("{variable} is set; the model that lango prefers of {id}'s");
            return Ok(Choice::new(provider.model(model), reason));
        }
        let first = known.prefer.first().map_or("", String::as_str);
        let model = provider.model(first);
        if list.models.is_empty() {
            let error = list.error.as_deref().unwrap_or("it is empty");
            let reason = format!(
                "{variable} is set; {id}'s list of models cannot be read ({error}), so lango's first preference"
            );
            return Ok(Choice::new(model, reason));
        }
        let reason =
            format!("{variable} is set; {id} offers none of lango's preferences, so the first");
        let warning = format!(
            "{id} offers none of the models that lango prefers, so it is asked for {first}; `lango models` lists what it offers, -c agent.model={id}/… chooses one"
        );
        Ok(Choice {
            warning: Some(warning),
            ..Choice::new(model, reason)
        })
    }

    /// The variable that holds the key of a provider, if one is set.
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
            // Another address under a known name is somebody's own server; it gets no key it was not given.
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
                    format!("from {variable}; `lango secrets rotate {secret}` gives it a new value")
                }
                None => format!("from {variable}"),
            };
            return Ok((Some(key), source));
        }
        if variables.is_empty() {
            return Ok((
                None,
                format!("none is set; providers.{id}.apiKeyEnv names its variable"),
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
        Err(Failure::new(Exit::Config, message)
            .next(format!("{give}, or use -c agent.model=offline")))
    }

    /// Looks up the key of a model before the first call, so that a locked vault is told at the start.
    async fn check_key(&self, model: &str) -> Result<(), Failure> {
        let id = model.split('/').next().unwrap_or_default();
        if model == Offline::NAME {
            return Ok(());
        }
        let Some(key) = self.provider_settings(id)?.api_key else {
            return Ok(());
        };
        let checked = self.credentials.check(key.setting()).await;
        checked.map_err(|error| {
            Failure::new(Exit::Config, format!("`{id}` has no key: {error}"))
                .next("unlock it or store the key as said above, or use -c agent.model=offline")
        })
    }

    fn unknown_provider(&self, id: &str, is_named: bool) -> Failure {
        let message = match is_named {
            true => format!("providers.{id}.kind and providers.{id}.baseUrl must both be set"),
            false => {
                let known: Vec<&str> = known_providers()
                    .iter()
                    .map(|known| known.id.as_str())
                    .collect();
                format!(
                    "there is no provider `{id}`; lango knows {}, {}",
                    Offline::NAME,
                    known.join(", ")
                )
            }
        };
        let next = format!(
            "-c providers.{id}.kind=openai -c providers.{id}.baseUrl=http://127.0.0.1:8000/v1"
        );
        Failure::new(Exit::Config, message).next(next)
    }
}

/// Whether something listens there.
async fn answers(address: &str) -> bool {
    matches!(
        tokio::time::timeout(PROBE, TcpStream::connect(address)).await,
        Ok(Ok(_))
    )
}
