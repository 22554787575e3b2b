//! What an agent can do, in words: the texts of the prefixes that its tools begin with, each once, in the topology's order.

use crate::partition::Named;
use crate::topology::AgentSpec;
use lango_core::Text;

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
