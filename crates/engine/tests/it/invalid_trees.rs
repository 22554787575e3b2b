//! Invalid topologies, tools and remote agents, and the error messages about them.

use crate::trees::{
    CUSTOM_TOPOLOGY, built_in, delegate_names, first_request, names, remote, remotes, try_tree,
    with_remotes,
};
use lango_core::ToolName;
use lango_engine::{Topology, Tree, TreeError, TreeSettings};
use lango_testkit::tool::{spec, specs};
use serde_json::json;
use std::sync::Arc;

/// Parses the test topology with one text replaced by another, which must fail, and returns the error message.
fn broken(old: &str, new: &str) -> String {
    assert!(CUSTOM_TOPOLOGY.contains(old), "{old}");
    Topology::parse(&CUSTOM_TOPOLOGY.replacen(old, new, 1), "garden.toml")
        .unwrap_err()
        .to_string()
}

#[test]
fn t14_a_missing_field_is_an_error_that_names_field_and_line() {
    for field in ["name", "role", "accepts", "returns", "cannot"] {
        let agent = CUSTOM_TOPOLOGY.find("[[agents]]").unwrap();
        let start = agent
            + CUSTOM_TOPOLOGY[agent..]
                .find(&format!("\n{field} = "))
                .unwrap()
            + 1;
        let end = start + CUSTOM_TOPOLOGY[start..].find('\n').unwrap() + 1;
        let text = format!("{}{}", &CUSTOM_TOPOLOGY[..start], &CUSTOM_TOPOLOGY[end..]);
        let error = Topology::parse(&text, "garden.toml")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`garden.toml`") && error.contains(&format!("missing field `{field}`")),
            "{error}"
        );
        assert!(error.contains("line 6"), "{error}");
    }
    let error = Topology::parse("name = \"x\"", "x.toml")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("missing field `agents`") && error.contains("line 1"),
        "{error}"
    );
}

#[test]
fn t14_a_field_that_does_not_exist_or_has_the_wrong_type_is_an_error_with_its_line() {
    let error = broken("keywords = [\"plant\"", "keyword = [\"plant\"");
    assert!(
        error.contains("unknown field `keyword`") && error.contains("line 13"),
        "{error}"
    );
    let error = broken("always_include = true", "always_include = \"yes\"");
    assert!(
        error.contains("line 25") && error.contains("boolean"),
        "{error}"
    );
    let error = broken("unmatched =", "orchestrator_tools = \"some\"\nunmatched =");
    assert!(
        error.contains("line 4") && error.contains("`none`") && error.contains("`all`"),
        "{error}"
    );
    let error = broken("name = \"gardener\"", "name = \"gardener");
    assert!(error.contains("line 7"), "{error}");
}

#[test]
fn t14_a_topology_that_contradicts_itself_is_an_error() {
    assert!(broken("\"poet\"", "\"gardener\"").contains("the name `gardener` is used twice"));
    assert!(broken("\"poet\"", "\"foreman\"").contains("the name `foreman` is used twice"));
    assert!(broken("\"poet\"", "\"user\"").contains("`user` is reserved for the user"));
    assert!(broken("\"foreman\"", "\"user\"").contains("`user` is reserved for the user"));
    let error = broken(
        "unmatched = \"helper\"",
        "match_order = [\"gardener\", \"gardner\"]",
    );
    assert!(
        error.contains("`gardner`") && error.contains("match_order"),
        "{error}"
    );
    let error = broken("unmatched = \"helper\"", "unmatched = \"nobody\"");
    assert!(
        error.contains("`nobody`") && error.contains("unmatched"),
        "{error}"
    );
    assert!(
        broken("prefix = \"plant_\"", "prefix = \"\"")
            .contains("agent `gardener` has an incomplete prefix")
    );
    assert!(
        broken("capability = \"plant care\"", "capability = \"\"")
            .contains("`gardener` has an incomplete prefix")
    );
}

#[test]
fn t14_an_agents_name_has_only_plain_characters() {
    let long = "x".repeat(65);
    for name in [
        "",
        "two words",
        "dot.ted",
        "gärtner",
        "a/b",
        "x\\n",
        "`",
        &long,
    ] {
        let error = broken("\"poet\"", &format!("\"{name}\""));
        assert!(error.contains("cannot be an agent's name"), "{error}");
        let error = broken("\"foreman\"", &format!("\"{name}\""));
        assert!(error.contains("cannot be an agent's name"), "{error}");
    }
    let longest = "x".repeat(64);
    for name in ["a", "Poet_2", "-", &longest] {
        assert!(
            Topology::parse(
                &CUSTOM_TOPOLOGY.replacen("\"poet\"", &format!("\"{name}\""), 1),
                "garden.toml"
            )
            .is_ok()
        );
    }
}

#[test]
fn two_tools_with_the_same_name_are_rejected() {
    let expected = TreeError::DuplicateTool {
        name: ToolName::from("fs_read"),
    };
    let tools = ["fs_read", "exec_shell", "fs_read"];
    for topology in Topology::BUILT_IN {
        let error = try_tree(&built_in(topology), &tools, &TreeSettings::default()).unwrap_err();
        assert_eq!(error, expected);
        assert!(error.to_string().contains("`fs_read`"));
    }
    assert_eq!(
        Tree::single(specs(&tools), &TreeSettings::default()).unwrap_err(),
        expected
    );
    // Two tools without an owner are rejected, too.
    let error = try_tree(
        &built_in("specialists"),
        &["zip", "zip"],
        &TreeSettings::default(),
    )
    .unwrap_err();
    assert_eq!(
        error,
        TreeError::DuplicateTool {
            name: ToolName::from("zip")
        }
    );
}

#[test]
fn a_tool_cannot_be_named_delegate_or_have_a_name_that_no_model_can_call() {
    let long = "x".repeat(65);
    for name in ["delegate", "", "two words", "fs/read", "fs_läsen", &long] {
        let expected = TreeError::BadToolName {
            name: ToolName::from(name),
        };
        for topology in Topology::BUILT_IN {
            let error = try_tree(
                &built_in(topology),
                &["fs_read", name],
                &TreeSettings::default(),
            )
            .unwrap_err();
            assert_eq!(error, expected);
            assert!(error.to_string().contains("`delegate`"));
        }
        assert_eq!(
            Tree::single(specs(&[name]), &TreeSettings::default()).unwrap_err(),
            expected
        );
    }
    assert!(
        Tree::single(
            specs(&["delegate_x", "a.b", "Delegate"]),
            &TreeSettings::default()
        )
        .is_ok()
    );
}

#[test]
fn a_schema_that_is_not_an_object_is_rejected() {
    let mut tool = spec("fs_read");
    tool.parameters = json!(["not", "a", "schema"]).into();
    let error = Tree::single(vec![Arc::new(tool)], &TreeSettings::default()).unwrap_err();
    assert!(
        matches!(&error, TreeError::BadSchema { name, .. } if *name == "fs_read"),
        "{error}"
    );
}

#[test]
fn remote_agents_come_after_the_local_ones_in_the_order_of_the_configuration() {
    let tree = with_remotes(&built_in("specialists"), &["fs_read"], remotes());
    assert_eq!(
        names(&tree),
        ["operator", "planner", "weather-station", "almanac"]
    );
    assert!(
        tree.agents[2..]
            .iter()
            .all(|agent| agent.is_remote && agent.tools.is_empty())
    );
    assert_eq!(delegate_names(&first_request(tree)).unwrap().len(), 4);
}

#[test]
fn a_remote_agent_with_a_taken_or_invalid_name_is_skipped_with_the_reason() {
    // `vault` is not in this tree, but would be with other tools. Then the log could not distinguish the two agents.
    let refused = [
        "operator",
        "vault",
        "lango-orchestrator",
        "user",
        "almanac",
        "",
        "a b",
        "x\n### y",
    ];
    let cards = ["almanac"]
        .iter()
        .chain(&refused)
        .map(|name| remote(name, "d"))
        .collect();
    let tree = with_remotes(&built_in("specialists"), &["fs_read"], cards);
    assert_eq!(names(&tree), ["operator", "planner", "almanac"]);
    for name in refused {
        let skipped = tree
            .skipped
            .iter()
            .find(|skipped| skipped.name == name && skipped.reason != "no tools");
        let reason = &skipped
            .unwrap_or_else(|| panic!("`{name}` is not among the skipped"))
            .reason;
        assert!(
            reason.contains("is taken") || reason.contains("cannot be an agent's name"),
            "{reason}"
        );
    }
}
