//! The effective settings as plain typed fields, and their defaults.
//!
//! The default limits of a turn are not repeated here; they come from [`Limits`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lango_core::{Limits, ReasoningEffort, UserId};
use lango_models::{OpenAiApi, ProviderFamily, ProviderTimeouts};

use super::browser::BrowserSettings;
use super::choices::{BusySetting, OrchestratorTools, StoreLocation, TopologyChoice};
use super::duration::Lease;
use super::egress::{EgressSettings, NetworkAccess};
use super::keys::{ID, Key};
use super::mcp::{McpServer, McpSettings};
use super::model_settings::{OutputTokens, Temperature};
use super::payment::PaymentSettings;
use super::process_env::Paths;
use super::remote_agents::RemoteAgentConfigs;
use super::rules::ApprovalRules;
use super::search::SearchSettings;

/// All settings, one field for each of the [`KEYS`](super::KEYS).
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub agent: AgentSettings,
    /// The keys under `providers`, by the name of the provider.
    pub providers: BTreeMap<String, ProviderConfig>,
    pub approval: ApprovalSettings,
    pub tools: ToolSettings,
    pub egress: EgressSettings,
    pub browser: BrowserSettings,
    pub search: SearchSettings,
    pub skill: SkillSettings,
    pub mcp: McpSettings,
    pub graph: GraphConfig,
    pub embedding: EmbeddingConfig,
    /// The keys under `observationalMemory`.
    pub memory: MemoryConfig,
    pub session: SessionSettings,
    pub vault: VaultSettings,
    pub payment: PaymentSettings,
    pub a2a: A2aSettings,
    pub server: ServerConfig,
    pub ui: UiSettings,
}

/// The keys under `ui`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UiSettings {
    /// Whether to print plain lines: no live line, no colour, no cursor movement.
    pub plain: bool,
}

/// The keys under `vault`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VaultSettings {
    /// A file with a key that unlocks the vault.
    pub key_file: Option<PathBuf>,
}

/// The keys under `a2a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aSettings {
    /// Whether lango calls remote agents at all.
    pub enabled: bool,
    pub remote_agents: RemoteAgentConfigs,
}

/// The keys under `server`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address to listen on.
    pub host: Option<String>,
    pub port: u32,
    /// Additional host names that the server accepts.
    pub hosts: Vec<String>,
    /// The server's address as callers see it, if it is behind a proxy.
    pub public_url: Option<String>,
    /// Whether callers must send the token.
    pub require_token: bool,
    /// The user whose sessions, memory and knowledge callers work with.
    pub user: UserId,
    /// The most tasks that run at the same time.
    pub max_running_tasks: u32,
    /// The most tasks that may wait to run.
    pub queue_limit: u32,
    /// How long a task may wait to run.
    pub queue_timeout: Duration,
    /// The most streams open at the same time.
    pub max_streams: u32,
    /// The most connections open at the same time.
    pub max_connections: u32,
}

/// The keys under `graph`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphConfig {
    /// Whether the librarian has a graph of facts.
    pub enabled: bool,
    /// The most steps of a walk through the graph.
    pub max_depth: u32,
    /// The most facts per result.
    pub max_results: u32,
}

/// The keys under `embedding`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingConfig {
    /// The provider of the embedding model.
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The length of a vector, for providers that let the caller choose.
    pub dimensions: Option<u64>,
}

/// The keys under `observationalMemory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// `true`: the model observes; `false`: memory is off; not set: the built-in rules observe.
    pub enabled: Option<bool>,
    /// The number of tokens in new turns that triggers an observation.
    pub message_token_threshold: u32,
    /// The number of tokens in observations at which they are condensed into reflections.
    pub observation_token_threshold: u32,
    /// The number of tokens in reflections at which they are condensed further.
    pub reflection_token_threshold: u32,
    /// The most tokens of memory in a turn's context.
    pub context_tokens: u32,
}

/// The keys under `approval`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Which calls run, which need approval, and which never run.
    pub rules: ApprovalRules,
    /// How long approval requests of the server's callers stay pending.
    pub expiry: Duration,
}

/// The keys under `tools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSettings {
    pub exec: ExecSettings,
}

/// The keys under `tools.exec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSettings {
    /// Additional paths that commands and file tools may read.
    pub read: Vec<PathBuf>,
    /// Additional paths that commands and file tools may change.
    pub write: Vec<PathBuf>,
    /// The network access of commands.
    pub network: NetworkAccess,
    /// Whether commands may create git repositories in the workspace.
    pub allow_git_init: bool,
    /// The most processes that a command may have at the same time.
    pub max_processes: u32,
    /// The most memory that a command may use, in MiB.
    pub max_memory_mb: u32,
}

/// The keys under `skill`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillSettings {
    /// Additional directories with skills.
    pub dirs: Vec<PathBuf>,
}

/// The keys under `providers.<id>`. For providers that lango knows by name, unset fields have defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// The API family of the provider.
    pub kind: Option<ProviderFamily>,
    /// Which of OpenAI's APIs to use.
    pub api: Option<OpenAiApi>,
    /// The address of the API.
    pub base_url: Option<String>,
    /// The environment variable with the API key.
    pub api_key_env: Option<String>,
    /// Whether the API key may be sent over plain HTTP to another machine.
    pub allow_plain_http: bool,
    /// The context window of the provider's models, in tokens.
    pub context_tokens: Option<u64>,
    /// Whether to stream replies.
    pub stream: bool,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            kind: None,
            api: None,
            base_url: None,
            api_key_env: None,
            allow_plain_http: false,
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
    /// Which agents exist and which agent calls which.
    pub topology: TopologyChoice,
    /// Which tools the orchestrator may call itself; if not set, the topology decides.
    pub orchestrator_tools: Option<OrchestratorTools>,
    /// Provider and model, such as `offline/rules`; if not set, lango chooses.
    pub model: Option<String>,
    /// Whether a model server on this machine is used when neither a model nor a key is set.
    pub find_local_models: bool,
    /// Models to try in order when `model` fails.
    pub fallback: Vec<String>,
    /// The sampling temperature of every model.
    pub temperature: Option<Temperature>,
    /// The reasoning effort of every model.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most tokens of one reply, including reasoning.
    pub max_output_tokens: Option<OutputTokens>,
    /// The most delegation rounds of a turn, as configured; [`limits`](Self::limits) reads zero as the default.
    pub max_delegation_rounds: u32,
    /// The most model calls of a turn.
    pub max_model_calls: u32,
    /// The most tool calls of a turn.
    pub max_tool_calls: u32,
    /// The most tokens that a turn may use.
    pub max_tokens: Option<u64>,
    /// The most US dollars that a turn may cost.
    pub max_cost: Option<f64>,
    /// How long a model may send nothing.
    pub idle_timeout: Duration,
    /// The time limit of a turn, not counting waits for the user.
    pub turn_timeout: Duration,
    /// The time limit of a single tool call or remote call.
    pub tool_timeout: Duration,
    /// Whether a tool that no agent owns is an error.
    pub strict_tools: bool,
    /// The directory with the user's own agent files.
    pub agents_dir: Option<PathBuf>,
}

/// The keys under `session`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// The database that stores the sessions.
    pub store: StoreLocation,
    /// The user who owns the sessions.
    pub user: UserId,
    /// How long an unused session is stored; forever if not set.
    pub ttl: Option<Duration>,
    /// What happens to a question when its session is busy.
    pub when_busy: BusySetting,
    /// The most questions that may wait for a session.
    pub queue_limit: u32,
    /// How long a replica's lease on a session lasts without renewal.
    pub lease: Lease,
}

impl SessionSettings {
    /// Returns the policy for questions to a busy session.
    pub fn busy_policy(&self) -> lango_core::BusyPolicy {
        match self.when_busy {
            BusySetting::Refuse => lango_core::BusyPolicy::Refuse,
            BusySetting::Wait => lango_core::BusyPolicy::Wait {
                max_waiters: self.queue_limit as usize,
            },
        }
    }
}

impl Settings {
    /// Returns the defaults; sessions are stored in the database in the data directory.
    pub fn with_defaults(paths: &Paths) -> Self {
        let limits = Limits::default();
        Self {
            agent: AgentSettings {
                multi_agent: true,
                topology: TopologyChoice::Named("specialists".into()),
                orchestrator_tools: None,
                model: None,
                find_local_models: true,
                fallback: Vec::new(),
                temperature: None,
                reasoning_effort: None,
                max_output_tokens: None,
                max_tokens: None,
                max_cost: None,
                idle_timeout: ProviderTimeouts::default().idle,
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
                when_busy: BusySetting::Wait,
                queue_limit: 16,
                lease: Lease(Duration::from_secs(15)),
            },
            vault: VaultSettings::default(),
            payment: PaymentSettings::default(),
            a2a: A2aSettings {
                enabled: true,
                remote_agents: RemoteAgentConfigs::default(),
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
            ui: UiSettings::default(),
        }
    }
}

impl Settings {
    /// Returns the settings of one provider, and creates them if they do not exist.
    pub(super) fn provider(&mut self, id: &str) -> &mut ProviderConfig {
        self.providers.entry(id.to_owned()).or_default()
    }

    /// Returns the settings of one MCP server, and creates them if they do not exist.
    pub(super) fn server(&mut self, id: &str) -> &mut McpServer {
        self.mcp.servers.entry(id.to_owned()).or_default()
    }

    /// Returns the names configured for the `<id>` of a key; a single empty name if the key has no `<id>`.
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
    /// Returns the limits of a turn.
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
