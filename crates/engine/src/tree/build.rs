//! Building the tree: one loop over the topology's specs, whatever the topology.

use super::{
    Agent, Mode, OwnedTool, ProjectInstructions, RemoteCard, Skipped, Tree, TreeError, TreeSettings,
};
use crate::capability::capabilities_with_homes;
use crate::instruction::{self, DELEGATE, Finish, OrchestratorPrompt};
use crate::partition::{Homes, Partition, partition_with_homes};
use crate::topology::{AgentSpec, OrchestratorTools, Topology, check_name};
use lango_core::{AgentName, Limits, ModelSettings, Text, ToolSpec, Trust};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

impl Tree {
    /// The name of the flat agent in single-agent mode.
    pub const SINGLE: &'static str = "lango-agent";

    /// An orchestrator over the agents that the topology gives these tools.
    pub fn multi(
        topology: &Topology,
        tools: Vec<Arc<ToolSpec>>,
        remotes: Vec<RemoteCard>,
        settings: &TreeSettings,
    ) -> Result<Self, TreeError> {
        check_tools(&tools)?;
        let root_tools = orchestrator_tools(topology, settings, &tools)?;
        check_homes(topology, &settings.homes, &tools)?;
        let homes_trust = homes_trust(&settings.homes, &tools);
        let Partition { parts, unmatched } = partition_with_homes(topology, &settings.homes, tools);
        let unmatched: Vec<_> = unmatched.iter().map(|spec| spec.name.clone()).collect();
        if settings.strict_tools && !unmatched.is_empty() {
            return Err(TreeError::Unmatched { names: unmatched });
        }

        let mut agents = Vec::new();
        let mut skipped = Vec::new();
        for (spec, (_, part)) in topology.agents.iter().zip(parts) {
            if part.is_empty() && !spec.always_include {
                skipped.push(Skipped {
                    name: spec.name.clone(),
                    reason: Skipped::NO_TOOLS.to_owned(),
                });
            } else {
                agents.push(local_agent(spec, settings, part));
            }
        }
        let (remotes, refused) = admit_remotes(topology, remotes);
        skipped.extend(refused);

        let specs_and_agents = agents.iter().filter_map(|agent| {
            let spec = topology
                .agents
                .iter()
                .find(|spec| spec.name == agent.name)?;
            Some((spec, agent.capabilities.as_slice()))
        });
        let instruction = instruction::orchestrator(&OrchestratorPrompt {
            topology,
            agents: &specs_and_agents.collect::<Vec<_>>(),
            remotes: &remotes,
            holds_tools: !root_tools.is_empty(),
            has_unmatched: !unmatched.is_empty(),
            rounds: Limits::default().with_rounds(settings.rounds).rounds,
        });
        // Its instruction holds what every agent says of itself, and the names of tools that were given to one.
        let specs_trust = topology.agents.iter().map(|spec| spec.trust);
        let cards_trust = remotes.iter().map(|_card| Trust::Untrusted);
        let root_trust = specs_trust
            .chain(cards_trust)
            .fold(topology.trust.and(homes_trust), Trust::and);
        let root = Agent {
            name: topology.root.clone(),
            description: "Talks with the user and delegates to the agents below".into(),
            capabilities: Vec::new(),
            functions: functions_of(&root_tools),
            trust: tools_trust(&root_tools).and(root_trust),
            tools: root_tools,
            instruction,
            remote: false,
            settings: ModelSettings::default(),
        };
        agents.extend(remotes.into_iter().map(remote_agent));
        Ok(Self::assemble(
            Mode::Multi,
            topology.name.as_str().into(),
            root,
            agents,
            skipped,
            unmatched,
        ))
    }

    /// One flat agent with every tool. Of the settings only the project's instructions concern it.
    pub fn single(tools: Vec<Arc<ToolSpec>>, settings: &TreeSettings) -> Result<Self, TreeError> {
        check_tools(&tools)?;
        let name = AgentName::from(Self::SINGLE);
        let tools = own(&tools);
        let project = settings.project_instructions.as_ref();
        let root = Agent {
            instruction: instruction::single_agent(&name, !tools.is_empty(), text_of(project)),
            name,
            description: "Answers the user and uses every tool itself".into(),
            capabilities: Vec::new(),
            functions: functions_of(&tools),
            trust: tools_trust(&tools).and(trust_of(project)),
            tools,
            remote: false,
            settings: ModelSettings::default(),
        };
        Ok(Self::assemble(
            Mode::Single,
            "single".into(),
            root,
            Vec::new(),
            Vec::new(),
            Vec::new(),
        ))
    }

    fn assemble(
        mode: Mode,
        topology: Text,
        root: Agent,
        agents: Vec<Agent>,
        skipped: Vec<Skipped>,
        unmatched: Vec<lango_core::ToolName>,
    ) -> Self {
        let owners = agents
            .iter()
            .enumerate()
            .flat_map(|(index, agent)| {
                agent
                    .tools
                    .iter()
                    .map(move |tool| (tool.spec.name.clone(), index))
            })
            .collect::<HashMap<_, _>>();
        let delegate_to_all =
            instruction::delegate_function(agents.iter().map(|agent| &agent.name), Finish::Offered);
        let digest = digest(std::iter::once(&root).chain(&agents));
        Self {
            mode,
            topology,
            root,
            agents,
            skipped,
            unmatched,
            digest,
            owners,
            delegate_to_all,
        }
    }
}

fn check_tools(tools: &[Arc<ToolSpec>]) -> Result<(), TreeError> {
    let mut seen = BTreeSet::new();
    for spec in tools {
        let name = spec.name.as_str();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || name == DELEGATE || !name.chars().all(plain) {
            return Err(TreeError::BadToolName {
                name: spec.name.clone(),
            });
        }
        if !seen.insert(name) {
            return Err(TreeError::DuplicateTool {
                name: spec.name.clone(),
            });
        }
        if !spec.parameters.is_object() {
            let detail = "it must be a JSON object".to_owned();
            return Err(TreeError::BadSchema {
                name: spec.name.clone(),
                detail,
            });
        }
    }
    Ok(())
}

/// A tool can be given to an agent of the topology only; otherwise it would be nobody's without a word.
fn check_homes(
    topology: &Topology,
    homes: &Homes,
    tools: &[Arc<ToolSpec>],
) -> Result<(), TreeError> {
    let is_agent = |name: &AgentName| topology.agents.iter().any(|spec| spec.name == *name);
    let homeless = tools.iter().find_map(|tool| {
        let home = homes.get(&tool.name)?;
        (!is_agent(&home.agent)).then_some((tool, home))
    });
    match homeless {
        None => Ok(()),
        Some((tool, home)) => {
            let agents = topology
                .agents
                .iter()
                .map(|spec| format!("`{}`", spec.name));
            Err(TreeError::NoSuchAgent {
                tool: tool.name.clone(),
                agent: home.agent.clone(),
                agents: agents.collect::<Vec<_>>().join(", "),
            })
        }
    }
}

/// A setting may take the orchestrator's tools away; it cannot give tools to one that the topology built without.
fn orchestrator_tools(
    topology: &Topology,
    settings: &TreeSettings,
    tools: &[Arc<ToolSpec>],
) -> Result<Vec<Arc<OwnedTool>>, TreeError> {
    match (topology.orchestrator_tools, settings.orchestrator_tools) {
        (OrchestratorTools::None, Some(OrchestratorTools::All)) => {
            Err(TreeError::ToolLessOrchestrator {
                topology: topology.name.clone(),
            })
        }
        (OrchestratorTools::None, _) | (_, Some(OrchestratorTools::None)) => Ok(Vec::new()),
        (OrchestratorTools::All, _) => Ok(own(tools)),
    }
}

fn local_agent(spec: &AgentSpec, settings: &TreeSettings, part: Vec<Arc<ToolSpec>>) -> Agent {
    let capabilities = capabilities_with_homes(spec, &settings.homes, &part);
    let project = settings.project_instructions.as_ref();
    let project = project.filter(|_| spec.project_instructions);
    let tools = own(&part);
    let mut description = format!("{}.", spec.role);
    if !capabilities.is_empty() {
        let _ = write!(description, " Can do: {}.", capabilities.join(", "));
    }
    Agent {
        name: spec.name.clone(),
        description: description.into(),
        instruction: instruction::sub_agent(
            spec,
            &capabilities,
            !tools.is_empty(),
            text_of(project),
        ),
        capabilities,
        functions: functions_of(&tools),
        trust: tools_trust(&tools).and(spec.trust).and(trust_of(project)),
        tools,
        remote: false,
        settings: spec.model_settings(),
    }
}

fn remote_agent(card: RemoteCard) -> Agent {
    Agent {
        name: card.name,
        description: card.description.into(),
        capabilities: Vec::new(),
        tools: Vec::new(),
        instruction: "".into(),
        functions: Arc::from([]),
        remote: true,
        trust: Trust::Untrusted,
        settings: ModelSettings::default(),
    }
}

/// Returns what the project tells an agent; empty if nothing.
fn text_of(project: Option<&ProjectInstructions>) -> &str {
    project.map_or("", |project| &project.text)
}

fn trust_of(project: Option<&ProjectInstructions>) -> Trust {
    project.map_or(Trust::Trusted, |project| project.trust)
}

/// A remote agent needs a name that a prompt can hold and that means nothing here already.
fn admit_remotes(topology: &Topology, remotes: Vec<RemoteCard>) -> (Vec<RemoteCard>, Vec<Skipped>) {
    let mut taken: BTreeSet<AgentName> = topology
        .agents
        .iter()
        .map(|spec| spec.name.clone())
        .collect();
    taken.extend([topology.root.clone(), AgentName::user()]);
    let mut admitted = Vec::new();
    let mut refused = Vec::new();
    for card in remotes {
        if taken.contains(&card.name) {
            let reason = "the name of this remote agent is taken".to_owned();
            refused.push(Skipped {
                name: card.name,
                reason,
            });
        } else if let Err(reason) = check_name(&card.name) {
            refused.push(Skipped {
                name: card.name,
                reason,
            });
        } else {
            taken.insert(card.name.clone());
            admitted.push(card);
        }
    }
    (admitted, refused)
}

fn own(tools: &[Arc<ToolSpec>]) -> Vec<Arc<OwnedTool>> {
    tools
        .iter()
        .map(|spec| Arc::new(OwnedTool::new(Arc::clone(spec))))
        .collect()
}

/// Returns the lowest label of the tools' descriptions.
fn tools_trust(tools: &[Arc<OwnedTool>]) -> Trust {
    let labels = tools.iter().map(|tool| tool.spec.trust);
    labels.fold(Trust::Trusted, Trust::and)
}

/// Returns the lowest label of the tools whose names are in the orchestrator's instruction.
fn homes_trust(homes: &Homes, tools: &[Arc<ToolSpec>]) -> Trust {
    let given = tools.iter().filter(|tool| homes.contains_key(&tool.name));
    given
        .map(|tool| tool.trust)
        .fold(Trust::Trusted, Trust::and)
}

fn functions_of(tools: &[Arc<OwnedTool>]) -> Arc<[lango_core::Function]> {
    tools.iter().map(|tool| tool.function()).collect()
}

fn digest<'a>(agents: impl Iterator<Item = &'a Agent>) -> Text {
    let mut hasher = Sha256::new();
    for agent in agents {
        for part in [agent.name.as_str(), &agent.instruction, &agent.description] {
            hasher.update(part);
            hasher.update([0]);
        }
        for tool in &agent.tools {
            hasher.update(tool.spec.name.as_str());
            hasher.update([0]);
            hasher.update(&*tool.spec.description);
            hasher.update([0]);
            hasher.update(tool.spec.parameters.to_string());
            hasher.update([0]);
        }
        hasher.update([1]);
    }
    let mut text = String::new();
    for byte in &hasher.finalize()[..8] {
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}
