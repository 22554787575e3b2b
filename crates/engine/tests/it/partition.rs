//! Which agent owns which tool.

use crate::trees::{
    ALL_TOOLS, CLASSIC, SPECIALISTS, UNKNOWN_TOOLS, built_in, tools_of, tree, try_tree,
};
use lango_core::ToolName;
use lango_engine::{Topology, TreeError, TreeSettings, partition};
use proptest::prelude::*;

/// Asserts that only this agent owns these tools.
fn assert_home(topology: &Topology, agent: &str, tools: &[&str]) {
    let parts = partition(topology, tools.iter().copied());
    assert_eq!(parts.of(agent), tools);
    assert_eq!(parts.unmatched, Vec::<&str>::new());
    let held: usize = parts.parts.iter().map(|(_, part)| part.len()).sum();
    assert_eq!(held, tools.len(), "{parts:?}");
}

fn assert_specialist(agent: &str, tools: &[&str]) {
    assert_home(&built_in("specialists"), agent, tools);
}

#[test]
fn p01_commands_files_and_skills_belong_to_the_operator() {
    assert_specialist("operator", &["exec_shell", "fs_read", "skill_deploy"]);
}

#[test]
fn p02_web_pages_belong_to_the_navigator() {
    assert_specialist("navigator", &["browser_navigate", "browser_screenshot"]);
}

#[test]
fn p03_keys_secrets_and_payments_belong_to_the_vault() {
    assert_specialist("vault", &["crypto_sign", "secrets_get", "payment_send"]);
}

#[test]
fn p04_knowledge_belongs_to_the_librarian() {
    let tools = [
        "search_web",
        "rag_query",
        "graph_traverse",
        "graph_query",
        "save_knowledge_item",
        "save_learning_x",
        "create_skill_x",
        "list_skills",
    ];
    assert_specialist("librarian", &tools);
}

#[test]
fn p05_memory_belongs_to_the_chronicler() {
    assert_specialist(
        "chronicler",
        &["memory_store", "observe_event", "reflect_summary"],
    );
}

#[test]
fn p06_a_tool_with_an_unknown_prefix_belongs_to_no_agent() {
    let parts = partition(&built_in("specialists"), UNKNOWN_TOOLS);
    assert_eq!(parts.unmatched, UNKNOWN_TOOLS);
    assert!(
        parts.parts.iter().all(|(_, part)| part.is_empty()),
        "{parts:?}"
    );
    // A prefix matches only at the start of a name, and case-sensitively.
    let odd = [
        "my_fs_read",
        "FS_read",
        "fsread",
        "save",
        "create",
        "list_skill",
        "",
    ];
    assert_eq!(partition(&built_in("specialists"), odd).unmatched, odd);
}

#[test]
fn p07_the_match_order_is_data() {
    let topology = built_in("specialists");
    assert_eq!(
        topology.match_order,
        ["librarian", "chronicler", "navigator", "vault", "operator"]
    );
    assert_eq!(topology.unmatched, None);
    let tried: Vec<&str> = topology
        .in_match_order()
        .map(|spec| spec.name.as_str())
        .collect();
    assert_eq!(
        tried,
        [
            "librarian",
            "chronicler",
            "navigator",
            "vault",
            "operator",
            "planner"
        ]
    );
    assert_specialist("librarian", &["save_knowledge_data", "create_skill_new"]);
}

/// Five agents whose prefixes all match `shared_tool`, listed in the reverse of their match order.
fn overlapping(match_order: &[&str]) -> Topology {
    let agent = |name: &str, prefix: &str| {
        format!(
            "[[agents]]\nname = \"{name}\"\nrole = \"r\"\naccepts = \"a\"\nreturns = \"r\"\ncannot = \"c\"\n\
             prefixes = [{{ prefix = \"{prefix}\", capability = \"c\" }}]\n"
        )
    };
    let agents = [
        ("operator", "s"),
        ("vault", "sh"),
        ("navigator", "sha"),
        ("chronicler", "shar"),
        ("librarian", "share"),
    ];
    let agents: String = agents
        .iter()
        .map(|(name, prefix)| agent(name, prefix))
        .collect();
    Topology::parse(
        &format!("name = \"overlap\"\nmatch_order = {match_order:?}\n{agents}"),
        "overlap",
    )
    .unwrap()
}

#[test]
fn p07_of_several_matching_agents_the_first_in_match_order_wins() {
    let order = ["librarian", "chronicler", "navigator", "vault", "operator"];
    let topology = overlapping(&order);
    for (agent, tool) in order
        .iter()
        .zip(["shared_tool", "shard", "shape", "shy", "stop"])
    {
        assert_home(&topology, agent, &[tool]);
    }
    // Only the match order decides, not the length of the prefix or the position in the file.
    let mut reversed = order;
    reversed.reverse();
    assert_home(
        &overlapping(&reversed),
        "operator",
        &["shared_tool", "shard", "shape", "shy", "stop"],
    );
    // Agents that the match order does not list come last, in the order of the file.
    assert_home(
        &overlapping(&["navigator"]),
        "navigator",
        &["shared_tool", "shape"],
    );
    assert_home(&overlapping(&["navigator"]), "operator", &["shy", "stop"]);
    assert_eq!(partition(&topology, ["other"]).unmatched, ["other"]);
}

#[test]
fn p09_the_parts_are_the_six_roles_and_the_unmatched() {
    for tools in [&[][..], &ALL_TOOLS, &UNKNOWN_TOOLS] {
        let parts = partition(&built_in("specialists"), tools.iter().copied());
        let roles: Vec<&str> = parts.parts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(roles, SPECIALISTS);
    }
    assert_eq!(
        partition(&built_in("specialists"), ALL_TOOLS).of("nobody"),
        Vec::<&str>::new()
    );
}

/// Generates names of every kind: arbitrary text, and known prefixes, truncated and extended.
fn tool_names() -> impl Strategy<Value = Vec<String>> {
    let prefixes: Vec<String> = ["specialists", "classic"]
        .iter()
        .flat_map(|name| built_in(name).agents)
        .flat_map(|spec| spec.prefixes.into_iter().map(|entry| entry.prefix))
        .chain(
            SPECIALISTS
                .iter()
                .chain(&CLASSIC)
                .map(|name| (*name).to_owned()),
        )
        .chain([String::new(), "plan".to_owned(), "delegate".to_owned()])
        .collect();
    let known = (
        proptest::sample::select(prefixes),
        "\\PC{0,4}",
        any::<bool>(),
    )
        .prop_map(|(prefix, tail, cut)| {
            let kept = if cut {
                &prefix[..prefix.len().saturating_sub(1)]
            } else {
                &prefix
            };
            format!("{kept}{tail}")
        });
    let any_text = any::<String>();
    proptest::collection::vec(
        prop_oneof![3 => known, 1 => any_text, 1 => "[a-zä_]{0,8}"],
        0..40,
    )
}

proptest! {
    #[test]
    fn p08_the_planner_never_gets_a_tool(names in tool_names()) {
        for topology in ["specialists", "classic"] {
            let parts = partition(&built_in(topology), names.iter().map(String::as_str));
            prop_assert!(parts.of("planner").is_empty());
        }
    }

    #[test]
    fn p09_every_tool_is_in_exactly_one_part(names in tool_names()) {
        for topology in ["specialists", "classic"] {
            let topology = built_in(topology);
            let parts = partition(&topology, names.iter().map(String::as_str));
            prop_assert_eq!(parts.parts.len(), topology.agents.len());
            let mut given: Vec<&str> = names.iter().map(String::as_str).collect();
            let held = parts.parts.iter().flat_map(|(_, part)| part.iter().copied());
            let mut placed: Vec<&str> = held.chain(parts.unmatched.iter().copied()).collect();
            given.sort_unstable();
            placed.sort_unstable();
            prop_assert_eq!(given, placed);
            // Each part has the order of the input and only tools that its agent claims.
            for (name, part) in &parts.parts {
                let spec = topology.agents.iter().find(|spec| spec.name == *name).unwrap();
                let claims = |tool: &str| spec.prefixes.iter().any(|entry| tool.starts_with(&entry.prefix));
                let takes_the_rest = topology.unmatched.as_ref() == Some(name);
                prop_assert!(takes_the_rest || part.iter().all(|tool| claims(tool)));
            }
        }
    }
}

#[test]
fn p10_classic_has_three_agents_with_prefixes_and_the_executor_owns_the_rest() {
    let classic = built_in("classic");
    let executor = [
        "exec",
        "exec_shell",
        "fs_read",
        "browser_navigate",
        "crypto_sign",
        "skill_deploy",
    ];
    assert_home(&classic, "executor", &executor);
    let researcher = [
        "search_web",
        "rag_query",
        "graph_traverse",
        "graph_query",
        "save_knowledge",
        "save_knowledge_item",
        "save_learning",
        "save_learning_x",
    ];
    assert_home(&classic, "researcher", &researcher);
    assert_home(
        &classic,
        "memory-manager",
        &["memory_store", "observe_event", "reflect_summary"],
    );
    let rest = [
        "weather_get",
        "secrets_get",
        "payment_send",
        "create_skill_x",
        "list_skills",
        "zip",
    ];
    assert_home(&classic, "executor", &rest);
}

#[test]
fn p11_specialists_have_these_prefixes_and_no_others() {
    let expected: [(&str, &[&str]); 6] = [
        ("operator", &["exec", "fs_", "skill_"]),
        ("navigator", &["browser_"]),
        ("vault", &["crypto_", "secrets_", "payment_"]),
        (
            "librarian",
            &[
                "search_",
                "rag_",
                "graph_",
                "save_knowledge",
                "save_learning",
                "create_skill",
                "list_skills",
            ],
        ),
        ("planner", &[]),
        ("chronicler", &["memory_", "observe_", "reflect_"]),
    ];
    let topology = built_in("specialists");
    let actual: Vec<(&str, Vec<&str>)> = topology
        .agents
        .iter()
        .map(|spec| {
            (
                spec.name.as_str(),
                spec.prefixes
                    .iter()
                    .map(|entry| entry.prefix.as_str())
                    .collect(),
            )
        })
        .collect();
    assert_eq!(
        actual,
        expected.map(|(name, prefixes)| (name, prefixes.to_vec()))
    );
}

#[test]
fn p11_bare_names_match_too() {
    assert_specialist("operator", &["exec", "fs_", "skill_"]);
    assert_specialist(
        "librarian",
        &[
            "save_knowledge",
            "save_learning",
            "create_skill",
            "list_skills",
        ],
    );
}

#[test]
fn p12_every_unmatched_tool_is_named() {
    let tree = tree(
        "specialists",
        &["zip", "fs_read", "weather_get", "calendar_add"],
    );
    assert_eq!(tree.unmatched, ["zip", "weather_get", "calendar_add"]);
    assert_eq!(tools_of(&tree, "operator"), ["fs_read"]);
    assert_eq!(
        self::tree("classic", &UNKNOWN_TOOLS).unmatched,
        Vec::<ToolName>::new()
    );
}

#[test]
fn p12_strict_tools_make_an_unmatched_tool_an_error() {
    let strict = TreeSettings {
        strict_tools: true,
        ..TreeSettings::default()
    };
    let error = try_tree(
        &built_in("specialists"),
        &["zip", "fs_read", "weather_get"],
        &strict,
    )
    .unwrap_err();
    let names = ["zip", "weather_get"].map(ToolName::from).to_vec();
    assert_eq!(error, TreeError::Unmatched { names });
    let text = error.to_string();
    assert!(
        text.contains("`zip`, `weather_get`") && !text.contains("fs_read"),
        "{text}"
    );
    assert!(text.contains("agent.strictTools = false"), "{text}");
    // If every tool has an owner, strict mode changes nothing.
    let lenient = tree("specialists", &ALL_TOOLS);
    assert_eq!(
        try_tree(&built_in("specialists"), &ALL_TOOLS, &strict)
            .unwrap()
            .digest,
        lenient.digest
    );
    assert!(try_tree(&built_in("classic"), &UNKNOWN_TOOLS, &strict).is_ok());
}
