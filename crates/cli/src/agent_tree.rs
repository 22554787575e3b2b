//! The tree of agents, from the roster, the tools and the configuration.

use crate::config::{AgentSettings, OrchestratorTools};
use crate::elsewhere::Elsewhere;
use crate::roster::Roster;
use lango_core::ToolSpec;
use lango_engine::{Homes, Skipped, Tree, TreeError, TreeSettings};
use std::sync::Arc;

/// Builds the tree. Remote agents that cannot be reached are named among those that are left out.
pub fn build_tree(
    agent: &AgentSettings,
    roster: &Roster,
    tools: Vec<Arc<ToolSpec>>,
    homes: Homes,
    elsewhere: &Elsewhere,
) -> Result<Tree, TreeError> {
    let settings = TreeSettings {
        rounds: agent.limits().rounds,
        orchestrator_tools: agent.orchestrator_tools.map(|tools| match tools {
            OrchestratorTools::None => lango_engine::OrchestratorTools::None,
            OrchestratorTools::All => lango_engine::OrchestratorTools::All,
        }),
        strict_tools: agent.strict_tools,
        homes,
        project_instructions: roster.instructions.clone(),
    };
    let Some(topology) = &roster.topology else {
        return Tree::single(tools, &settings);
    };
    let mut tree = Tree::multi(topology, tools, elsewhere.cards(), &settings)?;
    let skipped = elsewhere.skipped().into_iter();
    tree.skipped
        .extend(skipped.map(|(name, reason)| Skipped { name, reason }));
    Ok(tree)
}
