//! What the program runs with, as plain typed fields, and the defaults.
//!
//! The numbers that bound a turn are not repeated here: their defaults are those of [`Limits`].

use std::path::PathBuf;
use std::time::Duration;

use lango_core::Limits;

use super::choices::{OrchestratorTools, StoreLocation, Topology};
use super::surroundings::Paths;

/// All settings, one field for each of the [`KEYS`](super::KEYS).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The keys under `agent`.
    pub agent: AgentSettings,
    /// The keys under `session`.
    pub session: SessionSettings,
}

/// The keys under `agent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// Whether there are sub-agents to delegate to.
    pub multi_agent: bool,
    /// Which agents there are and who calls whom.
    pub topology: Topology,
    /// What the orchestrator may call itself; nothing leaves it to the topology.
    pub orchestrator_tools: Option<OrchestratorTools>,
    /// Provider and model, such as `offline/rules`; nothing lets lango choose.
    pub model: Option<String>,
    /// Delegation rounds of a turn, as written; [`limits`](Self::limits) reads zero as the default.
    pub max_delegation_rounds: u32,
    /// Model calls of a turn.
    pub max_model_calls: u32,
    /// Tool calls of a turn.
    pub max_tool_calls: u32,
    /// Active time of a turn.
    pub turn_timeout: Duration,
    /// Time of a single tool call or remote call.
    pub tool_timeout: Duration,
    /// Whether a tool that no agent owns is an error.
    pub strict_tools: bool,
    /// The folder with definitions of further agents.
    pub agents_dir: Option<PathBuf>,
}

/// The keys under `session`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// Where sessions are kept.
    pub store: StoreLocation,
}

impl Settings {
    /// What holds when nobody says anything; sessions go to the database in the data folder.
    pub fn with_defaults(paths: &Paths) -> Self {
        let limits = Limits::default();
        Self {
            agent: AgentSettings {
                multi_agent: true,
                topology: Topology::Named("specialists".into()),
                orchestrator_tools: None,
                model: None,
                max_delegation_rounds: limits.rounds,
                max_model_calls: limits.model_calls,
                max_tool_calls: limits.tool_calls,
                turn_timeout: Duration::from_millis(limits.turn_ms),
                tool_timeout: Duration::from_millis(limits.tool_ms),
                strict_tools: false,
                agents_dir: None,
            },
            session: SessionSettings {
                store: StoreLocation::Sqlite(paths.database()),
            },
        }
    }
}

impl AgentSettings {
    /// What a single turn may spend.
    pub fn limits(&self) -> Limits {
        Limits {
            rounds: Limits::DEFAULT_ROUNDS,
            model_calls: self.max_model_calls,
            tool_calls: self.max_tool_calls,
            turn_ms: milliseconds(self.turn_timeout),
            tool_ms: milliseconds(self.tool_timeout),
        }
        .with_rounds(self.max_delegation_rounds)
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
