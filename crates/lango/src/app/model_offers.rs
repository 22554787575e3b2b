//! The available models with what is known about each, for `lango models` and `lango setup`.

use crate::app::model_lists::{ListSource, ModelList};
use crate::app::model_selector::ModelSelector;
use chrono::DateTime;
use futures_util::future::join_all;
use lango_core::text;
use lango_core::{Clock, Price, Timestamp};
use lango_engine::SystemClock;
use lango_models::{KnownProvider, ModelFacts, facts_of, known_providers};

/// The models of one provider.
pub struct ProviderOffers {
    pub provider: String,
    pub offers: Vec<ModelOffer>,
    /// The source of the list; `None` if there is no list.
    pub source: Option<ListSource>,
    /// Why the provider's current list could not be fetched.
    pub error: Option<String>,
}

/// An available model.
pub struct ModelOffer {
    /// The name as `provider/model`.
    pub name: String,
    pub facts: ModelFacts,
    /// Whether this model is selected if only the provider's key is set.
    pub is_default: bool,
}

/// Lists the models of all available providers, which are asked concurrently.
pub async fn list_offers(selector: &ModelSelector<'_>) -> Vec<ProviderOffers> {
    let ids = selector.reachable().await;
    let lists = ids.into_iter().map(|id| async {
        match selector.list_models(&id).await {
            Ok(list) => ProviderOffers::new(id, list),
            Err(failure) => ProviderOffers {
                provider: id,
                offers: Vec::new(),
                source: None,
                error: Some(failure.to_string()),
            },
        }
    });
    join_all(lists).await
}

impl ProviderOffers {
    /// Adds to a list what is known about its models.
    pub fn new(provider: String, list: ModelList) -> Self {
        let known = known_providers().iter().find(|known| known.id == provider);
        let default = known.and_then(|known| default_of(known, &list.models));
        let offers = list.models.iter().map(|model| ModelOffer {
            name: format!("{provider}/{model}"),
            facts: facts_of(&provider, model),
            is_default: Some(model.as_str()) == default,
        });
        Self {
            offers: offers.collect(),
            source: (!list.models.is_empty() || list.error.is_none()).then_some(list.source),
            error: list.error,
            provider,
        }
    }

    /// Describes the source of the list: `list of anthropic: cache, 3 h ago`.
    pub fn origin(&self) -> Option<String> {
        let source = match self.source? {
            ListSource::Live => "live".to_owned(),
            ListSource::Cache(listed_at) => {
                let age = text::age(listed_at, SystemClock.now());
                format!("cache, {age}")
            }
            ListSource::Table => {
                let newest = self.offers.iter();
                let newest = newest.filter_map(|offer| offer.facts.date.as_deref()).max();
                format!("lango's own table, {}", newest.unwrap_or("not dated"))
            }
        };
        Some(format!("list of {}: {source}", self.provider))
    }
}

fn default_of<'a>(known: &'a KnownProvider, models: &'a [String]) -> Option<&'a str> {
    let first = known.prefer.first().map(String::as_str);
    known.preferred(models).or(first)
}

impl ModelOffer {
    /// Describes the model on one line: `$2 in, $10 out per million tokens · 1M window · default`.
    pub fn note(&self) -> String {
        let mut parts = vec![
            self.facts
                .price
                .as_ref()
                .map_or_else(|| "price unknown".to_owned(), describe_price),
        ];
        let window = self.facts.context_tokens;
        parts.extend(window.map(|tokens| format!("{} window", short_count(tokens))));
        parts.extend(self.is_default.then(|| "default".to_owned()));
        parts.extend(self.facts.retires.as_deref().map(|day| {
            let is_past = *day <= *date_of(SystemClock.now());
            let word = if is_past { "retired" } else { "retires" };
            format!("{word} {day}")
        }));
        parts.join(" · ")
    }
}

fn describe_price(price: &Price) -> String {
    let text = format!(
        "${} in, ${} out per million tokens",
        price.input, price.output
    );
    match price.tier {
        Some(tier) => format!("{text} (more above {})", short_count(tier.above_tokens)),
        None => text,
    }
}

/// Abbreviates a number, rounded down: `1M`, `272k`, `8192`.
fn short_count(tokens: u64) -> String {
    match tokens {
        1_000_000.. => {
            let tenths = tokens / 100_000;
            match tenths % 10 {
                0 => format!("{}M", tenths / 10),
                tenth => format!("{}.{tenth}M", tenths / 10),
            }
        }
        10_000.. => format!("{}k", tokens / 1000),
        _ => tokens.to_string(),
    }
}

/// Formats the day of a time as `2026-12-11`.
fn date_of(time: Timestamp) -> String {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    let day = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    day.date_naive().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_abbreviated_and_rounded_down() {
        let counts = [8192, 128_000, 272_000, 1_000_000, 1_048_576, 1_150_000];
        let short = ["8192", "128k", "272k", "1M", "1M", "1.1M"];
        assert_eq!(counts.map(short_count), short);
    }

    #[test]
    fn a_note_describes_what_is_known_about_a_model() {
        let offer = |facts, is_default| ModelOffer {
            name: "openai/any".to_owned(),
            facts,
            is_default,
        };
        let note = offer(ModelFacts::default(), false).note();
        assert_eq!(note, "price unknown");
        let note = offer(facts_of("openai", "gpt-6.1-sol"), true).note();
        assert_eq!(
            note,
            "$2 in, $10 out per million tokens (more above 272k) · 922k window · default"
        );
        let retired = |day: &str| {
            let facts = ModelFacts {
                retires: Some(day.to_owned()),
                ..ModelFacts::default()
            };
            offer(facts, false).note()
        };
        assert_eq!(retired("2020-01-01"), "price unknown · retired 2020-01-01");
        assert_eq!(retired("9999-01-01"), "price unknown · retires 9999-01-01");
        assert_eq!(date_of(Timestamp(1_797_000_000_000)), "2026-12-11");
    }
}
