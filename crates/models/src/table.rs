//! The model table: context windows, capabilities and prices, from one data file that `scripts/model-table` writes.
//!
//! Each row is one line of the file. A lookup scans the lines of one provider and parses only the matching one.
//! Anything that the table does not contain is unknown and never guessed.

use lango_core::{Price, PriceTier};
use serde::Deserialize;

/// What the table says about a model. It may be out of date, because providers change what they offer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelFacts {
    /// The context window.
    pub context_tokens: Option<u64>,
    /// Maximum number of tokens per reply.
    pub max_output_tokens: Option<u64>,
    pub sees_images: Option<bool>,
    /// Whether it accepts PDF files.
    pub reads_pdf: Option<bool>,
    /// Whether it reasons and accepts a reasoning effort.
    pub reasons: Option<bool>,
    /// Whether a request may set a temperature.
    pub takes_temperature: Option<bool>,
    /// Whether its replies can be restricted to a JSON schema.
    pub answers_by_schema: Option<bool>,
    /// The price of its tokens at this provider.
    pub price: Option<Price>,
    /// The day its provider shuts it down, as `2026-12-11`.
    pub retires: Option<String>,
    /// The day this row was last updated.
    pub date: Option<String>,
}

/// Looks up a model.
///
/// A model of a provider that is not in the table has the capabilities of the first-party model with the same id. Its
/// price and context window depend on the provider, so they stay unknown.
pub fn facts_of(provider: &str, model: &str) -> ModelFacts {
    if section(provider).next().is_some() {
        return row_of(provider, model).map_or_else(ModelFacts::default, Row::facts);
    }
    let mut first_party = ["anthropic", "openai", "gemini"].into_iter();
    let row = first_party.find_map(|provider| row_of(provider, model));
    ModelFacts {
        price: None,
        context_tokens: None,
        retires: None,
        ..row.map_or_else(ModelFacts::default, Row::facts)
    }
}

/// Lists the ids of a provider's models in the table.
pub fn models_of(provider: &str) -> impl Iterator<Item = &'static str> {
    section(provider).map(|(id, _)| id)
}

/// Returns whether `model` is `id`, or `id` followed by a date or `-latest`. Any other longer name is a different
/// model.
pub fn is_version_of(model: &str, id: &str) -> bool {
    let Some(rest) = model.strip_prefix(id) else {
        return false;
    };
    let is_date =
        |rest: &str| rest.len() >= 8 && rest.chars().all(|c| c.is_ascii_digit() || c == '-');
    rest.is_empty() || rest == "-latest" || rest.strip_prefix('-').is_some_and(is_date)
}

const FILE: &str = include_str!("../data/models.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    window: Option<u64>,
    output: Option<u64>,
    can: Option<Vec<Ability>>,
    price: RowPrice,
    tier: Option<RowTier>,
    retires: Option<String>,
    date: String,
    /// The tables that agree on the price; only for people who read the file.
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ability {
    Images,
    Pdf,
    Reasoning,
    Temperature,
    Schema,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowPrice {
    input: f64,
    cached: Option<f64>,
    write: Option<f64>,
    output: f64,
}

#[derive(Debug, Deserialize)]
struct RowTier {
    above: u64,
    #[serde(flatten)]
    price: RowPrice,
}

impl Row {
    fn facts(self) -> ModelFacts {
        let can = |ability| Some(self.can.as_ref()?.contains(&ability));
        let tier = self.tier.map(|RowTier { above, price }| PriceTier {
            above_tokens: above,
            input: price.input,
            cached: price.cached.unwrap_or(price.input),
            cache_write: price.write,
            output: price.output,
        });
        ModelFacts {
            context_tokens: self.window,
            max_output_tokens: self.output,
            sees_images: can(Ability::Images),
            reads_pdf: can(Ability::Pdf),
            reasons: can(Ability::Reasoning),
            takes_temperature: can(Ability::Temperature),
            answers_by_schema: can(Ability::Schema),
            price: Some(Price {
                input: self.price.input,
                // Without a price for cached tokens there is no discount.
                cached: self.price.cached.unwrap_or(self.price.input),
                cache_write: self.price.write,
                output: self.price.output,
                tier,
            }),
            retires: self.retires,
            date: Some(self.date),
        }
    }
}

/// Returns the rows of a provider, each as its id and the text of its fields.
fn section(provider: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_head = |line: &str| {
        let name = line
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        name == Some(provider)
    };
    FILE.lines()
        .skip_while(move |line| !is_head(line))
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.strip_prefix('"')?.split_once("\" = "))
}

/// Returns the most specific row: that of the dated version if there is one, otherwise that of the model without a
/// date.
fn row_of(provider: &str, model: &str) -> Option<Row> {
    let rows = section(provider).filter(|(id, _)| is_version_of(model, id));
    let (_, fields) = rows.max_by_key(|(id, _)| id.len())?;
    parse(fields)
}

fn parse(fields: &str) -> Option<Row> {
    let value = toml::de::ValueDeserializer::parse(fields).ok()?;
    Row::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_providers;
    use std::collections::BTreeMap;

    #[test]
    fn parsing_line_by_line_gives_the_same_rows_as_parsing_the_whole_file() {
        let whole: BTreeMap<String, BTreeMap<String, toml::Value>> = toml::from_str(FILE).unwrap();
        assert!(whole.len() >= 10 && whole.values().map(BTreeMap::len).sum::<usize>() > 200);
        for (provider, rows) in &whole {
            assert_eq!(section(provider).count(), rows.len(), "{provider}");
            for (id, row) in rows {
                let facts = facts_of(provider, id);
                let price = facts.price.unwrap_or_else(|| panic!("{provider}/{id}"));
                assert_eq!(Some(price.input), number(&row["price"]["input"]), "{id}");
                assert!(price.input > 0.0 && price.output > 0.0, "{id}");
                assert!(price.cached <= price.input, "{id}");
                assert!(price.tier.is_none_or(|tier| tier.output >= price.output));
                assert_eq!(facts.date.unwrap().len(), 10, "{id}");
                assert!(facts.context_tokens.is_none_or(|window| window >= 4000));
            }
        }
    }

    fn number(value: &toml::Value) -> Option<f64> {
        value
            .as_float()
            .or_else(|| value.as_integer().map(|number| number as f64))
    }

    #[test]
    fn every_provider_with_a_key_has_rows_for_its_first_preferences() {
        for known in known_providers()
            .iter()
            .filter(|known| !known.keys.is_empty())
        {
            let first = &known.prefer[0];
            let facts = facts_of(&known.id, first);
            assert!(facts.price.is_some(), "{}/{first}", known.id);
            assert!(facts.context_tokens.is_some(), "{}/{first}", known.id);
            assert_eq!(facts.retires, None, "{}/{first}", known.id);
        }
    }

    #[test]
    fn the_longest_matching_id_wins() {
        let output = |model| facts_of("openai", model).price.map(|price| price.output);
        assert_eq!(output("gpt-5-mini-2025-08-07"), Some(2.0));
        assert_eq!(output("gpt-5"), Some(10.0));
        assert_eq!(output("gpt-5-unheard-of"), None, "another model");
        assert_eq!(output("my-own-model"), None);
        assert!(is_version_of("gpt-5-latest", "gpt-5") && !is_version_of("gpt-5-mini", "gpt-5"));
    }

    #[test]
    fn known_models_have_the_capabilities_and_prices_of_the_table() {
        let sonnet = facts_of("anthropic", "claude-sonnet-5-5");
        assert_eq!(sonnet.context_tokens, Some(1_000_000));
        assert_eq!(sonnet.max_output_tokens, Some(128_000));
        let abilities = (sonnet.reasons, sonnet.takes_temperature, sonnet.reads_pdf);
        assert_eq!(abilities, (Some(true), Some(false), Some(true)));
        assert_eq!(sonnet.price.unwrap().cache_write, Some(2.5));
        let old = facts_of("openai", "gpt-4o");
        assert_eq!(
            (old.reasons, old.takes_temperature),
            (Some(false), Some(true))
        );
        assert_eq!(old.retires.as_deref(), Some("2027-01-14"));
        let tier = |provider, model| {
            let price = facts_of(provider, model).price.unwrap();
            price.tier.map(|tier| (tier.above_tokens, tier.input))
        };
        assert_eq!(tier("openai", "gpt-5.4"), Some((272_000, 5.0)));
        assert_eq!(
            tier("gemini", "gemini-3.1-pro-preview"),
            Some((200_000, 4.0))
        );
        assert_eq!(tier("anthropic", "claude-haiku-5-5"), Some((100_000, 0.5)));
    }

    #[test]
    fn at_another_provider_a_model_has_its_capabilities_but_no_known_price() {
        let facts = facts_of("mine", "claude-sonnet-5-5");
        assert_eq!(facts.reasons, Some(true));
        assert_eq!((facts.price, facts.context_tokens), (None, None));
        assert_eq!(facts_of("mine", "llama"), ModelFacts::default());
        let at_groq = facts_of("groq", "gpt-6.1-sol");
        assert_eq!(at_groq, ModelFacts::default(), "not among its models");
    }
}
