//! The providers that `lango setup` offers: the most common ones, those that are ready to be used, and servers that
//! answer on this machine.

use crate::app::App;
use crate::app::model_selector::known_provider;
use futures_util::future::join_all;
use lango_models::{KnownProvider, known_providers};

/// How many known providers are offered even if they have no key yet.
const COMMON: usize = 4;

/// A provider that can be connected.
pub struct ProviderChoice {
    pub id: String,
    /// The name to show.
    pub name: String,
    /// What is known about its key or address.
    pub note: String,
    /// Whether it can be used without a new key.
    pub is_ready: bool,
}

/// Returns the providers to offer. Those on this machine are asked whether they run.
pub async fn provider_choices(app: &App) -> Vec<ProviderChoice> {
    let selector = app.model_selector();
    let is_remote = |known: &&KnownProvider| known.probe.is_none();
    let remote = known_providers().iter().filter(is_remote).enumerate();
    let remote = remote.filter_map(|(position, known)| {
        let settings = selector.provider_settings(&known.id).ok();
        let source = settings
            .filter(|settings| settings.api_key.is_some())
            .map(|settings| settings.key_source);
        let is_ready = source.is_some();
        (is_ready || position < COMMON).then(|| ProviderChoice {
            id: known.id.clone(),
            name: known.name.clone(),
            note: match source {
                Some(source) => format!("has a key {source}"),
                None => "needs an API key".to_owned(),
            },
            is_ready,
        })
    });
    let configured = app.loaded.settings.providers.iter();
    let configured = configured.filter(|(id, _)| known_provider(id).is_none());
    let configured = configured.map(|(id, config)| ProviderChoice {
        id: id.clone(),
        name: id.clone(),
        note: config.base_url.clone().unwrap_or_default(),
        is_ready: selector.provider_settings(id).is_ok(),
    });
    let mut choices: Vec<ProviderChoice> = remote.chain(configured).collect();
    let local = known_providers().iter().filter(|known| !is_remote(known));
    let selector = &selector;
    let local = local.map(|known| async move { (known, selector.local_models(known).await) });
    for (known, models) in join_all(local).await {
        let address = known.probe.as_deref().unwrap_or_default();
        choices.extend(models.map(|models| ProviderChoice {
            id: known.id.clone(),
            name: known.name.clone(),
            note: match models.len() {
                0 => format!("runs at {address}, but has no models yet"),
                _ => format!("runs at {address}"),
            },
            is_ready: !models.is_empty(),
        }));
    }
    choices
}
