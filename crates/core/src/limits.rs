//! The hard limits of a turn. They apply to the sum over all of its agents, and the engine enforces them regardless of
//! the models.

use serde::{Deserialize, Serialize};

/// The limits of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Delegation rounds: replies of the orchestrator with at least one valid delegation.
    pub rounds: u32,
    /// Accepted model replies. The last request offers no functions. Zero allows no call at all.
    pub model_calls: u32,
    /// Tool calls that the gate allowed.
    pub tool_calls: u32,
    /// Tokens sent and received. Zero allows no call at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The cost in millionths of a US dollar. Zero allows no call at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Active time in milliseconds. Waiting for the user does not count.
    pub turn_ms: u64,
    /// The timeout of a single tool or remote call in milliseconds.
    pub tool_ms: u64,
}

impl Limits {
    /// The number of rounds if the configuration sets no number or zero.
    pub const DEFAULT_ROUNDS: u32 = 3;

    /// Sets `rounds` as in the configuration: zero means [`Self::DEFAULT_ROUNDS`].
    pub fn with_rounds(self, rounds: u32) -> Self {
        let rounds = if rounds == 0 {
            Self::DEFAULT_ROUNDS
        } else {
            rounds
        };
        Self { rounds, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: Self::DEFAULT_ROUNDS,
            model_calls: 25,
            tool_calls: 50,
            tokens: None,
            cost_micros: None,
            turn_ms: 15 * 60 * 1000,
            tool_ms: 2 * 60 * 1000,
        }
    }
}

/// A limit that a turn hit, named after the field of [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Rounds,
    ModelCalls,
    ToolCalls,
    Tokens,
    Cost,
    Time,
}

impl Limit {
    /// Returns the configuration key that sets the limit.
    pub fn key(self) -> &'static str {
        match self {
            Self::Rounds => "agent.maxDelegationRounds",
            Self::ModelCalls => "agent.maxModelCalls",
            Self::ToolCalls => "agent.maxToolCalls",
            Self::Tokens => "agent.maxTokens",
            Self::Cost => "agent.maxCost",
            Self::Time => "agent.turnTimeout",
        }
    }
}
