//! Providers that lango knows by name: their addresses, the environment variables of their keys, and how to detect
//! local ones. All of it comes from one data file.

use crate::provider::ProviderFamily;
use crate::table::is_version_of;
use serde::Deserialize;
use std::sync::LazyLock;

/// A provider that lango knows by name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KnownProvider {
    /// The provider part of `provider/model`.
    pub id: String,
    /// The name to show, such as `LM Studio`.
    pub name: String,
    pub kind: ProviderFamily,
    pub base_url: String,
    /// The environment variables that may contain its key; the first that is set wins.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The preferred models, for users who set only a key. The first one that the provider offers is used.
    #[serde(default)]
    pub prefer: Vec<String>,
    /// Minimum context window of its models.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// The address to probe for a provider that runs on this machine.
    #[serde(default)]
    pub probe: Option<String>,
}

impl KnownProvider {
    /// Picks the offered model that lango prefers, in its newest dated version; `None` if no preferred model is
    /// offered.
    pub fn preferred<'a>(&self, offered: &'a [String]) -> Option<&'a str> {
        self.prefer.iter().find_map(|preferred| {
            let versions = || offered.iter().filter(|id| is_version_of(id, preferred));
            let exact = versions().find(|id| *id == preferred);
            exact.or_else(|| versions().max()).map(String::as_str)
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provider: Vec<KnownProvider>,
}

/// Returns all known providers, in the order in which lango looks for them.
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
                "deepseek",
                "mistral",
                "groq",
                "xai",
                "moonshot",
                "together",
                "ollama",
                "lmstudio",
                "llamacpp"
            ]
        );
        assert!(
            known_providers()
                .iter()
                .all(|known| known.prefer.is_empty() == known.probe.is_some()
                    && known.keys.is_empty() == known.probe.is_some())
        );
    }

    #[test]
    fn the_first_offered_preference_is_chosen_in_its_newest_version() {
        let known = KnownProvider {
            prefer: vec!["best-2".to_owned(), "good-1".to_owned()],
            ..known_providers()[0].clone()
        };
        let preferred = |offered: &[&str]| {
            let offered: Vec<String> = offered.iter().map(|id| (*id).to_owned()).collect();
            known.preferred(&offered).map(str::to_owned)
        };
        assert_eq!(preferred(&["good-1", "best-2"]).as_deref(), Some("best-2"));
        assert_eq!(
            preferred(&["good-1", "best-2-20260101", "best-2-20260301"]).as_deref(),
            Some("best-2-20260301")
        );
        assert_eq!(
            preferred(&["best-2-20260101", "best-2"]).as_deref(),
            Some("best-2")
        );
        assert_eq!(
            preferred(&["best-2-mini", "good-1"]).as_deref(),
            Some("good-1")
        );
        assert_eq!(preferred(&["best-2-mini"]), None);
    }
}
