//! The keys under `search`: the services that `search_web` asks.

use lango_web::ProviderKind;
use std::collections::BTreeMap;
use toml::de::DeValue;

use super::setting::{Base, Expected, Setting};

/// The keys under `search`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchSettings {
    /// The services, by name.
    pub providers: BTreeMap<String, SearchProviderConfig>,
    /// The names of services in the order in which they are asked.
    pub order: Vec<String>,
}

/// The keys under `search.providers.<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchProviderConfig {
    /// How it is asked; its name says so when it is not set.
    pub kind: Option<ProviderKind>,
    /// Its address.
    pub url: Option<String>,
    /// The environment variable that holds its key.
    pub api_key_env: Option<String>,
}

impl SearchSettings {
    /// The settings of one service, made when they are first written to.
    pub(super) fn provider(&mut self, id: &str) -> &mut SearchProviderConfig {
        self.providers.entry(id.to_owned()).or_default()
    }
}

impl Setting for Option<ProviderKind> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        *self = Some(
            name.parse()
                .map_err(|expected: String| Expected::from(expected))?,
        );
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.map(|kind| kind.to_string().into())
    }
}
