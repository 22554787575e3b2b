//! Providers that lango knows by name: where they are, which variables hold their keys, which port tells that one runs here.
//! All of it is in one data file.

use crate::provider::Kind;
use crate::table::is_version_of;
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
    /// What its key alone selects: the first of these that it offers.
    #[serde(default)]
    pub prefer: Vec<String>,
    /// How many tokens its models take at once, at the least.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// The address that answers when it runs on this machine.
    #[serde(default)]
    pub probe: Option<String>,
}

impl KnownProvider {
    /// Picks the model that lango prefers among those that the provider offers. Of several dated versions of one, the
    /// newest; none if nothing offered is preferred.
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
    fn the_first_preference_that_is_offered_is_taken_with_its_newest_date() {
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
