//! Providers that lango knows by name: where they are, which variables hold their keys, which port tells that one runs here.
//! All of it is in one data file.

use crate::provider::Kind;
use serde::Deserialize;
use std::sync::LazyLock;

/// A provider that lango knows by name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KnownProvider {
    /// Its name in `provider/model`.
    pub id: String,
    /// How it is spoken to.
    pub kind: Kind,
    /// Where it is.
    pub base_url: String,
    /// The environment variables that may hold its key, the first that is set wins.
    #[serde(default)]
    pub keys: Vec<String>,
    /// What its key alone selects.
    #[serde(default)]
    pub model: Option<String>,
    /// How many tokens its models take at once, at the least.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// The address that answers when it runs on this machine.
    #[serde(default)]
    pub probe: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provider: Vec<KnownProvider>,
}

/// All of them, in the order in which they are looked for.
pub fn known_providers() -> &'static [KnownProvider] {
    static PROVIDERS: LazyLock<Vec<KnownProvider>> = LazyLock::new(|| {
        let file = toml::from_str::<File>(include_str!("../data/providers.toml"));
        file.map(|file| file.provider).unwrap_or_default()
    });
    &PROVIDERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_providers_can_be_read_and_is_in_order() {
        let ids: Vec<&str> = known_providers()
            .iter()
            .map(|known| known.id.as_str())
            .collect();
        assert_eq!(
            ids,
            [
                "anthropic",
                "openai",
                "gemini",
                "openrouter",
                "ollama",
                "lmstudio",
                "llamacpp"
            ]
        );
        assert!(
            known_providers()
                .iter()
                .all(|known| known.model.is_some() != known.probe.is_some())
        );
    }
}
