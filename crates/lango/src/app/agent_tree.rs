//! Builds the agent tree from the roster, the tools and the configuration.

use crate::app::remote_agents::RemoteAgents;
use crate::app::roster::Roster;
use lango_config::{AgentSettings, OrchestratorTools};
use lango_core::ToolSpec;
use lango_engine::{SkippedAgent, ToolAssignments, Tree, TreeError, TreeSettings};
use std::sync::Arc;

/// Builds the tree. Remote agents that cannot be reached are listed as skipped.
pub(super) fn build_tree(
    agent: &AgentSettings,
    roster: &Roster,
    tools: Vec<Arc<ToolSpec>>,
    tool_assignments: ToolAssignments,
    remote_agents: &RemoteAgents,
) -> Result<Tree, TreeError> {
    let settings = TreeSettings {
        rounds: agent.limits().rounds,
        orchestrator_tools: agent.orchestrator_tools.map(|tools| match tools {
            OrchestratorTools::None => lango_engine::OrchestratorTools::None,
            OrchestratorTools::All => lango_engine::OrchestratorTools::All,
        }),
        strict_tools: agent.strict_tools,
        tool_assignments,
        project_instructions: roster.instructions.clone(),
    };
    let Some(topology) = &roster.topology else {
        return Tree::single(tools, &settings);
    };
    let mut tree = Tree::multi(topology, tools, remote_agents.cards(), &settings)?;
    let skipped = remote_agents.skipped().into_iter();
    tree.skipped
        .extend(skipped.map(|(name, reason)| SkippedAgent { name, reason }));
    Ok(tree)
}
