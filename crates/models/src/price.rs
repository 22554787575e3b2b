//! What tokens cost, from one dated data file. What is not in it has no known price, which is said and not guessed.

use lango_core::Price;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    date: String,
    price: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    model: String,
    input: f64,
    cached: f64,
    output: f64,
}

static FILE: LazyLock<Option<File>> =
    LazyLock::new(|| toml::from_str(include_str!("../data/prices.toml")).ok());

/// The price of a model, by its id without the provider.
pub fn price_of(model: &str) -> Option<Price> {
    let rows = FILE.as_ref()?.price.iter();
    let row = rows
        .filter(|row| is_version_of(model, &row.model))
        .max_by_key(|row| row.model.len())?;
    Some(Price {
        input: row.input,
        cached: row.cached,
        output: row.output,
    })
}

/// A model is itself, or itself with a date or `-latest` behind; a longer name is another model.
fn is_version_of(model: &str, row: &str) -> bool {
    let Some(rest) = model.strip_prefix(row) else {
        return false;
    };
    let is_date =
        |rest: &str| rest.len() >= 8 && rest.chars().all(|c| c.is_ascii_digit() || c == '-');
    rest.is_empty() || rest == "-latest" || rest.strip_prefix('-').is_some_and(is_date)
}

/// The day the prices are of.
pub fn prices_date() -> &'static str {
    FILE.as_ref().map_or("", |file| file.date.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::Usage;

    #[test]
    fn the_longest_beginning_decides() {
        assert_eq!(
            price_of("gpt-5-mini-2025-08-07").map(|price| price.output),
            Some(2.0)
        );
        assert_eq!(price_of("gpt-5").map(|price| price.output), Some(10.0));
        assert!(price_of("my-own-model").is_none());
        assert!(price_of("gpt-5-pro").is_none(), "another model");
        assert_eq!(prices_date().len(), 10);
    }

    #[test]
    fn cached_tokens_cost_what_cached_tokens_cost() {
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_tokens: 500_000,
            output_tokens: 100_000,
            reasoning_tokens: 7,
        };
        let cost = price_of("gpt-5").unwrap().of(&usage);
        assert_eq!(cost, 625_000 + 62_500 + 1_000_000);
    }
}
