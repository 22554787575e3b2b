//! What an agent can do, in words: the texts of the prefixes that its tools begin with, each once, in the topology's order, and
//! then what is said of the tools that were given to it by name.

use crate::partition::{Homes, Named};
use crate::topology::AgentSpec;
use lango_core::{Text, ToolSpec};
use std::sync::Arc;

/// The words for tools that no prefix of their agent describes.
pub const GENERAL_ACTIONS: &str = "general actions";

/// The capabilities that a set of tools gives an agent.
pub fn capabilities_of<T: Named>(spec: &AgentSpec, tools: &[T]) -> Vec<Text> {
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

/// The same, where some of the tools were given to the agent by name: those are described by their homes.
pub(crate) fn capabilities_with_homes(
    spec: &AgentSpec,
    homes: &Homes,
    tools: &[Arc<ToolSpec>],
) -> Vec<Text> {
    let (given, matched): (Vec<_>, Vec<_>) = tools
        .iter()
        .cloned()
        .partition(|tool| homes.contains_key(&tool.name));
    let mut capabilities = capabilities_of(spec, &matched);
    for home in given.iter().filter_map(|tool| homes.get(&tool.name)) {
        if !capabilities.contains(&home.capability) {
            capabilities.push(Text::clone(&home.capability));
        }
    }
    capabilities
}
