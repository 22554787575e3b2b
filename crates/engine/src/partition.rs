//! Assigns each tool to an agent. A tool that the configuration assigns belongs to the named agent. Any other tool
//! belongs to the first agent, in match order, with a matching prefix; a longer prefix of a later agent does not win.
//! Agents from files come first in match order ([`Topology::with_agents`]). The partition is total and disjoint: every
//! tool is in exactly one part.

use crate::topology::{AgentSpec, Topology};
use lango_core::{AgentName, Text, ToolName, ToolSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Anything that has a tool's name.
pub trait HasToolName {
    fn tool_name(&self) -> &str;
}

impl HasToolName for &str {
    fn tool_name(&self) -> &str {
        self
    }
}

impl HasToolName for ToolName {
    fn tool_name(&self) -> &str {
        self.as_str()
    }
}

impl HasToolName for Arc<ToolSpec> {
    fn tool_name(&self) -> &str {
        self.name.as_str()
    }
}

/// Tools that the configuration assigns to agents by name.
pub type ToolAssignments = BTreeMap<ToolName, ToolAssignment>;

/// The agent that a tool is assigned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAssignment {
    pub agent: AgentName,
    /// What the agent can do with the tool, for users and models.
    pub capability: Text,
}

/// Tools grouped by the agent that owns them.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition<T> {
    /// One part for each agent, in the order of the topology; parts may be empty.
    pub parts: Vec<(AgentName, Vec<T>)>,
    /// Tools that no agent owns.
    pub unmatched: Vec<T>,
}

/// Assigns every tool to an agent by prefix.
pub fn partition<T: HasToolName>(
    topology: &Topology,
    tools: impl IntoIterator<Item = T>,
) -> Partition<T> {
    partition_with_assignments(topology, &ToolAssignments::new(), tools)
}

/// Assigns every tool to an agent: by name if the configuration assigns it, otherwise by prefix.
pub(crate) fn partition_with_assignments<T: HasToolName>(
    topology: &Topology,
    tool_assignments: &ToolAssignments,
    tools: impl IntoIterator<Item = T>,
) -> Partition<T> {
    let parts = topology
        .agents
        .iter()
        .map(|spec| (spec.name.clone(), Vec::new()))
        .collect();
    let mut partition = Partition {
        parts,
        unmatched: Vec::new(),
    };
    for tool in tools {
        let assigned = tool_assignments
            .get(tool.tool_name())
            .map(|assignment| &assignment.agent);
        let owner = assigned.or_else(|| owner_by_prefix(topology, tool.tool_name()));
        match partition
            .parts
            .iter_mut()
            .find(|(name, _)| Some(name) == owner)
        {
            Some((_, part)) => part.push(tool),
            None => partition.unmatched.push(tool),
        }
    }
    partition
}

impl<T> Partition<T> {
    /// Returns the tools of one agent.
    pub fn of(&self, agent: &str) -> &[T] {
        self.parts
            .iter()
            .find(|(name, _)| *name == agent)
            .map_or(&[], |(_, part)| part)
    }
}

fn owner_by_prefix<'a>(topology: &'a Topology, tool: &str) -> Option<&'a AgentName> {
    let claims = |spec: &&AgentSpec| {
        spec.prefixes
            .iter()
            .any(|entry| tool.starts_with(&entry.prefix))
    };
    topology
        .in_match_order()
        .find(claims)
        .map(|spec| &spec.name)
        .or(topology.unmatched.as_ref())
}
