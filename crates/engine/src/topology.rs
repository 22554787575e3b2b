//! A topology is data: which agents there are, which prefixes give them tools, in which order prefixes are tried, whether
//! the orchestrator holds tools, and who takes what nobody claims. One code path builds a tree from any of them.

use lango_core::{AgentName, ModelSettings, ReasoningEffort, Trust};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Agents and the rules that give them their tools.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// How `agent.topology` calls it.
    pub name: String,
    /// The name of the orchestrator.
    #[serde(default = "default_root")]
    pub root: AgentName,
    /// What the orchestrator holds itself.
    #[serde(default)]
    pub orchestrator_tools: OrchestratorTools,
    /// The agent that takes tools no prefix matches; none leaves them without a home.
    #[serde(default)]
    pub unmatched: Option<AgentName>,
    /// The order in which agents' prefixes are tried; agents that are not named come after, in their own order.
    #[serde(default)]
    pub match_order: Vec<AgentName>,
    /// More rules for the orchestrator, word for word.
    #[serde(default)]
    pub rules: Vec<String>,
    /// The agents, in the order in which they are listed everywhere.
    pub agents: Vec<AgentSpec>,
    /// The trust label of all but its agents. The code that reads the file sets it.
    #[serde(skip, default = "Trust::trusted")]
    pub trust: Trust,
}

/// What an orchestrator holds itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrchestratorTools {
    /// Nothing: it can only delegate.
    #[default]
    None,
    /// Every tool, beside `delegate`.
    All,
}

/// One agent as data.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The exact name it is delegated to by.
    pub name: AgentName,
    /// What it is for, in a sentence without its full stop.
    pub role: String,
    /// The beginnings of tool names that make a tool its own.
    #[serde(default)]
    pub prefixes: Vec<PrefixSpec>,
    /// Words of requests that belong to it.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// What a task for it holds.
    pub accepts: String,
    /// What its answer holds.
    pub returns: String,
    /// What it must not be asked for.
    pub cannot: String,
    /// Whether it exists without tools too.
    #[serde(default)]
    pub always_include: bool,
    /// More words for its own instruction.
    #[serde(default)]
    pub instruction: String,
    /// The model that answers for it, as `provider/model`; none is that of all the others.
    #[serde(default)]
    pub model: Option<String>,
    /// The sampling temperature of its model.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// How much its model thinks before it answers.
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most tokens of one of its replies, reasoning included.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// Whether it is told the instructions of the project that the user trusts.
    #[serde(default)]
    pub project_instructions: bool,
    /// The trust label of its texts. The code that reads the file sets it.
    #[serde(skip, default = "Trust::trusted")]
    pub trust: Trust,
}

impl AgentSpec {
    /// How its model should answer; what is not set comes from the configuration.
    pub fn model_settings(&self) -> ModelSettings {
        ModelSettings {
            temperature: self.temperature,
            reasoning_effort: self.reasoning_effort,
            max_output_tokens: self.max_output_tokens,
        }
    }
}

/// A beginning of tool names, and what such tools can do in words.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefixSpec {
    /// The beginning.
    pub prefix: String,
    /// The words for people and models.
    pub capability: String,
}

/// Why a topology cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// No built-in topology has this name.
    #[error("there is no topology `{name}`; choose one of {}, or the path of a topology file", Topology::BUILT_IN.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The text is not a topology.
    #[error("topology `{origin}` cannot be read: {detail}")]
    Malformed {
        /// The file.
        origin: String,
        /// Line and cause.
        detail: String,
    },
    /// It reads well and contradicts itself.
    #[error("topology `{origin}`: {detail}")]
    Invalid {
        /// The file.
        origin: String,
        /// What is wrong.
        detail: String,
    },
}

impl Topology {
    /// The names that are always there.
    pub const BUILT_IN: [&'static str; 2] = ["specialists", "classic"];

    /// A topology that is always there.
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

    /// A topology from the text of a file; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, TopologyError> {
        toml::<Self>(text, origin)?.checked(origin)
    }

    /// The same with these agents as well. One that has the name of an agent here takes its place in the list, the
    /// others come after those that are here; the prefixes of all of them are tried before those of the others.
    ///
    /// # Errors
    /// One of them has a name that it cannot have here.
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

    /// A topology of these agents and no others. `head` is the text of a file that says the rest, if there is one;
    /// `origin` names it in errors, `name` is what the topology is called if the file does not say.
    ///
    /// # Errors
    /// The head cannot be read, or contradicts the agents.
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

    /// The agents in the order in which their prefixes are tried.
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
                "`{name}` is named in `match_order` or `unmatched` and is not among the agents"
            )),
            None => Ok(()),
        }
    }
}

/// What a topology says besides its agents, where those are files of their own.
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

/// Names go into prompts, schemas and logs, so they are plain.
pub(crate) fn check_name(name: &AgentName) -> Result<(), String> {
    let text = name.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
        return Err(format!(
            "`{name}` cannot be an agent's name: use up to 64 letters, digits, `-` and `_`"
        ));
    }
    if text == AgentName::USER {
        return Err("`user` is the person's name; an agent needs another".to_owned());
    }
    Ok(())
}

fn default_root() -> AgentName {
    AgentName::from("lango-orchestrator")
}
