//! The capabilities of an agent, in prose. They are the texts of the prefixes that match its tools, each once and in
//! the order of the topology, followed by the texts of tools that the configuration assigns to it.

use crate::partition::{HasToolName, ToolAssignments};
use crate::topology::AgentSpec;
use lango_core::{Text, ToolSpec};
use std::sync::Arc;

/// The capability of tools that no prefix of their agent describes.
pub const GENERAL_ACTIONS: &str = "general actions";

/// Returns the capabilities that a set of tools gives an agent.
pub fn capabilities_of<T: HasToolName>(spec: &AgentSpec, tools: &[T]) -> Vec<Text> {
    let mut capabilities: Vec<Text> = Vec::new();
    for entry in &spec.prefixes {
        let used = tools
            .iter()
            .any(|tool| tool.tool_name().starts_with(&entry.prefix));
        if used
            && !capabilities
                .iter()
                .any(|known| **known == *entry.capability)
        {
            capabilities.push(entry.capability.as_str().into());
        }
    }
    let undescribed = |tool: &T| {
        !spec
            .prefixes
            .iter()
            .any(|entry| tool.tool_name().starts_with(&entry.prefix))
    };
    if tools.iter().any(undescribed) {
        capabilities.push(GENERAL_ACTIONS.into());
    }
    capabilities
}

/// Returns the capabilities of an agent. The texts for tools that the configuration assigns come from the assignments.
pub(crate) fn capabilities_with_assignments(
    spec: &AgentSpec,
    tool_assignments: &ToolAssignments,
    tools: &[Arc<ToolSpec>],
) -> Vec<Text> {
    let (given, matched): (Vec<_>, Vec<_>) = tools
        .iter()
        .cloned()
        .partition(|tool| tool_assignments.contains_key(&tool.name));
    let mut capabilities = capabilities_of(spec, &matched);
    for assignment in given
        .iter()
        .filter_map(|tool| tool_assignments.get(&tool.name))
    {
        if !capabilities.contains(&assignment.capability) {
            capabilities.push(Text::clone(&assignment.capability));
        }
    }
    capabilities
}
