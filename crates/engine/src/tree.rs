//! The agent tree: who exists, who owns which tool, and what each is told. Built once from a topology, the tools' specs
//! and the remote agents; pure data, so that it can be shown for tools that are not installed. It holds no handle to any
//! tool's code: that is the gate's.

mod build;
mod tool;

use crate::instruction::{self, DELEGATE, Finish};
use crate::partition::Homes;
use crate::topology::OrchestratorTools;
use lango_core::{AgentName, Function, Limits, ModelSettings, Text, ToolName, Trust};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
pub use tool::OwnedTool;

/// The root agent and its sub-agents.
#[derive(Debug)]
pub struct Tree {
    /// One agent or many.
    pub mode: Mode,
    /// The topology's name; `single` in single-agent mode.
    pub topology: Text,
    /// The agent that owns every turn.
    pub root: Agent,
    /// The sub-agents: the local ones in the topology's order, then the remote ones in the configuration's.
    pub agents: Vec<Agent>,
    /// Agents of the topology that were not made, and why.
    pub skipped: Vec<Skipped>,
    /// Tools that no agent holds.
    pub unmatched: Vec<ToolName>,
    /// A digest of names, tools and instructions, stored with every turn.
    pub digest: Text,
    owners: HashMap<ToolName, usize>,
    delegate_to_all: Function,
}

/// How many agents answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// An orchestrator and its sub-agents.
    Multi,
    /// One flat agent.
    Single,
}

impl Mode {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Multi => "multi",
            Self::Single => "single",
        }
    }
}

/// One agent of the tree.
#[derive(Debug)]
pub struct Agent {
    /// Its exact name.
    pub name: AgentName,
    /// What it is for and can do, in words.
    pub description: Text,
    /// What its tools let it do, in words.
    pub capabilities: Vec<Text>,
    /// The tools it may call, in the order they were installed.
    pub tools: Vec<Arc<OwnedTool>>,
    /// What its model is told first; empty for a remote agent.
    pub instruction: Text,
    /// Its tools as its model is offered them.
    pub functions: Arc<[Function]>,
    /// Whether it runs somewhere else.
    pub remote: bool,
    /// The trust label of its instruction and of the descriptions of its tools.
    pub trust: Trust,
    /// How its model should answer, as far as it has settings of its own.
    pub settings: ModelSettings,
}

impl Agent {
    /// Its tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Arc<OwnedTool>> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }
}

/// An agent that was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub name: AgentName,
    /// Why.
    pub reason: String,
}

impl Skipped {
    /// The reason of an agent that no tool was installed for.
    pub const NO_TOOLS: &'static str = "no tools";
}

/// What the tree has to know of a remote agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteCard {
    /// The name it is registered under here.
    pub name: AgentName,
    /// What it says of itself.
    pub description: String,
}

/// What the project's own file tells the agents that the topology gives it to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInstructions {
    /// The text of the file.
    pub text: Text,
    /// The trust label of the text.
    pub trust: Trust,
}

/// What the configuration says about the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSettings {
    /// The round limit that the orchestrator is told.
    pub rounds: u32,
    /// What replaces the topology's own word on the orchestrator's tools.
    pub orchestrator_tools: Option<OrchestratorTools>,
    /// Whether a tool without a home is an error.
    pub strict_tools: bool,
    /// Tools that are given to an agent by name.
    pub homes: Homes,
    /// What the project's own file tells its agents.
    pub project_instructions: Option<ProjectInstructions>,
}

impl Default for TreeSettings {
    fn default() -> Self {
        Self {
            rounds: Limits::DEFAULT_ROUNDS,
            orchestrator_tools: None,
            strict_tools: false,
            homes: Homes::new(),
            project_instructions: None,
        }
    }
}

/// Why a tree cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Two tools share a name.
    #[error("there are two tools named `{name}`; rename or remove one")]
    DuplicateTool {
        /// The name.
        name: ToolName,
    },
    /// A tool has the name of the control function, or none a model can call.
    #[error(
        "a tool cannot be named `{name}`: use up to 64 letters, digits, `-`, `_` and `.`, and not `{DELEGATE}`"
    )]
    BadToolName {
        /// The name.
        name: ToolName,
    },
    /// A tool's schema is not one.
    #[error("the argument schema of the tool `{name}` cannot be used: {detail}")]
    BadSchema {
        /// The tool.
        name: ToolName,
        /// What is wrong with it.
        detail: String,
    },
    /// Tools without a home, where the configuration wants none.
    #[error(
        "no agent holds {}; give the tools a known prefix, or set agent.strictTools = false",
        list(names)
    )]
    Unmatched {
        /// Their names.
        names: Vec<ToolName>,
    },
    /// The configuration gives a tool to an agent that there is not.
    #[error(
        "the tool `{tool}` is given to the agent `{agent}`, which there is not; the agents are {agents}"
    )]
    NoSuchAgent {
        /// The tool.
        tool: ToolName,
        /// The agent.
        agent: AgentName,
        /// Those that there are.
        agents: String,
    },
    /// The configuration gives the orchestrator tools that its topology denies it.
    #[error(
        "the orchestrator of the topology `{topology}` holds no tools; agent.orchestratorTools = \"all\" fits `classic`"
    )]
    ToolLessOrchestrator {
        /// The topology.
        topology: String,
    },
}

impl Tree {
    /// The agent of this name, the root included.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        if self.root.name == name {
            Some(&self.root)
        } else {
            self.sub_agent(name)
        }
    }

    /// The sub-agent of this name.
    pub fn sub_agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The sub-agent that owns this tool.
    pub fn owner_of(&self, tool: &str) -> Option<&Agent> {
        self.owners.get(tool).map(|index| &self.agents[*index])
    }

    /// The control function, over the agents that have not refused.
    pub(crate) fn delegate_function(
        &self,
        refused: &BTreeSet<AgentName>,
        finish: Finish,
    ) -> Function {
        if refused.is_empty() && finish == Finish::Offered {
            return self.delegate_to_all.clone();
        }
        instruction::delegate_function(self.live(refused), finish)
    }

    /// The names of the agents that have not refused.
    pub(crate) fn live<'a>(
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
