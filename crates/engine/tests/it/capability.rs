//! The capabilities of agents, in prose.

use crate::trees::{
    ALL_TOOLS, SERVER_TOOLS, UNKNOWN_TOOLS, built_in, custom_topology, every_tree, first_request,
    occurrences, tree, tree_of,
};
use lango_engine::{AgentSpec, GENERAL_ACTIONS, Topology, Tree, capabilities_of};

fn description<'a>(tree: &'a Tree, agent: &str) -> &'a str {
    &tree.sub_agent(agent).unwrap().description
}

fn spec(topology: &Topology, agent: &str) -> AgentSpec {
    topology
        .agents
        .iter()
        .find(|spec| spec.name == agent)
        .unwrap()
        .clone()
}

#[test]
fn c01_the_operator_is_described_in_the_order_of_its_prefixes() {
    for tools in [["exec_shell", "fs_read"], ["fs_read", "exec_shell"]] {
        let tree = tree("specialists", &tools);
        let description = description(&tree, "operator");
        assert!(
            description.contains("command execution, file operations"),
            "{description}"
        );
        assert_eq!(
            occurrences(description, "skill execution"),
            0,
            "{description}"
        );
    }
}

#[test]
fn c02_the_vault_is_described_by_three_capabilities() {
    let tree = tree(
        "specialists",
        &["payment_send", "crypto_sign", "secrets_get"],
    );
    let expected = "cryptography, secret management, blockchain payments (USDC on Base)";
    assert!(
        description(&tree, "vault").contains(expected),
        "{}",
        description(&tree, "vault")
    );
}

#[test]
fn c03_a_capability_is_mentioned_once() {
    let tree = tree("specialists", &["exec_shell", "exec_run", "exec"]);
    assert_eq!(
        occurrences(description(&tree, "operator"), "command execution"),
        1
    );
    let operator = tree.sub_agent("operator").unwrap();
    assert_eq!(operator.capabilities.len(), 1);
}

#[test]
fn c03_two_prefixes_with_one_text_give_it_once() {
    let mut topology = custom_topology();
    topology.agents[0].prefixes[1].capability = "plant care".to_owned();
    let tree = tree_of(&topology, &["soil_probe", "plant_water"]);
    assert_eq!(occurrences(description(&tree, "gardener"), "plant care"), 1);
    let capabilities: Vec<&str> = tree.agents[0]
        .capabilities
        .iter()
        .map(|text| &**text)
        .collect();
    assert_eq!(capabilities, ["plant care"]);
}

#[test]
fn c04_an_unknown_prefix_gives_general_actions() {
    assert_eq!(GENERAL_ACTIONS, "general actions");
    let executor = spec(&built_in("classic"), "executor");
    let capabilities = capabilities_of(&executor, &["weather_get", "zip", "fs_read"]);
    let capabilities: Vec<&str> = capabilities.iter().map(|text| &**text).collect();
    assert_eq!(capabilities, ["file operations", "general actions"]);

    let tree = tree("classic", &UNKNOWN_TOOLS);
    assert_eq!(
        occurrences(description(&tree, "executor"), "general actions"),
        1
    );
    let known = self::tree("classic", &["fs_read"]);
    assert_eq!(
        occurrences(description(&known, "executor"), "general actions"),
        0
    );
}

#[test]
fn c05_no_description_and_no_orchestrator_instruction_names_a_tool() {
    let named = [
        ALL_TOOLS.as_slice(),
        &UNKNOWN_TOOLS,
        &SERVER_TOOLS,
        &["plant_water", "soil_probe"],
    ]
    .concat();
    let named: Vec<&str> = named
        .into_iter()
        .filter(|tool| tool.contains('_'))
        .collect();
    let mut with_server = 0;
    for (name, tree) in every_tree() {
        let is_servers = |text: &lango_core::Text| &**text == "issue tracking";
        let mut agents = tree.agents.iter();
        with_server += usize::from(agents.any(|agent| agent.capabilities.iter().any(is_servers)));
        let locals = tree.agents.iter().filter(|agent| !agent.is_remote);
        let texts = locals
            .chain([&tree.root])
            .map(|agent| agent.description.to_string());
        let mut texts: Vec<String> = texts.collect();
        texts.push(first_request(tree).instruction.to_string());
        for text in &texts {
            let found = named.iter().find(|tool| occurrences(text, tool) > 0);
            assert_eq!(found, None, "{name}\n{text}");
        }
    }
    assert!(with_server >= 6 + 4, "{with_server}");
}

#[test]
fn c06_every_prefix_has_its_own_capability() {
    let mut seen = Vec::new();
    for topology in Topology::BUILT_IN.map(built_in) {
        for spec in &topology.agents {
            for entry in &spec.prefixes {
                for tool in [entry.prefix.clone(), format!("{}x", entry.prefix)] {
                    let capabilities = capabilities_of(spec, &[tool.as_str()]);
                    assert_eq!(
                        capabilities,
                        [entry.capability.as_str().into()],
                        "{}",
                        entry.prefix
                    );
                }
                assert_ne!(entry.capability, GENERAL_ACTIONS, "{}", entry.prefix);
                assert_eq!(entry.capability.trim(), entry.capability);
                assert!(!entry.capability.is_empty());
                seen.push(entry.prefix.clone());
            }
        }
    }
    for prefix in ["secrets_", "create_skill", "list_skills"] {
        assert!(seen.iter().any(|known| known == prefix), "{prefix}");
    }
}

#[test]
fn c06_capabilities_come_in_the_order_of_the_map_every_time() {
    let mut shuffled = ALL_TOOLS;
    for turn in 0..30 {
        // A different order of tools each time: rotated, and every other time reversed.
        shuffled.rotate_left(turn % 7 + 1);
        shuffled.reverse();
        let tree = tree("specialists", &shuffled);
        for spec in &built_in("specialists").agents {
            let map: Vec<&str> = spec
                .prefixes
                .iter()
                .map(|entry| entry.capability.as_str())
                .collect();
            let agent = tree.sub_agent(spec.name.as_str()).unwrap();
            let capabilities: Vec<&str> = agent.capabilities.iter().map(|text| &**text).collect();
            assert_eq!(capabilities, map);
            assert!(
                agent.description.contains(&map.join(", ")),
                "{}",
                agent.description
            );
        }
    }
}

#[test]
fn c07_the_classic_executor_is_described_by_its_tools() {
    let tree = tree("classic", &["browser_navigate", "exec_shell", "fs_read"]);
    let expected = "command execution, file operations, web browsing";
    assert!(
        description(&tree, "executor").contains(expected),
        "{}",
        description(&tree, "executor")
    );
    assert_eq!(
        occurrences(description(&tree, "executor"), "cryptography"),
        0
    );
}
