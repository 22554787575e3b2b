//! The dependencies of a runner.

use crate::ambient::{RandomIds, SystemClock};
use crate::gate::{ApprovalRules, Gate};
use crate::mode_switch::ModeSwitch;
use crate::tree::Tree;
use lango_core::{
    AgentName, AttachmentStore, BusyPolicy, Clock, Environment, IdGenerator, Limits,
    MemoryProvider, Model, ModelSettings, RemoteAgent, SessionStore,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The dependencies of a runner. [`Self::new`] sets those that most callers do not need.
pub struct RunnerParts {
    pub tree: Arc<Tree>,
    pub gate: Gate,
    /// The model of all local agents that do not have their own.
    pub model: Arc<dyn Model>,
    pub store: Arc<dyn SessionStore>,
    /// The store of attachments that the log refers to. Without it, messages and results have no files.
    pub attachments: Option<Arc<dyn AttachmentStore>>,
    /// The models of agents that have their own.
    pub models: BTreeMap<AgentName, Arc<dyn Model>>,
    /// The general model settings. The settings of an agent override them.
    pub model_settings: ModelSettings,
    /// The source of the date and the machine's description for agents; if `None`, neither is mentioned.
    pub environment: Option<Arc<dyn Environment>>,
    pub remotes: Vec<Arc<dyn RemoteAgent>>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGenerator>,
    /// The limits of a turn.
    pub limits: Limits,
    /// The rules that allow calls, deny them, or require approval.
    pub rules: Arc<ApprovalRules>,
    /// The permission mode, which can change while turns run.
    pub mode: ModeSwitch,
    pub memory: Option<Arc<dyn MemoryProvider>>,
    /// What to do if a session is busy with another turn.
    pub busy_policy: BusyPolicy,
}

impl RunnerParts {
    /// How many turns wait for a busy session by default.
    const MAX_WAITERS: usize = 16;

    /// Creates the parts of a runner without files, memory, remote agents, rules and environment, in mode `ask`. All
    /// agents share the model, and turns wait for a busy session.
    pub fn new(
        tree: Arc<Tree>,
        gate: Gate,
        model: Arc<dyn Model>,
        store: Arc<dyn SessionStore>,
    ) -> Self {
        Self {
            tree,
            gate,
            model,
            store,
            attachments: None,
            models: BTreeMap::new(),
            model_settings: ModelSettings::default(),
            environment: None,
            remotes: Vec::new(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            limits: Limits::default(),
            rules: Arc::default(),
            mode: ModeSwitch::default(),
            memory: None,
            busy_policy: BusyPolicy::Wait {
                max_waiters: Self::MAX_WAITERS,
            },
        }
    }

    /// Returns the model of this agent.
    pub(super) fn model_of(&self, agent: &AgentName) -> &Arc<dyn Model> {
        self.models.get(agent).unwrap_or(&self.model)
    }

    /// Returns the complete settings of agents that override some of the general ones.
    pub(super) fn agent_model_settings(&self) -> BTreeMap<AgentName, ModelSettings> {
        let own = self.tree.agents.iter();
        let own = own.filter(|agent| !agent.settings.is_default());
        own.map(|agent| (agent.name.clone(), agent.settings.or(self.model_settings)))
            .collect()
    }
}
