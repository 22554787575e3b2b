//! The wiring: from the configuration to a tree of agents, a store, a model, and a runner over all of them.

mod build;

use crate::agent_tree::build_tree;
use crate::browser::BrowserStatus;
use crate::config::{Loaded, StoreLocation, Surroundings};
use crate::elsewhere::Elsewhere;
use crate::environment::ThisMachine;
use crate::exit::{Exit, Failure};
use crate::hands::{self, Held};
use crate::knowledge::Knowledge;
use crate::mcp::{self, Mcp};
use crate::model_choice::{Choice, ModelChoice};
use crate::model_lists::ModelLists;
use crate::payment::PaymentStatus;
use crate::roster::Roster;
use crate::sessions::{Kept, Sessions};
use crate::vault::{Credentials, UserVaults, VaultAccess};
use lango_a2a::client::SlowCards;
use lango_core::{
    AgentName, AttachmentStore, Model, SessionCatalog, SessionId, SessionStore, TaskLog, TaskStore,
    Tool, ToolSpec, UserId,
};
use lango_engine::{
    Action, Gate, RandomIds, Rule, Rules, Runner, RunnerParts, SystemClock, Tree, TreeError,
};
use lango_knowledge::MemoryReport;
use lango_mcp::Start;
use lango_net::Egress;
use lango_sandbox::{Launcher, Strength};
use lango_secrets::SecretSource;
use lango_store::Store;
use lango_tools::{Skills, Trash, Workspace};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

/// Everything that a command works with.
pub struct App {
    /// The configuration.
    pub loaded: Loaded,
    /// The agents.
    pub tree: Arc<Tree>,
    /// Where they come from.
    pub roster: Roster,
    /// The folder the agents work in.
    pub workspace: Workspace,
    /// How well commands are held here.
    pub held: Held,
    /// The skills that were found, and those that are broken.
    pub skills: Skills,
    /// What was deleted.
    pub trash: Trash,
    /// What starts commands.
    pub launcher: Launcher,
    /// Where everything is kept.
    pub kept: Kept,
    /// The user's secrets.
    pub(crate) vault: VaultAccess,
    /// The secrets of all users whose turns run here.
    pub(crate) vaults: Arc<UserVaults>,
    /// The keys and tokens of the configuration.
    pub(crate) credentials: Arc<Credentials>,
    /// What is known and remembered; nothing where nothing is to be kept.
    pub knowledge: Option<Knowledge>,
    /// What decides which hosts may be contacted.
    pub egress: Egress,
    /// Whether agents have a browser.
    pub browser: BrowserStatus,
    /// Whether agents can pay.
    pub payments: PaymentStatus,
    /// Agents that run elsewhere.
    pub elsewhere: Elsewhere,
    /// The MCP servers.
    pub mcp: Arc<Mcp>,
    /// Which models providers offer.
    pub(crate) model_lists: ModelLists,
    env: BTreeMap<OsString, OsString>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
}

/// What a command may leave behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Sessions, and what is known and remembered.
    Everything,
    /// Nothing: there is no knowledge and no memory either.
    Nothing,
}

impl App {
    /// Reads the configuration and builds what follows from it. The store is opened when it is needed.
    pub async fn load(flags: Vec<String>) -> Result<Self, Failure> {
        Self::build(flags, Keeping::Everything, Start::PinsOnly).await
    }

    /// The same for somebody who is about to use the tools, and says what may be kept.
    pub async fn load_for(flags: Vec<String>, keeping: Keeping) -> Result<Self, Failure> {
        let surroundings = Surroundings::from_process(Vec::new())?;
        hands::check_workspace(&surroundings.cwd, &hands::homes(surroundings.home()))?;
        Self::build(flags, keeping, mcp::start_for(keeping)).await
    }

    /// Connects the agents that run elsewhere, for a command that runs turns or shows who is there.
    pub async fn connect(&mut self) -> Result<(), Failure> {
        if self.roster.topology.is_some() {
            let slow_cards = match &self.knowledge {
                Some(_) => SlowCards::at(self.loaded.paths.slow_cards()),
                // Nothing is to be kept.
                None => SlowCards::default(),
            };
            let (a2a, credentials) = (&self.loaded.settings.a2a, &self.credentials);
            self.elsewhere = Elsewhere::connect(a2a, credentials, &self.egress, slow_cards).await;
            self.build_tree_anew()?;
        }
        Ok(())
    }

    /// Takes in agents that came to be there meanwhile; says whether there are any.
    pub fn take_in(&mut self) -> Result<bool, Failure> {
        let has_changed = self.elsewhere.has_changed();
        if has_changed {
            self.build_tree_anew()?;
        }
        Ok(has_changed)
    }

    fn build_tree_anew(&mut self) -> Result<(), TreeError> {
        let specs = self.tools.iter();
        let specs = specs.map(|tool| Arc::new(tool.spec().clone()));
        self.tree = Arc::new(self.tree_of(specs.collect())?);
        Ok(())
    }

    /// The agents that the configuration would give these tools.
    pub fn tree_of(&self, tools: Vec<Arc<ToolSpec>>) -> Result<Tree, TreeError> {
        let agent = &self.loaded.settings.agent;
        let homes = self.mcp.homes.clone();
        build_tree(agent, &self.roster, tools, homes, &self.elsewhere)
    }

    /// The folder the agents work in, by which answers that hold for a folder are kept.
    pub fn folder(&self) -> String {
        let path = self.workspace.path();
        match path.to_str() {
            Some(path) => path.to_owned(),
            // Written so that no two folders are the same.
            None => format!("{path:?}"),
        }
    }

    /// Which calls run, which are asked for, which never run.
    fn rules(&self) -> Rules {
        let mut rules = self.loaded.settings.approval.rules.rules.clone();
        if let Strength::Degraded { missing } = &self.held.strength {
            rules.extend(["exec*", "skill_*"].map(|tool| {
                Rule {
                    action: Action::AskEachTime,
                    agent: None,
                    tool: Some(tool.to_owned()),
                    matching: None,
                    origin: format!(
                        "the sandbox is degraded ({missing}), so every command is asked for"
                    )
                    .into(),
                }
            }));
        }
        rules.extend(self.mcp.rules());
        Rules::new(rules).in_folder(self.folder().into())
    }

    /// The person on the command line.
    pub fn user(&self) -> UserId {
        self.loaded.settings.session.user.clone()
    }

    /// Those whose questions are answered here: the person, and whoever calls the server.
    pub fn users(&self) -> Vec<UserId> {
        let (own, caller) = (self.user(), self.loaded.settings.server.user.clone());
        let other = (caller != own).then_some(caller);
        std::iter::once(own).chain(other).collect()
    }

    /// Opens the store, for turns.
    pub async fn sessions(&self) -> Result<Sessions, Failure> {
        self.kept.database.open_now().await?;
        Ok(self.kept_sessions())
    }

    fn kept_sessions(&self) -> Sessions {
        let store = &self.kept.database;
        Sessions {
            store: Arc::clone(store) as Arc<dyn SessionStore>,
            catalog: Arc::clone(store) as Arc<dyn SessionCatalog>,
            tasks: Arc::clone(store) as Arc<dyn TaskStore>,
            task_log: Arc::clone(store) as Arc<dyn TaskLog>,
            attachments: Arc::clone(store) as Arc<dyn AttachmentStore>,
            is_kept: true,
        }
    }

    /// The store for looking back: where there is no database yet, nothing was said, and none is made. One that cannot be
    /// written can still be read.
    pub async fn past_sessions(&self) -> Result<Sessions, Failure> {
        match &self.loaded.settings.session.store {
            StoreLocation::Sqlite(path) if matches!(path.try_exists(), Ok(false)) => {
                Ok(self.ephemeral_sessions())
            }
            _ => {
                self.kept.database.open_for_reading().await?;
                Ok(self.kept_sessions())
            }
        }
    }

    /// A store that forgets everything at the end.
    pub fn ephemeral_sessions(&self) -> Sessions {
        let store = Arc::new(Store::in_memory());
        Sessions {
            store: Arc::clone(&store) as Arc<dyn SessionStore>,
            catalog: Arc::clone(&store) as Arc<dyn SessionCatalog>,
            tasks: Arc::clone(&store) as Arc<dyn TaskStore>,
            task_log: Arc::clone(&store) as Arc<dyn TaskLog>,
            attachments: store,
            is_kept: false,
        }
    }

    /// How models are chosen here.
    pub fn model_choice(&self) -> ModelChoice<'_> {
        ModelChoice {
            settings: &self.loaded.settings,
            credentials: &self.credentials,
            lists: &self.model_lists,
        }
    }

    /// The model of this run. That of a single agent is no less needed: if one cannot be had, nothing begins.
    pub async fn choose_model(&self) -> Result<Choice, Failure> {
        self.agent_models()?;
        self.model_choice().choose().await
    }

    /// The models of agents that have one of their own.
    fn agent_models(&self) -> Result<BTreeMap<AgentName, Arc<dyn Model>>, Failure> {
        let mut models = BTreeMap::new();
        for agent in &self.tree.agents {
            let spec = self.roster.spec_of(&agent.name);
            let Some(name) = spec.and_then(|spec| spec.model.as_ref()) else {
                continue;
            };
            let model = self.model_choice().own(name).map_err(|failure| {
                let place = self.roster.place_of_model(&agent.name);
                failure.at(&format!("{place}: the model of `{}`", agent.name))
            })?;
            models.insert(agent.name.clone(), model);
        }
        Ok(models)
    }

    /// Does what memory has to do after a turn: observing and condensing what was said. It can be dropped anywhere.
    pub async fn remember(&self, user: &UserId, session: &SessionId) -> Option<MemoryReport> {
        let memory = self.knowledge.as_ref()?.memory.as_ref()?;
        memory.work_due(user, session).await.ok()
    }

    /// Refuses a workspace in which nothing should run.
    pub fn check_workspace(&self) -> Result<(), Failure> {
        let home = self.env.get(OsStr::new("HOME")).map(Path::new);
        hands::check_workspace(self.workspace.path(), &hands::homes(home))
    }

    /// Ends what was started.
    pub async fn close(&self) {
        self.mcp.close().await;
    }

    /// The gate over the tools.
    pub fn gate(&self) -> Result<Gate, Failure> {
        Gate::new(&self.tree, self.tools.clone())
            .map(|gate| gate.with_masks(self.credentials.masks().clone()))
            .map(|gate| gate.with_secrets(Arc::clone(&self.vaults) as Arc<dyn SecretSource>))
            .map_err(|error| Failure::new(Exit::Config, error.to_string()))
    }

    /// A runner over this store with this model.
    pub fn runner(&self, sessions: &Sessions, model: &Arc<dyn Model>) -> Result<Runner, Failure> {
        self.check_workspace()?;
        let gate = self.gate()?;
        Ok(Runner::new(RunnerParts {
            tree: Arc::clone(&self.tree),
            gate,
            model: Arc::clone(model),
            models: self.agent_models()?,
            model_settings: self.loaded.settings.agent.model_settings(),
            environment: Some(Arc::new(ThisMachine)),
            remotes: self.elsewhere.agents(),
            store: Arc::clone(&sessions.store),
            attachments: Arc::clone(&sessions.attachments),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            limits: self.loaded.settings.agent.limits(),
            rules: Arc::new(self.rules()),
            recollection: match &self.knowledge {
                Some(known) if sessions.is_kept => known.recollection(),
                _ => None,
            },
            busy_policy: self.loaded.settings.session.busy_policy(),
        }))
    }

    /// The session whose id begins like this.
    pub async fn find_session(
        &self,
        sessions: &Sessions,
        prefix: &str,
    ) -> Result<SessionId, Failure> {
        if prefix.is_empty() {
            return Err(Failure::new(Exit::Usage, "the id of the session is empty")
                .next("`lango sessions list` shows the sessions"));
        }
        let mut found = Vec::new();
        for user in self.users() {
            found.extend(sessions.catalog.find(&user, prefix, 3).await?);
        }
        let exact = found.iter().find(|summary| summary.id == prefix);
        match (exact, found.as_slice()) {
            (Some(summary), _) | (None, [summary]) => Ok(summary.id.clone()),
            (None, []) => Err(
                Failure::new(Exit::Usage, format!("there is no session `{prefix}`"))
                    .next("`lango sessions list` shows the sessions"),
            ),
            (None, [one, two, more @ ..]) => {
                let message = format!(
                    "more than one session begins with `{prefix}`: {}, {}{}",
                    one.id,
                    two.id,
                    if more.is_empty() { "" } else { ", …" }
                );
                Err(Failure::new(Exit::Usage, message).next("write more of the id"))
            }
        }
    }
}
