//! Tools that the configuration assigns to agents by name.

use crate::trees::{ALL_TOOLS, built_in, try_tree};
use lango_core::{AgentName, ToolName};
use lango_engine::{ToolAssignment, ToolAssignments, Tree, TreeError, TreeSettings};

fn assign(agent: &str, tools: &[&str]) -> TreeSettings {
    let home = ToolAssignment {
        agent: AgentName::from(agent),
        capability: "tools of the MCP server `git`".into(),
    };
    let tool_assignments: ToolAssignments = tools
        .iter()
        .map(|tool| (ToolName::from(*tool), home.clone()))
        .collect();
    TreeSettings {
        tool_assignments,
        ..TreeSettings::default()
    }
}

fn tools_of(tree: &Tree, agent: &str) -> Vec<String> {
    let agent = tree.sub_agent(agent).unwrap();
    let names = agent.tools.iter().map(|tool| tool.spec.name.to_string());
    names.collect()
}

#[test]
fn an_assigned_tool_belongs_to_its_agent_regardless_of_its_prefix() {
    let settings = assign("navigator", &["git_log", "fs_odd"]);
    let tools = ["fs_read", "git_log", "fs_odd", "git_other"];
    let tree = try_tree(&built_in("specialists"), &tools, &settings).unwrap();
    assert_eq!(tools_of(&tree, "navigator"), ["git_log", "fs_odd"]);
    assert_eq!(tools_of(&tree, "operator"), ["fs_read"]);
    assert_eq!(tree.unmatched, ["git_other"]);
    assert_eq!(tree.owner_of("git_log").unwrap().name, "navigator");
    assert!(tree.root.tools.is_empty());
}

#[test]
fn the_orchestrators_instruction_mentions_the_capability_of_assigned_tools_once() {
    let settings = assign("navigator", &["git_log", "git_diff"]);
    let tools = ["browser_open", "git_log", "git_diff"];
    let tree = try_tree(&built_in("specialists"), &tools, &settings).unwrap();
    let navigator = tree.sub_agent("navigator").unwrap();
    let expected = ["web browsing", "tools of the MCP server `git`"];
    let capabilities: Vec<&str> = navigator.capabilities.iter().map(|text| &**text).collect();
    assert_eq!(capabilities, expected);
    let routing = &tree.root.instruction;
    assert_eq!(routing.matches("tools of the MCP server `git`").count(), 1);
}

#[test]
fn an_agent_exists_if_tools_are_assigned_to_it() {
    let tools = ["git_log"];
    let without = try_tree(&built_in("specialists"), &tools, &TreeSettings::default()).unwrap();
    assert!(without.sub_agent("vault").is_none());
    let tree = try_tree(&built_in("specialists"), &tools, &assign("vault", &tools)).unwrap();
    assert_eq!(tools_of(&tree, "vault"), tools);
}

#[test]
fn a_tool_cannot_be_assigned_to_an_unknown_agent() {
    for agent in ["navigatr", "lango-orchestrator", "user"] {
        let refused = try_tree(
            &built_in("specialists"),
            &["git_log"],
            &assign(agent, &["git_log"]),
        );
        let Err(TreeError::NoSuchAgent { agents, .. }) = refused else {
            panic!("{agent} was given a tool");
        };
        assert!(agents.contains("`navigator`"), "{agents}");
    }
    let unused = assign("navigatr", &["nothing_installed"]);
    assert!(try_tree(&built_in("specialists"), &["fs_read"], &unused).is_ok());
}

#[test]
fn every_tool_still_has_at_most_one_owner() {
    for topology in ["specialists", "classic"] {
        let topology = built_in(topology);
        for spec in &topology.agents {
            let settings = assign(spec.name.as_str(), &ALL_TOOLS[..ALL_TOOLS.len() / 2]);
            let tree = try_tree(&topology, &ALL_TOOLS, &settings).unwrap();
            let mut all: Vec<String> = tree.unmatched.iter().map(ToString::to_string).collect();
            all.extend(
                tree.agents
                    .iter()
                    .flat_map(|agent| tools_of(&tree, agent.name.as_str())),
            );
            all.sort();
            let mut expected = ALL_TOOLS.map(str::to_owned).to_vec();
            expected.sort();
            assert_eq!(all, expected);
        }
    }
}
