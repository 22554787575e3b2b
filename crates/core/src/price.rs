//! Prices of model tokens. Costs are in millionths of a US dollar.

use crate::Usage;
use serde::{Deserialize, Serialize};

/// The price of a model's tokens, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Price {
    /// Input tokens that are not read from or written to a cache.
    pub input: f64,
    /// Input tokens that the provider reads from its cache.
    pub cached: f64,
    /// Input tokens that the provider writes to its cache; `None` if they cost the same as other input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    pub output: f64,
    /// Different prices for long prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<PriceTier>,
}

/// The prices of a request with a long prompt. They apply to all of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PriceTier {
    /// The length in tokens above which these prices apply.
    pub above_tokens: u64,
    pub input: f64,
    /// Input tokens that the provider reads from its cache.
    pub cached: f64,
    /// Input tokens that the provider writes to its cache; `None` if they cost the same as other input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    pub output: f64,
}

impl Price {
    /// Returns the cost of one request in millionths of a dollar, rounded up. The length of each prompt decides its
    /// tier, so sum the costs of requests instead of pricing their summed usage.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let rates = self.rates(usage.input_tokens);
        let read = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - read);
        let fresh = usage.input_tokens - read - written;
        let cost = fresh as f64 * rates.input
            + read as f64 * rates.cached
            + written as f64 * rates.cache_write.unwrap_or(rates.input)
            + usage.output_tokens as f64 * rates.output;
        cost.ceil() as u64
    }

    /// Returns the maximum cost of sending a prompt of this many tokens, in millionths of a dollar, without the answer.
    /// It assumes that no token is read from the cache, and that all are written to it if that costs more.
    pub fn max_prompt_cost(&self, tokens: u64) -> u64 {
        let rates = self.rates(tokens);
        let highest = rates.cache_write.unwrap_or(rates.input).max(rates.input);
        (tokens as f64 * highest).ceil() as u64
    }

    /// Returns prices that are at least as high as those of `self` and `other`, for prompts of any length.
    pub fn upper_bound(self, other: Self) -> Self {
        let pairs = (self.rates(0), other.rates(0));
        let above = [self.tier, other.tier].into_iter().flatten();
        let above = above.map(|tier| tier.above_tokens).min();
        let base = pairs.0.upper_bound(pairs.1);
        Self {
            input: base.input,
            cached: base.cached,
            cache_write: base.cache_write,
            output: base.output,
            tier: above.map(|above_tokens| {
                let long = self.rates(u64::MAX).upper_bound(other.rates(u64::MAX));
                PriceTier {
                    above_tokens,
                    ..long
                }
            }),
        }
    }

    /// Returns the prices of a request with a prompt of this many tokens, in the form of a tier.
    fn rates(&self, prompt_tokens: u64) -> PriceTier {
        let long = self.tier.filter(|tier| prompt_tokens > tier.above_tokens);
        long.unwrap_or(PriceTier {
            above_tokens: 0,
            input: self.input,
            cached: self.cached,
            cache_write: self.cache_write,
            output: self.output,
        })
    }
}

impl PriceTier {
    fn upper_bound(self, other: Self) -> Self {
        let write = |tier: Self| tier.cache_write.unwrap_or(tier.input);
        let is_written = self.cache_write.is_some() || other.cache_write.is_some();
        Self {
            above_tokens: self.above_tokens.min(other.above_tokens),
            input: self.input.max(other.input),
            cached: self.cached.max(other.cached),
            cache_write: is_written.then(|| write(self).max(write(other))),
            output: self.output.max(other.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: PriceTier = PriceTier {
        above_tokens: 200_000,
        input: 4.0,
        cached: 0.4,
        cache_write: Some(5.0),
        output: 15.0,
    };
    const PRICE: Price = Price {
        input: 2.0,
        cached: 0.2,
        cache_write: Some(2.5),
        output: 10.0,
        tier: Some(LONG),
    };

    fn usage(input_tokens: u64, cached_tokens: u64, cache_write_tokens: u64) -> Usage {
        Usage {
            input_tokens,
            cached_tokens,
            cache_write_tokens,
            output_tokens: 1000,
            reasoning_tokens: 7,
        }
    }

    #[test]
    fn reads_from_a_cache_and_writes_to_it_have_their_own_prices() {
        let cost = PRICE.cost(&usage(100_000, 60_000, 30_000));
        assert_eq!(cost, 10_000 * 2 + 12_000 + 75_000 + 10_000);
        let plain = Price {
            cache_write: None,
            ..PRICE
        };
        let cost = plain.cost(&usage(100_000, 60_000, 30_000));
        assert_eq!(cost, 40_000 * 2 + 12_000 + 10_000);
    }

    #[test]
    fn the_tier_of_a_long_prompt_applies_to_every_token() {
        assert_eq!(PRICE.cost(&usage(200_000, 0, 0)), 400_000 + 10_000);
        assert_eq!(PRICE.cost(&usage(200_001, 0, 0)), 800_004 + 15_000);
        assert_eq!(
            PRICE.cost(&usage(200_001, 200_000, 1)),
            80_000 + 5 + 15_000,
            "cached tokens count as part of the prompt"
        );
    }

    #[test]
    fn cached_tokens_beyond_the_prompt_cost_nothing() {
        assert_eq!(PRICE.cost(&usage(10, 20, 20)), 2 + 10_000);
    }

    #[test]
    fn a_prompt_is_reserved_at_its_maximum_cost() {
        assert_eq!(PRICE.max_prompt_cost(100_000), 250_000);
        assert_eq!(PRICE.max_prompt_cost(300_000), 1_500_000);
    }

    #[test]
    fn the_upper_bound_of_two_prices_is_never_below_either() {
        let flat = Price {
            input: 3.0,
            cached: 0.1,
            cache_write: None,
            output: 12.0,
            tier: None,
        };
        let both = PRICE.upper_bound(flat);
        assert_eq!(both, flat.upper_bound(PRICE));
        for tokens in [0, 1, 200_000, 200_001, 5_000_000] {
            for (read, written) in [(0, 0), (tokens, 0), (0, tokens)] {
                let usage = usage(tokens, read, written);
                assert!(both.cost(&usage) >= PRICE.cost(&usage).max(flat.cost(&usage)));
            }
        }
        assert_eq!(flat.upper_bound(flat), flat);
    }

    #[test]
    fn a_price_of_an_older_log_round_trips_unchanged() {
        let stored = r#"{"input":3.0,"cached":0.3,"output":15.0}"#;
        let price: Price = serde_json::from_str(stored).unwrap();
        assert_eq!((price.cache_write, price.tier), (None, None));
        assert_eq!(serde_json::to_string(&price).unwrap(), stored);
        let whole = serde_json::to_string(&PRICE).unwrap();
        assert_eq!(serde_json::from_str::<Price>(&whole).unwrap(), PRICE);
    }
}
