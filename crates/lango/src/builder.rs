//! Builds a team of agents from parts, each with a default.

use crate::approver::{Approver, DenyAll};
use crate::event_log::{EventLog, LogStore};
use crate::replay::replay_models;
use crate::tool::CustomTool;
use crate::{Error, Lango};
use lango_core::{
    AgentName, AttachmentStore, Event, Limits, Model, ModelSettings, RemoteAgent, SessionCatalog,
    SessionStore, Tool, UserId,
};
use lango_engine::{
    AgentSpec, ApprovalRule, ApprovalRules, Gate, RemoteCard, Runner, RunnerParts, ToolAssignment,
    ToolAssignments, Topology, Tree, TreeSettings,
};
use lango_models::OfflineModel;
use lango_sandbox::Policy;
use lango_store::{PostgresOptions, Store};
use lango_tools::{Trash, Workspace, file_tools};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Where sessions are stored.
#[non_exhaustive]
pub enum Storage {
    /// In memory, until the process ends. This is the default.
    Memory,
    /// In an SQLite file, for one machine.
    Sqlite(PathBuf),
    /// In a PostgreSQL database, which any number of processes share: `postgres://user@host/database`.
    Postgres(String),
    /// In an event log of your own. Sessions and turns work; attachments do not.
    Log(Arc<dyn EventLog>),
    /// In a store that implements the traits itself.
    Custom {
        /// The logs of sessions.
        sessions: Arc<dyn SessionStore>,
        /// The files of messages; without it, messages cannot have files.
        attachments: Option<Arc<dyn AttachmentStore>>,
    },
}

/// Which agents exist.
enum Agents {
    Topology(Box<Topology>),
    BuiltIn(String),
    Single,
}

/// The parts of a [`Lango`]. Every part has a default: see [`Lango::builder`].
pub struct Builder {
    agents: Agents,
    added_agents: Vec<AgentSpec>,
    model: Arc<dyn Model>,
    models: BTreeMap<AgentName, Arc<dyn Model>>,
    model_settings: ModelSettings,
    tools: Vec<Arc<dyn Tool>>,
    assignments: ToolAssignments,
    remotes: Vec<Arc<dyn RemoteAgent>>,
    storage: Storage,
    approver: Arc<dyn Approver>,
    rules: Vec<ApprovalRule>,
    limits: Limits,
    user: UserId,
    is_replay: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            agents: Agents::BuiltIn("specialists".to_owned()),
            added_agents: Vec::new(),
            model: Arc::new(OfflineModel),
            models: BTreeMap::new(),
            model_settings: ModelSettings::default(),
            tools: Vec::new(),
            assignments: ToolAssignments::new(),
            remotes: Vec::new(),
            storage: Storage::Memory,
            approver: Arc::new(DenyAll),
            rules: Vec::new(),
            limits: Limits::default(),
            user: UserId::from("local"),
            is_replay: false,
        }
    }
}

impl Builder {
    /// Sets the model of all agents that have none of their own.
    #[must_use]
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Arc::new(model);
        self
    }

    /// Sets the model of one agent.
    #[must_use]
    pub fn agent_model(mut self, agent: impl Into<String>, model: impl Model + 'static) -> Self {
        let agent: String = agent.into();
        self.models.insert(AgentName::new(agent), Arc::new(model));
        self
    }

    /// Sets temperature, reasoning effort and output limit for all agents that do not set their own.
    #[must_use]
    pub fn model_settings(mut self, settings: ModelSettings) -> Self {
        self.model_settings = settings;
        self
    }

    /// Adds a tool of your own. Its owner is the agent that [`CustomTool::owner`] names, or the agent with a matching prefix;
    /// without either, [`build`](Self::build) fails. A single agent owns every tool, whatever the owner.
    #[must_use]
    pub fn tool(mut self, tool: CustomTool) -> Self {
        if let Some(agent) = &tool.owner {
            let capability = tool.capability.clone();
            let assignment = ToolAssignment {
                agent: agent.clone(),
                capability: capability.unwrap_or_else(|| tool.spec.description.clone()),
            };
            self.assignments.insert(tool.spec.name.clone(), assignment);
        }
        self.tools.push(tool.build());
        self
    }

    /// Adds tools that implement [`Tool`] themselves. The prefixes of their names decide which agents own them.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds the file tools for a folder: agents list, read and search it freely, and change it with approval. They reach
    /// nothing outside of it. Deleted files go to `.lango/trash` in the folder.
    ///
    /// # Errors
    /// The folder does not exist or cannot be opened.
    pub fn workspace(self, folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder: PathBuf = folder.into();
        let unusable = |problem: String| Error::Workspace {
            path: folder.display().to_string(),
            problem,
        };
        let root = folder.canonicalize();
        let root = root.map_err(|error| unusable(error.to_string()))?;
        let trash = Trash::at(root.join(".lango/trash"));
        let workspace = Workspace::open(Policy::of(root));
        let workspace = workspace.map_err(|error| unusable(error.to_string()))?;
        Ok(self.tools(file_tools(&workspace, &trash, None)))
    }

    /// Selects the agents by name: `specialists` (the default) or `classic`.
    #[must_use]
    pub fn topology(mut self, name: impl Into<String>) -> Self {
        self.agents = Agents::BuiltIn(name.into());
        self
    }

    /// Sets the agents to a topology of your own: see [`Topology::parse`].
    #[must_use]
    pub fn custom_topology(mut self, topology: Topology) -> Self {
        self.agents = Agents::Topology(Box::new(topology));
        self
    }

    /// Uses a single agent, `lango-agent`, with every tool, instead of an orchestrator with specialists.
    #[must_use]
    pub fn single_agent(mut self) -> Self {
        self.agents = Agents::Single;
        self
    }

    /// Adds an agent to the topology, or replaces the one with the same name.
    #[must_use]
    pub fn agent(mut self, agent: AgentSpec) -> Self {
        self.added_agents.push(agent);
        self
    }

    /// Adds a remote agent: see [`connect_remote`](crate::connect_remote).
    #[must_use]
    pub fn remote_agent(mut self, agent: Arc<dyn RemoteAgent>) -> Self {
        self.remotes.push(agent);
        self
    }

    /// Sets where sessions are stored.
    #[must_use]
    pub fn store(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Sets who decides about calls that need approval. By default they are denied.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Adds a rule that allows calls, denies them, or asks.
    #[must_use]
    pub fn rule(mut self, rule: ApprovalRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the limits of a turn, over all of its agents.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the user who owns new sessions; `local` by default.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        let user: String = user.into();
        self.user = UserId::new(user);
        self
    }

    /// Answers model calls with the replies in these stored events, agent by agent, instead of calling a model. A test can
    /// so repeat a session with the current tools and rules.
    #[must_use]
    pub fn replay(mut self, events: &[Event]) -> Self {
        self.models = replay_models(events);
        self.is_replay = true;
        self
    }

    /// Builds the agents. Databases are opened when they are first used.
    ///
    /// # Errors
    /// The agents and tools do not fit together, or the database address is invalid.
    pub fn build(self) -> Result<Lango, Error> {
        let specs = self.tools.iter();
        let specs = specs.map(|tool| Arc::new(tool.spec().clone())).collect();
        let settings = TreeSettings {
            rounds: self.limits.rounds,
            // A tool that no agent can reach is a mistake of the program.
            strict_tools: true,
            tool_assignments: self.assignments,
            ..TreeSettings::default()
        };
        let topology = match self.agents {
            Agents::BuiltIn(name) => Some(Topology::built_in(&name)?),
            Agents::Topology(topology) => Some(*topology),
            Agents::Single => None,
        };
        let tree = match topology {
            Some(topology) => {
                let topology = topology.with_agents(self.added_agents)?;
                let cards = self.remotes.iter().map(|agent| RemoteCard {
                    name: agent.name().clone(),
                    description: agent.description().to_owned(),
                });
                Tree::multi(&topology, specs, cards.collect(), &settings)?
            }
            None => Tree::single(specs, &settings)?,
        };
        if !self.is_replay
            && let Some(name) = self
                .models
                .keys()
                .find(|name| tree.agent(name.as_str()).is_none())
        {
            let agents = std::iter::once(&tree.root).chain(&tree.agents);
            let agents: Vec<&str> = agents.map(|agent| agent.name.as_str()).collect();
            return Err(Error::NoSuchAgent {
                name: name.to_string(),
                agents: agents.join(", "),
            });
        }
        let tree = Arc::new(tree);
        let gate = Gate::new(&tree, self.tools)?;
        let stores = Stores::open(self.storage, tree.root.name.clone())?;
        let mut parts = RunnerParts::new(tree, gate, self.model, Arc::clone(&stores.sessions));
        parts.attachments = stores.attachments;
        parts.models = self.models;
        parts.model_settings = self.model_settings;
        parts.remotes = self.remotes;
        parts.limits = self.limits;
        parts.rules = Arc::new(ApprovalRules::new(self.rules));
        Ok(Lango {
            tree: Arc::clone(&parts.tree),
            runner: Runner::new(parts),
            store: stores.sessions,
            catalog: stores.catalog,
            approver: self.approver,
            user: self.user,
        })
    }
}

/// The traits of a storage.
struct Stores {
    sessions: Arc<dyn SessionStore>,
    attachments: Option<Arc<dyn AttachmentStore>>,
    catalog: Option<Arc<dyn SessionCatalog>>,
}

impl Stores {
    fn open(storage: Storage, root: AgentName) -> Result<Self, Error> {
        let store = match storage {
            Storage::Memory => Store::in_memory(),
            Storage::Sqlite(path) => Store::sqlite(path, root)?,
            Storage::Postgres(address) => {
                Store::postgres_with(&address, root, PostgresOptions::default())?
            }
            Storage::Log(log) => {
                return Ok(Self {
                    sessions: Arc::new(LogStore::new(log)),
                    attachments: None,
                    catalog: None,
                });
            }
            Storage::Custom {
                sessions,
                attachments,
            } => {
                return Ok(Self {
                    sessions,
                    attachments,
                    catalog: None,
                });
            }
        };
        let store = Arc::new(store);
        Ok(Self {
            sessions: Arc::clone(&store) as Arc<dyn SessionStore>,
            catalog: Some(Arc::clone(&store) as Arc<dyn SessionCatalog>),
            attachments: Some(store),
        })
    }
}
