//! The keys under `search`: the search services behind `search_web`.

use lango_web::ProviderKind;
use std::collections::BTreeMap;
use toml::de::DeValue;

use super::setting::{Expected, Setting, ValueContext};

/// The keys under `search`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchSettings {
    pub providers: BTreeMap<String, SearchProviderConfig>,
    /// The names of the services in the order in which they are tried.
    pub order: Vec<String>,
}

/// The keys under `search.providers.<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchProviderConfig {
    /// The service's protocol; derived from its name if not set.
    pub kind: Option<ProviderKind>,
    pub url: Option<String>,
    /// The environment variable with the API key.
    pub api_key_env: Option<String>,
}

impl SearchSettings {
    /// Returns the settings of one service, and creates them if they do not exist.
    pub(super) fn provider(&mut self, id: &str) -> &mut SearchProviderConfig {
        self.providers.entry(id.to_owned()).or_default()
    }
}

impl Setting for Option<ProviderKind> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        *self = Some(
            name.parse()
                .map_err(|expected: String| Expected::from(expected))?,
        );
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|kind| kind.to_string().into())
    }
}
