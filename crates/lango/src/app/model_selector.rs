//! Selects the model: the configured one, else one whose key is in the environment or stored by `lango setup`, else
//! one that runs on this machine, else the built-in rules. A selected model that fails is never replaced by the rules.
//!
//! If only a key is set, the first of lango's preferences that its provider offers is selected. If the provider does
//! not list its models, lango still starts: it takes its first preference, and the first call reports what is wrong.

mod keys;

pub use keys::ProviderKey;

use crate::app::failure::Failure;
use crate::app::model_lists::{ListKey, ModelList, ModelLists};
use crate::app::notice::notice;
use crate::app::provider_address::with_scheme;
use crate::app::vault::Credentials;
use lango_config::Settings;
use lango_core::Model;
use lango_models::{
    KnownProvider, MaskedModel, OfflineModel, Provider, ProviderFamily, ProviderSettings,
    ProviderTimeouts, ResilientModel, known_providers,
};
use lango_net::{PlainHttp, Url};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a server on this machine may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(250);

/// The assumed context window of a model, in tokens, if it is unknown.
const CONTEXT_TOKENS: u64 = 128_000;

/// The next step if a model, its key or its address does not work.
pub const MODEL_NEXT_STEP: &str = "run `lango doctor` to check the model, its key and its address, `lango models` to list the models, or `lango setup` to connect another one";

/// Returns the next step after a model call failed with this fault, by its [name](lango_core::ModelFault::name); `None`
/// if lango knows none.
pub fn next_step_after(fault: &str) -> Option<&'static str> {
    Some(match fault {
        "unreachable" | "no_key" | "bad_key" | "unknown_model" => MODEL_NEXT_STEP,
        "no_credit" => {
            "add credit at the provider, or set agent.fallback to a model of another provider"
        }
        "rate_limited" => "try again later, or set agent.fallback to a model of another provider",
        "overloaded" => {
            "try again later; if it stays, check the provider's status page or the log of the server, or set agent.fallback"
        }
        "incomplete" => {
            "try again; if it stays, check the log of the server and proxies in between, or set agent.fallback"
        }
        "timed_out" => {
            "if the model needs longer, raise agent.idleTimeout; else check that the server at this address works"
        }
        "malformed" => {
            "is the base URL right? Many end with /v1; `lango setup` changes it, and `lango doctor` calls the model once"
        }
        "context_too_long" => {
            "start a new session (/new in a chat), or use a model with a larger context window (`lango models` lists them)"
        }
        "refused" => {
            "change what the provider names, or use another model (`lango models` lists them)"
        }
        _ => return None,
    })
}

/// What a command prints once if no model is set up.
pub const DEMO_NOTICE: &str = "demo mode: built-in rules answer, not an AI model · connect a model: lango setup (or set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama)";

/// A model and why it was chosen.
pub struct ChosenModel {
    pub model: Arc<dyn Model>,
    pub reason: String,
    /// Whether no model is set up, so that the built-in rules answer.
    pub is_demo: bool,
    /// A warning to print before the first call.
    pub warning: Option<String>,
}

impl ChosenModel {
    fn new(model: impl Model + 'static, reason: String) -> Self {
        Self {
            model: Arc::new(model),
            reason,
            is_demo: false,
            warning: None,
        }
    }

    /// Returns what to print before the first turn if no model is set up.
    pub fn demo_notice(&self) -> Option<&'static str> {
        self.is_demo.then_some(DEMO_NOTICE)
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
                is_demo: false,
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
        let (provider, model) =
            split_name(name).map_err(|message| Failure::config(message).next(MODEL_LIST_STEP))?;
        Ok(Arc::new(self.provider(provider)?.model(model)))
    }

    /// Returns the provider with this name.
    pub fn provider(&self, id: &str) -> Result<Provider, Failure> {
        self.provider_settings(id).map(Provider::new)
    }

    /// Returns the address, API family and key of a provider.
    pub fn provider_settings(&self, id: &str) -> Result<ProviderSettings, Failure> {
        let mut settings = self.provider_settings_with(id, ProviderKey::default())?;
        let key = self.find_key(id, &settings.base_url)?;
        if key.credential.is_some() {
            settings = self.provider_settings_with(id, key)?;
        } else {
            settings.key_source = key.source;
        }
        Ok(settings)
    }

    /// Returns the address and API family of a provider, with this key.
    pub fn provider_settings_with(
        &self,
        id: &str,
        key: ProviderKey,
    ) -> Result<ProviderSettings, Failure> {
        let known = known_provider(id);
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
        let base_url = with_scheme(&base_url).map_err(|missing| {
            let message = format!("providers.{id}.baseUrl must start with http:// or https://");
            Failure::config(message).next(missing.next)
        })?;
        if config.api.is_some() && kind != ProviderFamily::OpenAi {
            let kind = kind.name();
            let message = format!(
                "providers.{id}.api is set, but providers of the kind `{kind}` have only one API"
            );
            return Err(Failure::config(message).next(format!(
                "remove providers.{id}.api, or set providers.{id}.kind to openai"
            )));
        }
        let plain_http = if config.allow_plain_http {
            PlainHttp::Allowed
        } else {
            PlainHttp::LocalOnly
        };
        if key.credential.is_some()
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
            api_key: key.credential,
            plain_http,
            masks: self.credentials.masks().clone(),
            key_source: key.source,
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
                Some(address) => self.is_listening(address).await,
                None => self.key_variable(known).is_some() || self.has_stored_key(known),
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

    /// Returns the models of a provider that runs on this machine, if it answers in time.
    pub async fn local_models(&self, known: &KnownProvider) -> Option<Vec<String>> {
        if !self.is_listening(known.probe.as_deref()?).await {
            return None;
        }
        // Something is listening; the list shows whether it is a model server.
        let provider = self.provider(&known.id).ok()?;
        let list = tokio::time::timeout(PROBE_TIMEOUT, provider.list()).await;
        list.ok()?.ok()
    }

    /// Selects a model if none is configured.
    async fn find(&self) -> Result<ChosenModel, Failure> {
        let with_key = || {
            let known = known_providers().iter();
            known.filter(|known| known.probe.is_none())
        };
        for known in with_key() {
            if let Some(variable) = self.key_variable(known) {
                let why = format!("{variable} is set");
                return self.preferred(known, &why).await;
            }
        }
        // The rules must not answer only because the keys cannot be read.
        self.credentials.stored().check()?;
        if let Some(known) = with_key().find(|known| self.has_stored_key(known)) {
            let why = format!(
                "its key is in {}",
                self.credentials.stored().path().display()
            );
            return self.preferred(known, &why).await;
        }
        for known in known_providers() {
            let Some(address) = &known.probe else {
                continue;
            };
            if let Some(models) = self.local_models(known).await
                && let Some(id) = models.first()
            {
                let reason = format!("{} runs at {address}", known.id);
                let model = self.provider(&known.id)?.model(id);
                return Ok(ChosenModel::new(model, reason));
            }
        }
        Ok(ChosenModel {
            is_demo: true,
            ..ChosenModel::new(OfflineModel, "no model is set up".to_owned())
        })
    }

    /// Returns whether something listens at this address of this machine; false if lango must not look for servers.
    async fn is_listening(&self, address: &str) -> bool {
        let connect = tokio::time::timeout(PROBE_TIMEOUT, TcpStream::connect(address));
        self.settings.agent.find_local_models && matches!(connect.await, Ok(Ok(_)))
    }

    /// Selects among the models that a provider offers; `why` says why the provider is used.
    async fn preferred(&self, known: &KnownProvider, why: &str) -> Result<ChosenModel, Failure> {
        let (key, provider) = self.listed_provider(&known.id)?;
        let list = self.lists.list_for_start(&key, &provider).await;
        let id = &known.id;
        if let Some(model) = known.preferred(&list.models) {
            let reason = format!("{why}; lango's preferred model of {id}");
            return Ok(ChosenModel::new(provider.model(model), reason));
        }
        let first = known.prefer.first().map_or("", String::as_str);
        let model = provider.model(first);
        if list.models.is_empty() {
            let error = list.error.as_deref().unwrap_or("it is empty");
            let reason = format!(
                "{why}; the models of {id} cannot be listed ({error}), so lango uses its first preference"
            );
            return Ok(ChosenModel::new(model, reason));
        }
        let reason = format!(
            "{why}; {id} offers none of lango's preferred models, so lango uses its first preference"
        );
        let warning = format!(
            "{id} offers none of lango's preferred models, so lango uses {first}; run `lango models` to list its models, and choose one with -c agent.model={id}/…"
        );
        Ok(ChosenModel {
            warning: Some(warning),
            ..ChosenModel::new(model, reason)
        })
    }

    fn unknown_provider(&self, id: &str, is_named: bool) -> Failure {
        if is_named {
            let message =
                format!("providers.{id}.kind and providers.{id}.baseUrl must both be set");
            return Failure::config(message).next(format!(
                "set both, such as -c providers.{id}.kind=openai -c providers.{id}.baseUrl=http://127.0.0.1:8000/v1"
            ));
        }
        let configured = self.settings.providers.keys().map(String::as_str);
        let known = known_providers().iter().map(|known| known.id.as_str());
        let mut names: Vec<&str> = configured.collect();
        for name in known {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let message = format!(
            "there is no provider `{id}`; there are {}, {}",
            OfflineModel::NAME,
            names.join(", ")
        );
        Failure::config(message).next(unknown_provider_step(id))
    }
}

/// Splits the name of a model into the provider and the model; fails with the message for the user.
fn split_name(name: &str) -> Result<(&str, &str), String> {
    let parts = name.split_once('/').filter(|(_, model)| !model.is_empty());
    parts.ok_or_else(|| format!("`{name}` is not the name of a model; write provider/model"))
}

const MODEL_LIST_STEP: &str = "run `lango models` to list the available models";

/// Checks without any I/O that a model's provider is known or configured. Whether the provider offers the model only
/// the provider knows.
pub fn check_model_name(settings: &Settings, name: &str) -> Result<(), Failure> {
    if name == OfflineModel::NAME || name == "offline" {
        return Ok(());
    }
    let refused = |message: String| {
        Failure::usage(format!("agent.model was not changed: {message}")).next(MODEL_LIST_STEP)
    };
    let (provider, _) = split_name(name).map_err(refused)?;
    if known_provider(provider).is_some() || settings.providers.contains_key(provider) {
        return Ok(());
    }
    let message = format!("agent.model was not changed: there is no provider `{provider}`");
    Err(Failure::usage(message).next(unknown_provider_step(provider)))
}

fn unknown_provider_step(provider: &str) -> String {
    format!(
        "choose one of the models that `lango models` lists, or set up a server of your own: lango setup --provider {provider} --base-url URL"
    )
}

/// Returns the provider that lango knows by this name.
pub(super) fn known_provider(id: &str) -> Option<&'static KnownProvider> {
    known_providers().iter().find(|known| known.id == id)
}
