//! Connects a model: which providers can be connected, a test call, and what is written afterwards. Nothing is written
//! before the test call has succeeded.

mod config_file;
mod key_storage;
mod precedence;
mod providers;
mod removal;

pub use crate::app::provider_address::check_address;
pub use precedence::precedence_warnings;
pub use providers::{ProviderChoice, provider_choices};
pub use removal::{Removal, demo_warning, unset_model};

use crate::app::model_lists::{ListSource, ModelList};
use crate::app::model_selector::{ModelSelector, ProviderKey, known_provider};
use crate::app::vault::secret_of;
use crate::app::{App, Failure};
use futures_util::StreamExt;
use key_storage::{KeyStorage, secret_name, setting_of};
use lango_config::edit::{self, KeyChange};
use lango_config::{Origin, Settings};
use lango_core::{Message, Model, ModelError, ModelEvent, ModelFault, ModelRequest, Text};
use lango_models::{Provider, ProviderFamily, known_providers, models_of};
use lango_net::{Url, redacted_url};
use lango_secrets::{Credential, SecretValue};
use lango_vault::OpenVault;
use std::time::Duration;

const MODEL: &str = "agent.model";

/// How long the list of a provider's models may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long connecting to an address may take before it counts as unreachable.
const REACH_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes one short call to the model.
pub async fn test_call(model: &dyn Model, timeout: Duration) -> Result<(), ModelError> {
    let request = ModelRequest {
        instruction: "Answer with one word.".into(),
        messages: vec![Message::user("hello")],
        ..ModelRequest::default()
    };
    let failed = |fault| ModelError {
        model: model.name().into(),
        fault,
        address: None,
    };
    let call = async {
        let mut stream = model.call(request);
        while let Some(event) = stream.next().await {
            if let ModelEvent::Reply(_) = event? {
                return Ok(());
            }
        }
        Err(failed(ModelFault::Incomplete))
    };
    let after_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let result = tokio::time::timeout(timeout, call).await;
    result.unwrap_or_else(|_elapsed| Err(failed(ModelFault::TimedOut { after_ms })))
}

/// Why a model cannot be connected.
pub enum ConnectError {
    /// The provider did not answer, or refused.
    Model {
        /// The provider or model, to show.
        subject: String,
        fault: ModelFault,
        /// The address, unless the fault names it.
        address: Option<Text>,
    },
    Other(Failure),
}

impl ConnectError {
    /// Returns whether the provider refused the key.
    pub fn is_bad_key(&self) -> bool {
        let fault = match self {
            Self::Model { fault, .. } => Some(fault),
            Self::Other(_) => None,
        };
        matches!(fault, Some(ModelFault::BadKey { .. }))
    }
}

impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let (subject, fault, address) = match error {
            ConnectError::Model {
                subject,
                fault,
                address,
            } => (subject, fault, address),
            ConnectError::Other(failure) => return failure,
        };
        let next = match &fault {
            ModelFault::BadKey { .. } => "check the key at its provider",
            ModelFault::NoCredit { .. } => "add credit at the provider",
            ModelFault::Unreachable { .. } => "check the address, and that the server runs",
            ModelFault::Malformed { .. } => "check the address; many end with /v1",
            ModelFault::UnknownModel { .. } => "choose another model, or check the address",
            ModelFault::TimedOut { .. } => {
                "a model that is loaded for the first time may take minutes"
            }
            _ => "fix the problem",
        };
        let next = format!("{next}, then run `lango setup` again; nothing was written");
        let address = address.map(|address| format!(" (the address: {address})"));
        let address = address.unwrap_or_default();
        Self::config(format!("{subject}: {fault}{address}")).next(next)
    }
}

/// A key that the user gave.
pub struct NewKey {
    pub value: SecretValue,
    pub origin: KeyOrigin,
}

/// How the user gave a key.
#[derive(Clone, Copy)]
pub enum KeyOrigin {
    Typed,
    StandardInput,
}

impl KeyOrigin {
    fn text(self) -> &'static str {
        match self {
            Self::Typed => "just typed",
            Self::StandardInput => "from standard input",
        }
    }
}

/// A provider that is about to be connected.
pub struct Connection {
    pub provider: String,
    /// What the user calls the provider: its name, or its address if the user gave no name.
    pub label: String,
    /// The settings as they will be.
    settings: Settings,
    /// What the configuration file gets besides the model.
    changes: Vec<KeyChange>,
}

impl Connection {
    /// Prepares to connect a provider, at another address than its usual one if one is given. A provider that lango
    /// does not know speaks OpenAI's API, unless the configuration says otherwise.
    pub fn new(app: &App, provider: &str, address: Option<&str>) -> Result<Self, Failure> {
        check_name(provider)?;
        let mut settings = app.loaded.settings.clone();
        let mut changes = flag_changes(app, provider);
        let config = settings.providers.entry(provider.to_owned()).or_default();
        if let Some(address) = address {
            let address = check_address(address)?;
            changes.push(provider_change(provider, "baseUrl", &address));
            config.base_url = Some(address);
        }
        if config.base_url.is_none() && known_provider(provider).is_none() {
            let known: Vec<&str> = known_providers().iter().map(|known| &*known.id).collect();
            let message = format!(
                "there is no provider `{provider}`; lango knows {}",
                known.join(", ")
            );
            return Err(Failure::usage(message).next(format!(
                "for a server of your own: lango setup --provider {provider} --base-url URL"
            )));
        }
        if config.kind.is_none() && known_provider(provider).is_none() {
            config.kind = Some(ProviderFamily::OpenAi);
            let name = ProviderFamily::OpenAi.name();
            changes.push(provider_change(provider, "kind", name));
        }
        let connection = Self {
            provider: provider.to_owned(),
            label: provider.to_owned(),
            settings,
            changes,
        };
        // Reports an unknown provider and an invalid address before the user types a key.
        let selector = connection.selector(app);
        selector.provider_settings_with(provider, ProviderKey::default())?;
        Ok(connection)
    }

    /// Uses the address as the label, because lango chose the name of the provider.
    pub fn with_address_as_label(mut self) -> Self {
        let address = self.own_address().and_then(|text| Url::parse(text).ok());
        if let Some(url) = address {
            let shown = redacted_url(&url).to_string();
            self.label = shown.trim_end_matches('/').to_owned();
        }
        self
    }

    /// Returns the address that the user gave, now or in the configuration; `None` if the provider is at its usual one.
    pub fn own_address(&self) -> Option<&str> {
        let config = self.settings.providers.get(&self.provider);
        config.and_then(|config| config.base_url.as_deref())
    }

    /// Checks that a server answers at the address, whatever it answers. Sends no key.
    pub async fn reach(&self, app: &App) -> Result<(), ConnectError> {
        let selector = self.selector(app);
        let mut settings =
            selector.provider_settings_with(&self.provider, ProviderKey::default())?;
        settings.timeouts.connect = REACH_TIMEOUT;
        let provider = Provider::new(settings);
        match tokio::time::timeout(LIST_TIMEOUT, provider.list()).await {
            Ok(Err(error)) if matches!(error.fault, ModelFault::Unreachable { .. }) => {
                Err(self.provider_error(error))
            }
            _ => Ok(()),
        }
    }

    fn provider_error(&self, error: ModelError) -> ConnectError {
        ConnectError::Model {
            subject: format!("`{}`", self.label),
            fault: error.fault,
            address: error.address,
        }
    }

    fn selector<'a>(&'a self, app: &'a App) -> ModelSelector<'a> {
        ModelSelector {
            settings: &self.settings,
            ..app.model_selector()
        }
    }

    /// Returns where the key that the provider already has comes from; `None` if it has none.
    pub fn key_source(&self, app: &App) -> Option<String> {
        let settings = self.selector(app).provider_settings(&self.provider).ok()?;
        settings.api_key.map(|_| settings.key_source)
    }

    /// Returns whether the provider cannot be used without a key.
    pub fn needs_key(&self) -> bool {
        known_provider(&self.provider).is_some_and(|known| !known.keys.is_empty())
    }

    /// Returns whether a key makes no sense: a known server on this machine.
    pub fn takes_no_key(&self) -> bool {
        let known = known_provider(&self.provider).filter(|known| known.probe.is_some());
        known.is_some() && self.own_address().is_none()
    }

    /// Returns the provider's models with this key, or with the one that it already has. A provider that does not list
    /// its models has those of lango's table; the error says why it lists none.
    pub async fn list_models(
        &self,
        app: &App,
        key: Option<&NewKey>,
    ) -> Result<ModelList, ConnectError> {
        let provider = self.open(app, key)?;
        let list = tokio::time::timeout(LIST_TIMEOUT, provider.list()).await;
        let error = match list {
            Ok(Ok(models)) if !models.is_empty() => {
                return Ok(ModelList {
                    models,
                    source: ListSource::Live,
                    error: None,
                });
            }
            Ok(Ok(_)) => "its list is empty, or not a list of models".to_owned(),
            Ok(Err(error)) if is_fatal(&error.fault) => return Err(self.provider_error(error)),
            Ok(Err(error)) => list_problem(&error.fault),
            Err(_elapsed) => format!("no answer within {} s", LIST_TIMEOUT.as_secs()),
        };
        Ok(ModelList {
            models: models_of(&self.provider).map(str::to_owned).collect(),
            source: ListSource::Table,
            error: Some(error),
        })
    }

    /// Returns whether a key for this connection may be sent to the other one too: both have the same origin.
    pub fn has_origin_of(&self, app: &App, other: &Self) -> bool {
        let origin = |connection: &Self| {
            let selector = connection.selector(app);
            let settings =
                selector.provider_settings_with(&connection.provider, ProviderKey::default());
            let url = Url::parse(&settings.ok()?.base_url).ok()?;
            lango_secrets::Origin::of(&url)
        };
        origin(self).is_some_and(|own| Some(own) == origin(other))
    }

    /// Makes one short call to a model of the provider.
    pub async fn test(
        &self,
        app: &App,
        model: &str,
        key: Option<&NewKey>,
        timeout: Duration,
    ) -> Result<(), ConnectError> {
        let called = self.open(app, key)?.model(model);
        let result = test_call(&called, timeout).await;
        result.map_err(|error| ConnectError::Model {
            subject: if self.label == self.provider {
                format!("model `{}`", called.name())
            } else {
                format!("model `{model}` of {}", self.label)
            },
            fault: error.fault,
            address: error.address,
        })
    }

    fn open(&self, app: &App, key: Option<&NewKey>) -> Result<Provider, Failure> {
        let selector = self.selector(app);
        let Some(NewKey { value, origin }) = key else {
            return selector.provider(&self.provider);
        };
        let value = SecretValue::new(value.expose());
        let key = ProviderKey {
            credential: Some(Credential::fixed(
                &self.provider,
                value,
                app.credentials.masks(),
            )),
            source: origin.text().to_owned(),
        };
        let settings = selector.provider_settings_with(&self.provider, key)?;
        Ok(Provider::new(settings))
    }

    /// Stores the new key, if there is one, in the vault or else in the file of keys, and selects the model in the
    /// user's configuration file. Returns what was written, one line each. If a part fails, nothing is written.
    pub async fn write(
        mut self,
        app: &App,
        model: &str,
        key: Option<SecretValue>,
        vault: Option<&OpenVault>,
    ) -> Result<Vec<String>, Failure> {
        let storage = match (&key, vault) {
            (None, _) => None,
            (Some(_), Some(open)) => Some(self.vault_storage(open)?),
            (Some(_), None) => Some(self.file_storage(app)?),
        };
        let name = format!("{}/{model}", self.provider);
        let select = KeyChange::Set {
            key: MODEL.to_owned(),
            value: name.as_str().into(),
        };
        self.changes.insert(0, select);
        let path = &app.loaded.paths.user_file;
        // The configuration comes first: it can be restored, but a replaced key cannot.
        let change = edit::change_keys(path, &self.changes)?;
        let mut lines = Vec::new();
        if let Some((key, storage)) = key.zip(storage) {
            match storage.store(&self.provider, key).await {
                Ok(line) => lines.push(line),
                Err(failure) => {
                    // The failure is the one to report.
                    let _ = edit::revert(path, &change);
                    return Err(failure);
                }
            }
        }
        let has_changed = change.before.as_ref() != Some(&change.after);
        let path = path.display();
        lines.push(if has_changed {
            format!("wrote {path}: {name} answers from now on")
        } else {
            format!("{path} already selects {name}")
        });
        Ok(lines)
    }

    fn vault_storage<'a>(&mut self, open: &'a OpenVault) -> Result<KeyStorage<'a>, Failure> {
        let setting = self.key_setting().map(str::to_owned);
        let storage = KeyStorage::in_vault(open, &self.provider, setting.as_deref())?;
        let setting = setting_of(&secret_name(&self.provider)?);
        let change = provider_change(&self.provider, "apiKeyEnv", &setting);
        self.forget_key_change();
        self.changes.push(change);
        Ok(storage)
    }

    fn file_storage<'a>(&mut self, app: &App) -> Result<KeyStorage<'a>, Failure> {
        let selector = self.selector(app);
        let settings = selector.provider_settings_with(&self.provider, ProviderKey::default())?;
        let address = Url::parse(&settings.base_url)
            .map_err(|error| Failure::usage(format!("the address is invalid: {error}")))?;
        if self.key_setting().and_then(secret_of).is_some() {
            self.forget_key_change();
            let names = ["providers", &self.provider, "apiKeyEnv"];
            if config_file::text_at(&app.loaded.paths.user_file, &names)?.is_some() {
                let key = names.join(".");
                self.changes.push(KeyChange::Unset { key });
            }
        }
        Ok(KeyStorage::File {
            path: app.credentials.stored().path().to_owned(),
            address,
        })
    }

    fn key_setting(&self) -> Option<&str> {
        let config = self.settings.providers.get(&self.provider);
        config.and_then(|config| config.api_key_env.as_deref())
    }

    /// Drops the setting of the command line, because the key is stored elsewhere.
    fn forget_key_change(&mut self) {
        let own = format!("providers.{}.apiKeyEnv", self.provider);
        self.changes.retain(|change| match change {
            KeyChange::Set { key, .. } | KeyChange::Unset { key } => *key != own,
        });
    }
}

/// Describes why the models cannot be listed, without the address, which the caller names.
fn list_problem(fault: &ModelFault) -> String {
    match fault {
        // No model was asked for.
        ModelFault::UnknownModel { detail } => {
            let end = detail.find(" (the address: ").unwrap_or(detail.len());
            detail[..end].to_owned()
        }
        fault => fault.to_string(),
    }
}

/// Returns whether a provider that failed to list its models cannot answer either.
fn is_fatal(fault: &ModelFault) -> bool {
    matches!(
        fault,
        ModelFault::BadKey { .. } | ModelFault::NoKey { .. } | ModelFault::Unreachable { .. }
    )
}

fn provider_change(provider: &str, field: &str, value: &str) -> KeyChange {
    KeyChange::Set {
        key: format!("providers.{provider}.{field}"),
        value: value.into(),
    }
}

/// Returns the settings of a provider from the command line, so that the file alone selects the same model.
fn flag_changes(app: &App, provider: &str) -> Vec<KeyChange> {
    let prefix = format!("providers.{provider}.");
    let values = app.loaded.values.iter();
    let flags = values.filter(|value| value.origin == Origin::Flag);
    let changes = flags.filter_map(|value| {
        let field = value.name.strip_prefix(&prefix)?;
        Some(KeyChange::Set {
            key: format!("{prefix}{field}"),
            value: value.value.clone()?,
        })
    });
    changes.collect()
}

/// Refuses a name that cannot be part of `provider/model` or of a key of the configuration.
fn check_name(provider: &str) -> Result<(), Failure> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if !provider.is_empty() && provider.len() <= 64 && provider.chars().all(is_letter) {
        return Ok(());
    }
    let message = format!("`{provider}` cannot be the name of a provider");
    Err(Failure::usage(message).next("use letters, digits, `-` and `_`"))
}
