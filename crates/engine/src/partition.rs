//! Which tool belongs to whom: the first agent, in the topology's order of matching, one of whose prefixes begins the
//! tool's name; a tool that the configuration gives to an agent is that agent's. A longer prefix does not win over an earlier
//! agent; the order is all there is, and agents from files come first in it ([`Topology::with_agents`]). Total and disjoint:
//! every tool is in exactly one part.

use crate::topology::{AgentSpec, Topology};
use lango_core::{AgentName, Text, ToolName, ToolSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something with a tool's name.
pub trait Named {
    /// The name.
    fn tool_name(&self) -> &str;
}

impl Named for &str {
    fn tool_name(&self) -> &str {
        self
    }
}

impl Named for ToolName {
    fn tool_name(&self) -> &str {
        self.as_str()
    }
}

impl Named for Arc<ToolSpec> {
    fn tool_name(&self) -> &str {
        self.name.as_str()
    }
}

/// Tools that are given to an agent by name.
pub type Homes = BTreeMap<ToolName, Home>;

/// To whom a tool is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The agent.
    pub agent: AgentName,
    /// What the agent can do with it, in words for people and models.
    pub capability: Text,
}

/// Tools by their home.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition<T> {
    /// A part for each agent of the topology, in the topology's order, empty ones included.
    pub parts: Vec<(AgentName, Vec<T>)>,
    /// Tools that no agent holds.
    pub unmatched: Vec<T>,
}

/// Gives every tool its home.
pub fn partition<T: Named>(
    topology: &Topology,
    tools: impl IntoIterator<Item = T>,
) -> Partition<T> {
    partition_with_homes(topology, &Homes::new(), tools)
}

/// The same, where some tools are given to an agent by name, whatever their prefix says.
pub(crate) fn partition_with_homes<T: Named>(
    topology: &Topology,
    homes: &Homes,
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
        let given = homes.get(tool.tool_name()).map(|home| &home.agent);
        let home = given.or_else(|| home_of(topology, tool.tool_name()));
        match partition
            .parts
            .iter_mut()
            .find(|(name, _)| Some(name) == home)
        {
            Some((_, part)) => part.push(tool),
            None => partition.unmatched.push(tool),
        }
    }
    partition
}

impl<T> Partition<T> {
    /// The part of one agent.
    pub fn of(&self, agent: &str) -> &[T] {
        self.parts
            .iter()
            .find(|(name, _)| *name == agent)
            .map_or(&[], |(_, part)| part)
    }
}

fn home_of<'a>(topology: &'a Topology, tool: &str) -> Option<&'a AgentName> {
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
