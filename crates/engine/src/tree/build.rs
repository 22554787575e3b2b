//! Builds the tree with one loop over the agents of any topology.

use super::{
    Agent, OwnedTool, ProjectInstructions, RemoteCard, SkippedAgent, Tree, TreeError, TreeMode,
    TreeSettings,
};
use crate::capability::capabilities_with_assignments;
use crate::instruction::{self, DELEGATE, Finish, OrchestratorPrompt};
use crate::partition::{Partition, ToolAssignments, partition_with_assignments};
use crate::topology::{AgentSpec, OrchestratorTools, Topology, check_name};
use lango_core::{AgentName, Limits, ModelSettings, Text, ToolSpec, Trust};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

impl Tree {
    /// The name of the only agent in single-agent mode.
    pub const SINGLE: &'static str = "lango-agent";

    /// Builds an orchestrator with the sub-agents that get tools from the topology.
    pub fn multi(
        topology: &Topology,
        tools: Vec<Arc<ToolSpec>>,
        remotes: Vec<RemoteCard>,
        settings: &TreeSettings,
    ) -> Result<Self, TreeError> {
        check_tools(&tools)?;
        let root_tools = orchestrator_tools(topology, settings, &tools)?;
        check_assignments(topology, &settings.tool_assignments, &tools)?;
        let assignments_trust = assignments_trust(&settings.tool_assignments, &tools);
        let Partition { parts, unmatched } =
            partition_with_assignments(topology, &settings.tool_assignments, tools);
        let unmatched: Vec<_> = unmatched.iter().map(|spec| spec.name.clone()).collect();
        if settings.strict_tools && !unmatched.is_empty() {
            return Err(TreeError::Unmatched { names: unmatched });
        }

        let mut agents = Vec::new();
        let mut skipped = Vec::new();
        for (spec, (_, part)) in topology.agents.iter().zip(parts) {
            if part.is_empty() && !spec.always_include {
                skipped.push(SkippedAgent {
                    name: spec.name.clone(),
                    reason: SkippedAgent::NO_TOOLS.to_owned(),
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
            has_tools: !root_tools.is_empty(),
            has_unmatched: !unmatched.is_empty(),
            rounds: Limits::default().with_rounds(settings.rounds).rounds,
        });
        // The orchestrator's instruction contains the descriptions of all agents and the names of assigned tools.
        let specs_trust = topology.agents.iter().map(|spec| spec.trust);
        let cards_trust = remotes.iter().map(|_card| Trust::Untrusted);
        let root_trust = specs_trust
            .chain(cards_trust)
            .fold(topology.trust.and(assignments_trust), Trust::and);
        let root = Agent {
            name: topology.root.clone(),
            description: "Talks with the user and delegates to the agents below".into(),
            capabilities: Vec::new(),
            functions: functions_of(&root_tools),
            trust: tools_trust(&root_tools).and(root_trust),
            tools: root_tools,
            instruction,
            is_remote: false,
            settings: ModelSettings::default(),
        };
        agents.extend(remotes.into_iter().map(remote_agent));
        Ok(Self::assemble(
            TreeMode::Multi,
            topology.name.as_str().into(),
            root,
            agents,
            skipped,
            unmatched,
        ))
    }

    /// Builds a single agent with all tools. It ignores all settings except the project instructions.
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
            is_remote: false,
            settings: ModelSettings::default(),
        };
        Ok(Self::assemble(
            TreeMode::Single,
            "single".into(),
            root,
            Vec::new(),
            Vec::new(),
            Vec::new(),
        ))
    }

    fn assemble(
        mode: TreeMode,
        topology: Text,
        root: Agent,
        agents: Vec<Agent>,
        skipped: Vec<SkippedAgent>,
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

/// Checks that tools are assigned only to agents of the topology. A tool assigned to any other agent would silently
/// have no owner.
fn check_assignments(
    topology: &Topology,
    tool_assignments: &ToolAssignments,
    tools: &[Arc<ToolSpec>],
) -> Result<(), TreeError> {
    let is_agent = |name: &AgentName| topology.agents.iter().any(|spec| spec.name == *name);
    let misassigned = tools.iter().find_map(|tool| {
        let assignment = tool_assignments.get(&tool.name)?;
        (!is_agent(&assignment.agent)).then_some((tool, assignment))
    });
    match misassigned {
        None => Ok(()),
        Some((tool, assignment)) => {
            let agents = topology
                .agents
                .iter()
                .map(|spec| format!("`{}`", spec.name));
            Err(TreeError::NoSuchAgent {
                tool: tool.name.clone(),
                agent: assignment.agent.clone(),
                agents: agents.collect::<Vec<_>>().join(", "),
            })
        }
    }
}

/// Returns the orchestrator's tools. The configuration may take tools away, but cannot give tools to an orchestrator
/// that has none in the topology.
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
    let capabilities = capabilities_with_assignments(spec, &settings.tool_assignments, &part);
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
        is_remote: false,
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
        is_remote: true,
        trust: Trust::Untrusted,
        settings: ModelSettings::default(),
    }
}

/// Returns the text of the project instructions; empty if there are none.
fn text_of(project: Option<&ProjectInstructions>) -> &str {
    project.map_or("", |project| &project.text)
}

fn trust_of(project: Option<&ProjectInstructions>) -> Trust {
    project.map_or(Trust::Trusted, |project| project.trust)
}

/// Splits remote agents into usable ones and those whose name is invalid or already taken.
fn admit_remotes(
    topology: &Topology,
    remotes: Vec<RemoteCard>,
) -> (Vec<RemoteCard>, Vec<SkippedAgent>) {
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
            refused.push(SkippedAgent {
                name: card.name,
                reason,
            });
        } else if let Err(reason) = check_name(&card.name) {
            refused.push(SkippedAgent {
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

/// Returns the lowest trust label of the tools' descriptions.
fn tools_trust(tools: &[Arc<OwnedTool>]) -> Trust {
    let labels = tools.iter().map(|tool| tool.spec.trust);
    labels.fold(Trust::Trusted, Trust::and)
}

/// Returns the lowest trust label of the assigned tools, whose names are in the orchestrator's instruction.
fn assignments_trust(tool_assignments: &ToolAssignments, tools: &[Arc<ToolSpec>]) -> Trust {
    let given = tools
        .iter()
        .filter(|tool| tool_assignments.contains_key(&tool.name));
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
    base16ct::lower::encode_string(&hasher.finalize()[..8]).into()
}
