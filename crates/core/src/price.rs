//! Money, in millionths of a US dollar.

use crate::Usage;
use serde::{Deserialize, Serialize};

/// What a model's tokens cost: US dollars for a million.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Sent.
    pub input: f64,
    /// Sent, and in the provider's cache.
    pub cached: f64,
    /// Received.
    pub output: f64,
}

impl Price {
    /// What these tokens cost, in millionths of a dollar, rounded up.
    pub fn of(&self, usage: &Usage) -> u64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens) as f64;
        let cost = fresh * self.input
            + usage.cached_tokens as f64 * self.cached
            + usage.output_tokens as f64 * self.output;
        cost.ceil() as u64
    }
}
