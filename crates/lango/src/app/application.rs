//! The wiring: builds the agent tree, the store, the model and the runner from the configuration.

use crate::app::agent_tree::build_tree;
use crate::app::browser::BrowserStatus;
use crate::app::environment::LocalEnvironment;
use crate::app::failure::Failure;
use crate::app::knowledge::Knowledge;
use crate::app::mcp::{self, Mcp};
use crate::app::model_lists::ModelLists;
use crate::app::model_selector::{ChosenModel, ModelSelector, check_model_name};
use crate::app::payment::PaymentStatus;
use crate::app::remote_agents::RemoteAgents;
use crate::app::roster::Roster;
use crate::app::sandbox_setup::{self, SandboxStatus};
use crate::app::sessions::{Sessions, Storage};
use crate::app::vault::{Credentials, UserVaults, VaultAccess};
use lango_a2a::client::SlowCards;
use lango_config::{LoadedConfig, ProcessEnv, StoreLocation};
use lango_core::{
    AgentName, AttachmentStore, Model, SessionCatalog, SessionId, SessionStore, TaskLog, TaskStore,
    Tool, ToolSpec, UserId,
};
use lango_engine::{
    ApprovalRule, ApprovalRules, Gate, ModeSwitch, RandomIds, RuleAction, Runner, RunnerParts,
    SystemClock, Tree, TreeError,
};
use lango_knowledge::MemoryReport;
use lango_mcp::StartMode;
use lango_net::Egress;
use lango_sandbox::{Launcher, SandboxStrength};
use lango_secrets::SecretSource;
use lango_store::Store;
use lango_tools::{Skills, Trash, UndoStore, Workspace};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

/// Everything that a command works with.
pub struct App {
    pub loaded: LoadedConfig,
    pub tree: Arc<Tree>,
    /// The agent definitions and where they come from.
    pub roster: Roster,
    /// The directory in which the agents work.
    pub workspace: Workspace,
    /// How well the sandbox isolates commands on this machine.
    pub sandbox: SandboxStatus,
    /// The skills, including broken ones.
    pub skills: Skills,
    /// Files that agents deleted.
    pub trash: Trash,
    /// The originals of files that agents changed.
    pub undo: UndoStore,
    /// The launcher that starts commands in the sandbox.
    pub launcher: Launcher,
    pub storage: Storage,
    pub vault: VaultAccess,
    /// The vaults of all users whose turns run in this process.
    pub vaults: Arc<UserVaults>,
    /// The API keys and tokens that the configuration names.
    pub credentials: Arc<Credentials>,
    /// Knowledge and memory; `None` if nothing may be persisted.
    pub knowledge: Option<Knowledge>,
    /// The guard that decides which hosts may be contacted.
    pub egress: Egress,
    pub browser: BrowserStatus,
    pub payments: PaymentStatus,
    pub remote_agents: RemoteAgents,
    pub mcp: Arc<Mcp>,
    /// The models that providers offer.
    pub model_lists: ModelLists,
    pub(super) env: BTreeMap<OsString, OsString>,
    pub tools: Vec<Arc<dyn Tool>>,
    /// The permission mode of all runners of this app: `ask` until a command or its user interface sets another one.
    pub mode: ModeSwitch,
}

/// Whether a command may persist anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Sessions, knowledge and memory are stored.
    Everything,
    /// Nothing is stored; there is no knowledge and no memory.
    Nothing,
}

impl App {
    /// Loads the configuration and builds everything that follows from it. The store is opened when it is needed.
    pub async fn load(flags: Vec<String>) -> Result<Self, Failure> {
        Self::build(flags, Persistence::Everything, StartMode::PinsOnly).await
    }

    /// Like [`load`](Self::load), but for a command that uses tools: checks the workspace first. `persistence` says
    /// what may be stored.
    pub async fn load_for(flags: Vec<String>, persistence: Persistence) -> Result<Self, Failure> {
        let process_env = ProcessEnv::from_process(Vec::new())?;
        sandbox_setup::check_workspace(
            &process_env.cwd,
            &sandbox_setup::homes(process_env.home()),
        )?;
        Self::build(flags, persistence, mcp::start_for(persistence)).await
    }

    /// Connects to the remote agents, for a command that runs turns or lists agents.
    pub async fn connect(&mut self) -> Result<(), Failure> {
        if self.roster.topology.is_some() {
            let slow_cards = match &self.knowledge {
                Some(_) => SlowCards::at(self.loaded.paths.slow_cards()),
                // Nothing may be persisted.
                None => SlowCards::default(),
            };
            let (a2a, credentials) = (&self.loaded.settings.a2a, &self.credentials);
            self.remote_agents =
                RemoteAgents::connect(a2a, credentials, &self.egress, slow_cards).await;
            self.rebuild_tree()?;
        }
        Ok(())
    }

    /// Adds remote agents that became available since the tree was built; returns whether there were any.
    pub fn add_new_remote_agents(&mut self) -> Result<bool, Failure> {
        let has_changed = self.remote_agents.has_changed();
        if has_changed {
            self.rebuild_tree()?;
        }
        Ok(has_changed)
    }

    fn rebuild_tree(&mut self) -> Result<(), TreeError> {
        let specs = self.tools.iter();
        let specs = specs.map(|tool| Arc::new(tool.spec().clone()));
        self.tree = Arc::new(self.tree_with_tools(specs.collect())?);
        Ok(())
    }

    /// Builds the agent tree from the configuration and these tools.
    pub fn tree_with_tools(&self, tools: Vec<Arc<ToolSpec>>) -> Result<Tree, TreeError> {
        let agent = &self.loaded.settings.agent;
        let assignments = self.mcp.assignments.clone();
        build_tree(agent, &self.roster, tools, assignments, &self.remote_agents)
    }

    /// Returns the path of the workspace as text. Approvals that apply to a folder are stored with this text.
    pub fn folder(&self) -> String {
        self.workspace.name()
    }

    /// Returns the approval rules: those of the configuration, those for a degraded sandbox, and those for MCP tools.
    fn rules(&self) -> ApprovalRules {
        let mut rules = self.loaded.settings.approval.rules.rules.clone();
        if let SandboxStrength::Degraded { missing } = &self.sandbox.strength {
            rules.extend(["exec*", "skill_*"].map(|tool| {
                ApprovalRule {
                    action: RuleAction::AskEachTime,
                    agent: None,
                    tool: Some(tool.to_owned()),
                    matching: None,
                    origin: format!(
                        "the sandbox is degraded ({missing}), so every command needs approval"
                    )
                    .into(),
                }
            }));
        }
        rules.extend(self.mcp.rules());
        ApprovalRules::new(rules).in_folder(self.folder().into())
    }

    /// Returns the user of the command line.
    pub fn user(&self) -> UserId {
        self.loaded.settings.session.user.clone()
    }

    /// Returns the users whose turns run here: the user of the command line, and the user that callers of the server
    /// act as.
    pub fn users(&self) -> Vec<UserId> {
        let (own, caller) = (self.user(), self.loaded.settings.server.user.clone());
        let other = (caller != own).then_some(caller);
        std::iter::once(own).chain(other).collect()
    }

    /// Opens the store for turns.
    pub async fn sessions(&self) -> Result<Sessions, Failure> {
        self.storage.database.open_now().await?;
        Ok(self.persistent_sessions())
    }

    fn persistent_sessions(&self) -> Sessions {
        let store = &self.storage.database;
        Sessions {
            store: Arc::clone(store) as Arc<dyn SessionStore>,
            catalog: Arc::clone(store) as Arc<dyn SessionCatalog>,
            tasks: Arc::clone(store) as Arc<dyn TaskStore>,
            task_log: Arc::clone(store) as Arc<dyn TaskLog>,
            attachments: Arc::clone(store) as Arc<dyn AttachmentStore>,
            is_persistent: true,
        }
    }

    /// Opens the store for reading. If there is no database file yet, returns an empty store without creating the
    /// file. A database that cannot be written can still be read.
    pub async fn sessions_for_reading(&self) -> Result<Sessions, Failure> {
        match &self.loaded.settings.session.store {
            StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
                Ok(self.ephemeral_sessions())
            }
            _ => {
                self.storage.database.open_for_reading().await?;
                Ok(self.persistent_sessions())
            }
        }
    }

    /// Returns an in-memory store that is lost when the process ends.
    pub fn ephemeral_sessions(&self) -> Sessions {
        let store = Arc::new(Store::in_memory());
        Sessions {
            store: Arc::clone(&store) as Arc<dyn SessionStore>,
            catalog: Arc::clone(&store) as Arc<dyn SessionCatalog>,
            tasks: Arc::clone(&store) as Arc<dyn TaskStore>,
            task_log: Arc::clone(&store) as Arc<dyn TaskLog>,
            attachments: store,
            is_persistent: false,
        }
    }

    /// Returns the rules for choosing models.
    pub fn model_selector(&self) -> ModelSelector<'_> {
        ModelSelector {
            settings: &self.loaded.settings,
            credentials: &self.credentials,
            lists: &self.model_lists,
        }
    }

    /// Chooses the model of this run. Fails if a model that an agent specifies is unavailable, so that no turn starts
    /// without it.
    pub async fn choose_model(&self) -> Result<ChosenModel, Failure> {
        self.agent_models()?;
        let chosen = self.model_selector().choose().await;
        chosen.map_err(|failure| self.with_model_origin(failure))
    }

    /// Adds where agent.model is set, if it cannot be the name of a model.
    fn with_model_origin(&self, failure: Failure) -> Failure {
        let name = self.loaded.settings.agent.model.as_deref();
        let is_wrong =
            name.is_some_and(|name| check_model_name(&self.loaded.settings, name).is_err());
        let mut values = self.loaded.values.iter();
        match values.find(|value| value.name == "agent.model") {
            Some(value) if is_wrong => failure.at(&format!("{}: agent.model", value.origin)),
            _ => failure,
        }
    }

    /// Returns the models of agents that specify their own.
    fn agent_models(&self) -> Result<BTreeMap<AgentName, Arc<dyn Model>>, Failure> {
        let mut models = BTreeMap::new();
        for agent in &self.tree.agents {
            let spec = self.roster.spec_of(&agent.name);
            let Some(name) = spec.and_then(|spec| spec.model.as_ref()) else {
                continue;
            };
            let model = self.model_selector().agent_model(name).map_err(|failure| {
                let place = self.roster.model_location(&agent.name);
                failure.at(&format!("{place}: the model of `{}`", agent.name))
            })?;
            models.insert(agent.name.clone(), model);
        }
        Ok(models)
    }

    /// Updates memory after a turn: observes and condenses the conversation. It is safe to drop this future at any
    /// point.
    pub fn remember(
        &self,
        user: &UserId,
        session: &SessionId,
    ) -> impl Future<Output = Option<MemoryReport>> + use<> {
        let knowledge = self.knowledge.as_ref();
        let memory = knowledge.and_then(|knowledge| knowledge.memory.clone());
        let (user, session) = (user.clone(), session.clone());
        async move { memory?.work_due(&user, &session).await.ok() }
    }

    /// Refuses a workspace in which no turn should run.
    pub fn check_workspace(&self) -> Result<(), Failure> {
        let home = self.env.get(OsStr::new("HOME")).map(Path::new);
        sandbox_setup::check_workspace(self.workspace.path(), &sandbox_setup::homes(home))
    }

    /// Stops the MCP servers.
    pub async fn close(&self) {
        self.mcp.close().await;
    }

    /// Builds the gate over all tools.
    pub fn gate(&self) -> Result<Gate, Failure> {
        Gate::new(&self.tree, self.tools.clone())
            .map(|gate| gate.with_masks(self.credentials.masks().clone()))
            .map(|gate| gate.with_secrets(Arc::clone(&self.vaults) as Arc<dyn SecretSource>))
            .map_err(|error| Failure::config(error.to_string()))
    }

    /// Builds a runner over this store and model.
    pub fn runner(&self, sessions: &Sessions, model: &Arc<dyn Model>) -> Result<Runner, Failure> {
        self.build_runner(sessions, model, self.agent_models()?)
    }

    /// Builds a runner whose agents all use this model, even those that specify their own.
    pub fn runner_without_agent_models(
        &self,
        sessions: &Sessions,
        model: &Arc<dyn Model>,
    ) -> Result<Runner, Failure> {
        self.build_runner(sessions, model, BTreeMap::new())
    }

    fn build_runner(
        &self,
        sessions: &Sessions,
        model: &Arc<dyn Model>,
        models: BTreeMap<AgentName, Arc<dyn Model>>,
    ) -> Result<Runner, Failure> {
        self.check_workspace()?;
        let gate = self.gate()?;
        Ok(Runner::new(RunnerParts {
            tree: Arc::clone(&self.tree),
            gate,
            model: Arc::clone(model),
            models,
            model_settings: self.loaded.settings.agent.model_settings(),
            environment: Some(Arc::new(LocalEnvironment)),
            remotes: self.remote_agents.agents(),
            store: Arc::clone(&sessions.store),
            attachments: Some(Arc::clone(&sessions.attachments)),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            limits: self.loaded.settings.agent.limits(),
            rules: Arc::new(self.rules()),
            mode: self.mode.clone(),
            memory: match &self.knowledge {
                Some(known) if sessions.is_persistent => known.memory_provider(),
                _ => None,
            },
            busy_policy: self.loaded.settings.session.busy_policy(),
        }))
    }

    /// Finds the session whose id starts with `prefix`.
    pub async fn find_session(
        &self,
        sessions: &Sessions,
        prefix: &str,
    ) -> Result<SessionId, Failure> {
        if prefix.is_empty() {
            return Err(Failure::usage("the id of the session is empty")
                .next("run `lango sessions list` to see the sessions"));
        }
        let mut found = Vec::new();
        for user in self.users() {
            found.extend(sessions.catalog.find(&user, prefix, 3).await?);
        }
        let exact = found.iter().find(|summary| summary.id == prefix);
        match (exact, found.as_slice()) {
            (Some(summary), _) | (None, [summary]) => Ok(summary.id.clone()),
            (None, []) => Err(Failure::usage(format!("there is no session `{prefix}`"))
                .next("run `lango sessions list` to see the sessions")),
            (None, [one, two, more @ ..]) => {
                let message = format!(
                    "more than one session id starts with `{prefix}`: {}, {}{}",
                    one.id,
                    two.id,
                    if more.is_empty() { "" } else { ", …" }
                );
                Err(Failure::usage(message).next("give more characters of the id"))
            }
        }
    }
}
