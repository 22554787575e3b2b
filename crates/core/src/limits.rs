//! The hard limits of a turn, over the whole tree of agents. The engine holds them whatever a model does.

use serde::{Deserialize, Serialize};

/// What a single turn may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Delegation rounds: replies of the orchestrator with at least one valid delegation.
    pub rounds: u32,
    /// Accepted model replies; the last one is offered no functions. Zero makes no call at all.
    pub model_calls: u32,
    /// Tool calls that were allowed to run.
    pub tool_calls: u32,
    /// Tokens sent and received; zero makes no call at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar; zero makes no call at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Active time in milliseconds; waiting for a person does not count.
    pub turn_ms: u64,
    /// Time of a single tool or remote call in milliseconds.
    pub tool_ms: u64,
}

impl Limits {
    /// How many rounds there are when nobody said otherwise, or said zero.
    pub const DEFAULT_ROUNDS: u32 = 3;

    /// The same limits with `rounds` read as the configuration means it: zero is the default of three.
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

/// Which limit a turn ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// [`Limits::rounds`].
    Rounds,
    /// [`Limits::model_calls`].
    ModelCalls,
    /// [`Limits::tool_calls`].
    ToolCalls,
    /// [`Limits::tokens`].
    Tokens,
    /// [`Limits::cost_micros`].
    Cost,
    /// [`Limits::turn_ms`].
    Time,
}

impl Limit {
    /// The configuration key that sets it.
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
