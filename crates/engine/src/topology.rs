//! A topology is data: the agents, the prefixes that give them tools, the order in which prefixes are matched, the
//! orchestrator's tools, and the agent that owns unmatched tools. The same code builds a tree from every topology.

use lango_core::{AgentName, ModelSettings, ReasoningEffort, Trust};
use serde::Deserialize;
use std::collections::BTreeSet;

/// A set of agents and the rules that assign tools to them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The value of `agent.topology` that selects it.
    pub name: String,
    #[serde(default = "default_root")]
    pub root: AgentName,
    /// The tools that the orchestrator may call itself.
    #[serde(default)]
    pub orchestrator_tools: OrchestratorTools,
    /// The agent that owns tools without a matching prefix; if `None`, no agent owns them.
    #[serde(default)]
    pub unmatched: Option<AgentName>,
    /// The order in which the prefixes of agents are matched. Agents that are not listed come last, in their own order.
    #[serde(default)]
    pub match_order: Vec<AgentName>,
    /// Additional rules for the orchestrator's instruction, inserted verbatim.
    #[serde(default)]
    pub rules: Vec<String>,
    /// The agents, in the order in which every list shows them.
    pub agents: Vec<AgentSpec>,
    /// The trust label of everything in the topology except its agents. The code that reads the file sets it.
    #[serde(skip, default = "Trust::trusted")]
    pub trust: Trust,
}

/// The tools that an orchestrator may call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrchestratorTools {
    /// None: it can only delegate.
    #[default]
    None,
    /// All tools, in addition to `delegate`.
    All,
}

/// The specification of one agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The exact name for delegations.
    pub name: AgentName,
    /// The purpose, as a sentence without a full stop.
    pub role: String,
    /// The prefixes of the tools that the agent owns.
    #[serde(default)]
    pub prefixes: Vec<PrefixSpec>,
    /// Keywords of requests that belong to the agent.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// What a task for the agent contains.
    pub accepts: String,
    /// What its answer contains.
    pub returns: String,
    /// What the agent cannot do.
    pub cannot: String,
    /// Whether the agent exists even without tools.
    #[serde(default)]
    pub always_include: bool,
    /// Additional text for the agent's instruction.
    #[serde(default)]
    pub instruction: String,
    /// The agent's model as `provider/model`; `None` for the general model.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The maximum number of tokens in one reply, including reasoning.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// Whether the agent's instruction includes the project instructions that the user trusts.
    #[serde(default)]
    pub project_instructions: bool,
    /// The trust label of its texts. The code that reads the file sets it.
    #[serde(skip, default = "Trust::trusted")]
    pub trust: Trust,
}

impl AgentSpec {
    /// Creates an agent with a name and a role, such as `answers questions about invoices`. Set the other fields as needed.
    pub fn new(name: impl Into<AgentName>, role: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role: role.into(),
            prefixes: Vec::new(),
            keywords: Vec::new(),
            accepts: "a task in a few sentences".to_owned(),
            returns: "the result".to_owned(),
            cannot: "do anything else".to_owned(),
            always_include: false,
            instruction: String::new(),
            model: None,
            temperature: None,
            reasoning_effort: None,
            max_output_tokens: None,
            project_instructions: false,
            trust: Trust::Trusted,
        }
    }

    /// Adds a prefix of tool names that the agent owns, and says what these tools can do.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>, capability: impl Into<String>) -> Self {
        self.prefixes.push(PrefixSpec {
            prefix: prefix.into(),
            capability: capability.into(),
        });
        self
    }

    /// Returns the agent's model settings. What is not set comes from the configuration.
    pub fn model_settings(&self) -> ModelSettings {
        ModelSettings {
            temperature: self.temperature,
            reasoning_effort: self.reasoning_effort,
            max_output_tokens: self.max_output_tokens,
        }
    }
}

/// A prefix of tool names, and what these tools can do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefixSpec {
    pub prefix: String,
    /// What the tools can do, for users and models.
    pub capability: String,
}

/// An unusable topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    #[error("there is no topology `{name}`; choose one of {}, or the path of a topology file", Topology::BUILT_IN.join(", "))]
    Unknown { name: String },
    #[error("topology `{origin}` cannot be read: {detail}")]
    Malformed { origin: String, detail: String },
    /// The topology is well-formed but inconsistent.
    #[error("topology `{origin}`: {detail}")]
    Invalid { origin: String, detail: String },
}

impl Topology {
    /// The names of the built-in topologies.
    pub const BUILT_IN: [&'static str; 2] = ["specialists", "classic"];

    /// Returns a built-in topology.
    pub fn built_in(name: &str) -> Result<Self, TopologyError> {
        let text = match name {
            "specialists" => include_str!("../topologies/specialists.toml"),
            "classic" => include_str!("../topologies/classic.toml"),
            _ => {
                return Err(TopologyError::Unknown {
                    name: name.to_owned(),
                });
            }
        };
        Self::parse(text, name)
    }

    /// Parses a topology file. Errors name it as `origin`.
    pub fn parse(text: &str, origin: &str) -> Result<Self, TopologyError> {
        toml::<Self>(text, origin)?.checked(origin)
    }

    /// Adds agents to the topology. An agent with an existing name replaces the existing one in place; the others are
    /// appended. The prefixes of all added agents are matched before those of the others.
    ///
    /// # Errors
    /// An added agent has an invalid name.
    pub fn with_agents(mut self, agents: Vec<AgentSpec>) -> Result<Self, TopologyError> {
        let mut order: Vec<AgentName> = agents.iter().map(|spec| spec.name.clone()).collect();
        let others = self.in_match_order().map(|spec| spec.name.clone());
        order.extend(others.filter(|name| !agents.iter().any(|spec| spec.name == *name)));
        self.match_order = order;
        for spec in agents {
            match self.agents.iter_mut().find(|own| own.name == spec.name) {
                Some(own) => *own = spec,
                None => self.agents.push(spec),
            }
        }
        let origin = self.name.clone();
        self.checked(&origin)
    }

    /// Builds a topology of these agents only. `head` is the text of a file with the other settings, if there is one.
    /// Errors refer to that file as `origin`. If the file sets no name, the topology is called `name`.
    ///
    /// # Errors
    /// The head cannot be parsed or contradicts the agents.
    pub fn of_agents(
        head: Option<&str>,
        origin: &str,
        name: &str,
        agents: Vec<AgentSpec>,
    ) -> Result<Self, TopologyError> {
        let head: TopologyHead = toml(head.unwrap_or_default(), origin)?;
        let topology = Self {
            name: head.name.unwrap_or_else(|| name.to_owned()),
            root: head.root,
            orchestrator_tools: head.orchestrator_tools,
            unmatched: head.unmatched,
            match_order: head.match_order,
            rules: head.rules,
            agents,
            trust: Trust::Trusted,
        };
        topology.checked(origin)
    }

    /// Returns the agents in the order in which their prefixes are matched.
    pub fn in_match_order(&self) -> impl Iterator<Item = &AgentSpec> {
        let named = self
            .match_order
            .iter()
            .filter_map(|name| self.agents.iter().find(|spec| spec.name == *name));
        let others = self
            .agents
            .iter()
            .filter(|spec| !self.match_order.contains(&spec.name));
        named.chain(others)
    }

    fn checked(self, origin: &str) -> Result<Self, TopologyError> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(detail) => Err(TopologyError::Invalid {
                origin: origin.to_owned(),
                detail,
            }),
        }
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.root)?;
        let mut seen = BTreeSet::from([&self.root]);
        for spec in &self.agents {
            check_name(&spec.name)?;
            if !seen.insert(&spec.name) {
                return Err(format!("the name `{}` is used twice", spec.name));
            }
            spec.model_settings()
                .check()
                .map_err(|detail| format!("agent `{}`: {detail}", spec.name))?;
            if let Some(empty) = spec
                .prefixes
                .iter()
                .find(|entry| entry.prefix.is_empty() || entry.capability.is_empty())
            {
                return Err(format!(
                    "agent `{}` has an incomplete prefix: {empty:?}",
                    spec.name
                ));
            }
        }
        let known = |name: &&AgentName| !self.agents.iter().any(|spec| spec.name == **name);
        match self.match_order.iter().chain(&self.unmatched).find(known) {
            Some(name) => Err(format!(
                "`{name}` in `match_order` or `unmatched` is not one of the agents"
            )),
            None => Ok(()),
        }
    }
}

/// The settings of a topology whose agents are in separate files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyHead {
    #[serde(default)]
    name: Option<String>,
    #[serde(default = "default_root")]
    root: AgentName,
    #[serde(default)]
    orchestrator_tools: OrchestratorTools,
    #[serde(default)]
    unmatched: Option<AgentName>,
    #[serde(default)]
    match_order: Vec<AgentName>,
    #[serde(default)]
    rules: Vec<String>,
}

fn toml<T: serde::de::DeserializeOwned>(text: &str, origin: &str) -> Result<T, TopologyError> {
    toml::from_str(text).map_err(|error| TopologyError::Malformed {
        origin: origin.to_owned(),
        detail: error.to_string().trim_end().to_owned(),
    })
}

/// Checks the name of an agent. Names are part of prompts, schemas and logs, so only plain characters are allowed.
pub(crate) fn check_name(name: &AgentName) -> Result<(), String> {
    let text = name.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
        return Err(format!(
            "`{name}` cannot be an agent's name: use up to 64 letters, digits, `-` and `_`"
        ));
    }
    if text == AgentName::USER {
        return Err(
            "`user` is reserved for the user; choose another name for the agent".to_owned(),
        );
    }
    Ok(())
}

fn default_root() -> AgentName {
    AgentName::from("lango-orchestrator")
}
