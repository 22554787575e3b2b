//! The agent tree: which agents exist, which tools each owns, and what each instruction says. It is built once from a
//! topology, the specs of the tools and the remote agents. It is pure data: only the gate has handles to the code of
//! tools. So a tree can also be shown for tools that are not installed.

mod build;
mod tool;

use crate::instruction::{self, DELEGATE, Finish};
use crate::partition::ToolAssignments;
use crate::topology::OrchestratorTools;
use lango_core::{AgentName, Function, Limits, ModelSettings, Text, ToolName, Trust};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
pub use tool::OwnedTool;

/// The root agent and its sub-agents.
#[derive(Debug)]
pub struct Tree {
    pub mode: TreeMode,
    /// The name of the topology; `single` in single-agent mode.
    pub topology: Text,
    /// The root agent, which answers the user in every turn.
    pub root: Agent,
    /// The sub-agents: the local ones in the order of the topology, then the remote ones in the order of the
    /// configuration.
    pub agents: Vec<Agent>,
    /// Agents of the topology that are not in the tree.
    pub skipped: Vec<SkippedAgent>,
    /// Tools that no agent owns.
    pub unmatched: Vec<ToolName>,
    /// A digest of names, tools and instructions, stored with every turn.
    pub digest: Text,
    owners: HashMap<ToolName, usize>,
    delegate_to_all: Function,
}

/// Whether the tree has one agent or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeMode {
    /// An orchestrator and its sub-agents.
    Multi,
    Single,
}

impl TreeMode {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Multi => "multi",
            Self::Single => "single",
        }
    }
}

/// One agent of the tree.
#[derive(Debug)]
pub struct Agent {
    pub name: AgentName,
    /// What the agent is for and can do.
    pub description: Text,
    /// What its tools let it do.
    pub capabilities: Vec<Text>,
    /// The tools that it may call, in the order of installation.
    pub tools: Vec<Arc<OwnedTool>>,
    /// The system instruction of its model; empty for a remote agent.
    pub instruction: Text,
    /// Its tools in the form that its model sees.
    pub functions: Arc<[Function]>,
    /// Whether it runs on another machine.
    pub is_remote: bool,
    /// The trust label of its instruction and of the descriptions of its tools.
    pub trust: Trust,
    /// The model settings that differ from the general ones.
    pub settings: ModelSettings,
}

impl Agent {
    /// Returns its tool with this name.
    pub fn tool(&self, name: &str) -> Option<&Arc<OwnedTool>> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }
}

/// An agent of the topology that is not in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedAgent {
    pub name: AgentName,
    pub reason: String,
}

impl SkippedAgent {
    /// The reason for an agent without installed tools.
    pub const NO_TOOLS: &'static str = "no tools";
}

/// What the tree needs to know about a remote agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteCard {
    /// The name that the agent is registered under here.
    pub name: AgentName,
    /// The agent's description of itself. It is untrusted.
    pub description: String,
}

/// The instructions in the project's file, for agents with [`AgentSpec::project_instructions`](crate::AgentSpec).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInstructions {
    pub text: Text,
    pub trust: Trust,
}

/// Settings of the configuration that shape the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSettings {
    /// The round limit that the orchestrator's instruction mentions.
    pub rounds: u32,
    /// The orchestrator's tools; `None` leaves the choice to the topology.
    pub orchestrator_tools: Option<OrchestratorTools>,
    /// Whether a tool without an owner is an error.
    pub strict_tools: bool,
    /// Tools that the configuration assigns to agents by name.
    pub tool_assignments: ToolAssignments,
    pub project_instructions: Option<ProjectInstructions>,
}

impl Default for TreeSettings {
    fn default() -> Self {
        Self {
            rounds: Limits::DEFAULT_ROUNDS,
            orchestrator_tools: None,
            strict_tools: false,
            tool_assignments: ToolAssignments::new(),
            project_instructions: None,
        }
    }
}

/// Why a tree cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    #[error("there are two tools named `{name}`; rename or remove one")]
    DuplicateTool { name: ToolName },
    /// A tool has the same name as the `delegate` function, or a name that no model could call.
    #[error(
        "a tool cannot be named `{name}`: use up to 64 letters, digits, `-`, `_` and `.`, and not `{DELEGATE}`"
    )]
    BadToolName { name: ToolName },
    #[error("the argument schema of the tool `{name}` cannot be used: {detail}")]
    BadSchema { name: ToolName, detail: String },
    /// Some tools have no owner, and the configuration requires owners.
    #[error(
        "no agent owns {}; name the owner, give the tools a known prefix, or set agent.strictTools = false",
        list(names)
    )]
    Unmatched { names: Vec<ToolName> },
    /// The configuration assigns a tool to an agent that does not exist.
    #[error(
        "the tool `{tool}` is assigned to the agent `{agent}`, which does not exist; the agents are {agents}"
    )]
    NoSuchAgent {
        tool: ToolName,
        agent: AgentName,
        /// The names of the existing agents.
        agents: String,
    },
    /// The configuration gives tools to an orchestrator whose topology does not allow it.
    #[error(
        "the orchestrator of the topology `{topology}` has no tools; agent.orchestratorTools = \"all\" needs `classic`"
    )]
    ToolLessOrchestrator { topology: String },
}

impl Tree {
    /// Returns the agent with this name, which may be the root.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        if self.root.name == name {
            Some(&self.root)
        } else {
            self.sub_agent(name)
        }
    }

    /// Returns the sub-agent with this name.
    pub fn sub_agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Returns the sub-agent that owns this tool.
    pub fn owner_of(&self, tool: &str) -> Option<&Agent> {
        self.owners.get(tool).map(|index| &self.agents[*index])
    }

    /// Returns the `delegate` function for the agents that have not rejected a task.
    pub(crate) fn delegate_function(
        &self,
        refused: &BTreeSet<AgentName>,
        finish: Finish,
    ) -> Function {
        if refused.is_empty() && finish == Finish::Offered {
            return self.delegate_to_all.clone();
        }
        instruction::delegate_function(self.available_agents(refused), finish)
    }

    /// Returns the names of the agents that have not rejected a task.
    pub(crate) fn available_agents<'a>(
        &'a self,
        refused: &'a BTreeSet<AgentName>,
    ) -> impl Iterator<Item = &'a AgentName> {
        self.agents
            .iter()
            .map(|agent| &agent.name)
            .filter(|name| !refused.contains(*name))
    }
}

fn list(names: &[ToolName]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
