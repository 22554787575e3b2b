//! What the program runs with, as plain typed fields, and the defaults.
//!
//! The numbers that bound a turn are not repeated here: their defaults are those of [`Limits`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lango_core::{Limits, ReasoningEffort, UserId};
use lango_models::{Api, Kind, Patience};

use super::browser::BrowserSettings;
use super::choices::{OrchestratorTools, StoreLocation, Topology, WhenBusy};
use super::duration::Lease;
use super::egress::{EgressSettings, NetworkAccess};
use super::keys::{ID, Key};
use super::mcp::{McpServer, McpSettings};
use super::model_settings::{OutputTokens, Temperature};
use super::payment::PaymentSettings;
use super::remote_agents::RemoteAgents;
use super::rules::ApprovalRules;
use super::search::SearchSettings;
use super::surroundings::Paths;

/// All settings, one field for each of the [`KEYS`](super::KEYS).
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The keys under `agent`.
    pub agent: AgentSettings,
    /// The keys under `providers`, by the name of the provider.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The keys under `approval`.
    pub approval: ApprovalSettings,
    /// The keys under `tools`.
    pub tools: ToolSettings,
    /// The keys under `egress`.
    pub egress: EgressSettings,
    /// The keys under `browser`.
    pub browser: BrowserSettings,
    /// The keys under `search`.
    pub search: SearchSettings,
    /// The keys under `skill`.
    pub skill: SkillSettings,
    /// The keys under `mcp`.
    pub mcp: McpSettings,
    /// The keys under `graph`.
    pub graph: GraphConfig,
    /// The keys under `embedding`.
    pub embedding: EmbeddingConfig,
    /// The keys under `observationalMemory`.
    pub memory: MemoryConfig,
    /// The keys under `session`.
    pub session: SessionSettings,
    /// The keys under `vault`.
    pub vault: VaultSettings,
    /// The keys under `payment`.
    pub payment: PaymentSettings,
    /// The keys under `a2a`.
    pub a2a: A2aSettings,
    /// The keys under `server`.
    pub server: ServerConfig,
}

/// The keys under `vault`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VaultSettings {
    /// A file with a key that unlocks it.
    pub key_file: Option<PathBuf>,
}

/// The keys under `a2a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aSettings {
    /// Whether agents elsewhere are asked at all.
    pub enabled: bool,
    /// Which there are.
    pub remote_agents: RemoteAgents,
}

/// The keys under `server`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address it listens at.
    pub host: Option<String>,
    /// The port.
    pub port: u32,
    /// More names under which it answers.
    pub hosts: Vec<String>,
    /// Where callers reach it, if that is not where it listens.
    pub public_url: Option<String>,
    /// Whether callers have to know the token.
    pub require_token: bool,
    /// Whose sessions, memory and knowledge callers work with.
    pub user: UserId,
    /// Tasks that run at a time.
    pub max_running_tasks: u32,
    /// Tasks that may wait to run.
    pub queue_limit: u32,
    /// How long a task may wait to run.
    pub queue_timeout: Duration,
    /// Open streams at a time.
    pub max_streams: u32,
    /// Open connections at a time.
    pub max_connections: u32,
}

/// The keys under `graph`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// How many steps a walk may take.
    pub max_depth: u32,
    /// How many facts are given at once.
    pub max_results: u32,
}

/// The keys under `embedding`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingConfig {
    /// What makes vectors.
    pub provider: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// How many numbers a vector has.
    pub dimensions: Option<u64>,
}

/// The keys under `observationalMemory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Whether the model observes, nobody does, or (not set) the built-in rules do.
    pub enabled: Option<bool>,
    /// Tokens of turns that are observed together.
    pub message_token_threshold: u32,
    /// Tokens of observations that are condensed.
    pub observation_token_threshold: u32,
    /// Tokens of reflections that are condensed.
    pub reflection_token_threshold: u32,
    /// Tokens that a turn is told at most.
    pub context_tokens: u32,
}

/// The keys under `approval`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Which calls run, which are asked for, which never run.
    pub rules: ApprovalRules,
    /// How long approvals of the server's callers stay pending.
    pub expiry: Duration,
}

/// The keys under `tools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSettings {
    /// What commands may do.
    pub exec: ExecSettings,
}

/// The keys under `tools.exec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSettings {
    /// More that may be read.
    pub read: Vec<PathBuf>,
    /// More that may be changed.
    pub write: Vec<PathBuf>,
    /// What commands reach of the network.
    pub network: NetworkAccess,
    /// Whether commands may create git repositories in the workspace.
    pub allow_git_init: bool,
    /// Processes that a command may have at once.
    pub max_processes: u32,
    /// Memory that a command may use, in MiB.
    pub max_memory_mb: u32,
}

/// The keys under `skill`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillSettings {
    /// More folders with skills.
    pub dirs: Vec<PathBuf>,
}

/// The keys under `providers.<id>`. What is not set comes from the providers that lango knows by name.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// How it is spoken to.
    pub kind: Option<Kind>,
    /// The API of OpenAI's kind to use.
    pub api: Option<Api>,
    /// Where it is.
    pub base_url: Option<String>,
    /// The environment variable that holds its key.
    pub api_key_env: Option<String>,
    /// How many tokens its models take at once.
    pub context_tokens: Option<u64>,
    /// Whether its replies are streamed.
    pub stream: bool,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            kind: None,
            api: None,
            base_url: None,
            api_key_env: None,
            context_tokens: None,
            stream: true,
        }
    }
}

/// The keys under `agent`.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    /// Whether there are sub-agents to delegate to.
    pub multi_agent: bool,
    /// Which agents there are and who calls whom.
    pub topology: Topology,
    /// What the orchestrator may call itself; nothing leaves it to the topology.
    pub orchestrator_tools: Option<OrchestratorTools>,
    /// Provider and model, such as `offline/rules`; nothing lets lango choose.
    pub model: Option<String>,
    /// Models that are asked when that one fails.
    pub fallback: Vec<String>,
    /// The sampling temperature of every model.
    pub temperature: Option<Temperature>,
    /// How much every model thinks before it answers.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most tokens of one reply, reasoning included.
    pub max_output_tokens: Option<OutputTokens>,
    /// Delegation rounds of a turn, as written; [`limits`](Self::limits) reads zero as the default.
    pub max_delegation_rounds: u32,
    /// Model calls of a turn.
    pub max_model_calls: u32,
    /// Tool calls of a turn.
    pub max_tool_calls: u32,
    /// Tokens of a turn.
    pub max_tokens: Option<u64>,
    /// US dollars of a turn.
    pub max_cost: Option<f64>,
    /// How long a model may be silent.
    pub idle_timeout: Duration,
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
    /// Whose they are.
    pub user: UserId,
    /// How long one that is not used is kept; for ever if not set.
    pub ttl: Option<Duration>,
    /// What a question does that finds its session busy.
    pub when_busy: WhenBusy,
    /// How many may wait for a session.
    pub queue_limit: u32,
    /// How long a session stays held by a copy of lango that is not heard of any more.
    pub lease: Lease,
}

impl SessionSettings {
    /// What a question does that finds its session busy.
    pub fn busy_policy(&self) -> lango_core::BusyPolicy {
        match self.when_busy {
            WhenBusy::Refuse => lango_core::BusyPolicy::Refuse,
            WhenBusy::Wait => lango_core::BusyPolicy::Wait {
                max_waiters: self.queue_limit as usize,
            },
        }
    }
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
                fallback: Vec::new(),
                temperature: None,
                reasoning_effort: None,
                max_output_tokens: None,
                max_tokens: None,
                max_cost: None,
                idle_timeout: Patience::default().idle,
                max_delegation_rounds: limits.rounds,
                max_model_calls: limits.model_calls,
                max_tool_calls: limits.tool_calls,
                turn_timeout: Duration::from_millis(limits.turn_ms),
                tool_timeout: Duration::from_millis(limits.tool_ms),
                strict_tools: false,
                agents_dir: None,
            },
            providers: BTreeMap::new(),
            approval: ApprovalSettings {
                rules: ApprovalRules::default(),
                expiry: Duration::from_secs(7 * 24 * 60 * 60),
            },
            tools: ToolSettings {
                exec: ExecSettings {
                    read: Vec::new(),
                    write: Vec::new(),
                    network: NetworkAccess::Closed,
                    allow_git_init: false,
                    max_processes: 256,
                    max_memory_mb: 4096,
                },
            },
            egress: EgressSettings::default(),
            browser: BrowserSettings::default(),
            search: SearchSettings::default(),
            skill: SkillSettings::default(),
            mcp: McpSettings::default(),
            graph: GraphConfig {
                enabled: true,
                max_depth: 3,
                max_results: 100,
            },
            embedding: EmbeddingConfig {
                provider: Some("offline".to_owned()),
                model: None,
                dimensions: None,
            },
            memory: MemoryConfig {
                enabled: None,
                message_token_threshold: 1000,
                observation_token_threshold: 2000,
                reflection_token_threshold: 2000,
                context_tokens: 2000,
            },
            session: SessionSettings {
                store: StoreLocation::Sqlite(paths.database()),
                user: UserId::from("local"),
                ttl: None,
                when_busy: WhenBusy::Wait,
                queue_limit: 16,
                lease: Lease(Duration::from_secs(15)),
            },
            vault: VaultSettings::default(),
            payment: PaymentSettings::default(),
            a2a: A2aSettings {
                enabled: true,
                remote_agents: RemoteAgents::default(),
            },
            server: ServerConfig {
                host: Some("127.0.0.1".to_owned()),
                port: 18789,
                hosts: Vec::new(),
                public_url: None,
                require_token: true,
                user: UserId::from("a2a"),
                max_running_tasks: 1024,
                queue_limit: 10_000,
                queue_timeout: Duration::from_secs(60),
                max_streams: 4096,
                max_connections: 8192,
            },
        }
    }
}

impl Settings {
    /// The settings of one provider, made when they are first written to.
    pub(super) fn provider(&mut self, id: &str) -> &mut ProviderConfig {
        self.providers.entry(id.to_owned()).or_default()
    }

    /// The settings of one MCP server, made when they are first written to.
    pub(super) fn server(&mut self, id: &str) -> &mut McpServer {
        self.mcp.servers.entry(id.to_owned()).or_default()
    }

    /// The names that stand for `<id>` in a key; one that is empty for a key without.
    pub(super) fn ids(&self, key: &Key) -> Vec<String> {
        match key.name.split_once(ID) {
            None => vec![String::new()],
            Some(("mcp.servers.", _)) => self.mcp.servers.keys().cloned().collect(),
            Some(("search.providers.", _)) => self.search.providers.keys().cloned().collect(),
            Some(_) => self.providers.keys().cloned().collect(),
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
            tokens: self.max_tokens,
            cost_micros: self.max_cost.map(|dollars| (dollars * 1e6) as u64),
            turn_ms: milliseconds(self.turn_timeout),
            tool_ms: milliseconds(self.tool_timeout),
        }
        .with_rounds(self.max_delegation_rounds)
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
