//! Which agents exist, which tools they own, and which topologies and tools are rejected.

use crate::bench::{Bench, local, turn};
use crate::trees::{
    ALL_TOOLS, CLASSIC, ManualTurn, SPECIALISTS, UNKNOWN_TOOLS, built_in,
    classic_without_direct_tools, custom_topology, delegate_names, every_tree, first_request,
    names, no_orchestrator_tools, remotes, section, tools_of, tree, tree_of, try_tree,
    with_remotes,
};
use lango_core::{AgentName, Outcome, Tool, ToolName};
use lango_engine::{
    AgentSpec, Gate, OrchestratorTools, PrefixSpec, Topology, TopologyError, Tree, TreeError,
    TreeMode, TreeSettings, partition,
};
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish, say};
use lango_testkit::tool::{CountingTool, specs};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns how often each tool occurs in the tree.
fn adapted(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for agent in std::iter::once(&tree.root).chain(&tree.agents) {
        for tool in &agent.tools {
            *counts.entry(tool.spec.name.as_str()).or_insert(0) += 1;
        }
    }
    counts
}

fn gate(tree: &Tree, tools: &[&str]) -> Gate {
    let tools = tools
        .iter()
        .map(|name| Arc::new(CountingTool::new(name)) as Arc<dyn Tool>);
    Gate::new(tree, tools.collect()).unwrap()
}

#[test]
fn t01_with_every_category_there_are_six_sub_agents_under_the_orchestrator() {
    let tree = tree("specialists", &ALL_TOOLS);
    assert_eq!(tree.mode, TreeMode::Multi);
    assert_eq!(tree.root.name, "lango-orchestrator");
    assert_eq!(names(&tree), SPECIALISTS);
    assert_eq!(tree.skipped, []);
    assert!(tree.agents.iter().all(|agent| !agent.is_remote));
}

#[test]
fn t02_the_orchestrator_of_specialists_has_no_tools() {
    let everything = [ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat();
    for tools in [&everything[..], &ALL_TOOLS, &["fs_read"], &[]] {
        let tree = tree("specialists", tools);
        assert!(tree.root.tools.is_empty() && tree.root.functions.is_empty());
        let gate = gate(&tree, tools);
        assert!(!gate.has_handles(&tree.root.name));
        for agent in &tree.agents {
            assert_eq!(
                gate.has_handles(&agent.name),
                !agent.tools.is_empty(),
                "{}",
                agent.name
            );
        }
        let offered: Vec<String> = first_request(tree)
            .functions
            .iter()
            .map(|function| function.name.to_string())
            .collect();
        assert_eq!(offered, ["delegate"]);
    }
}

#[test]
fn t02_each_tool_occurs_exactly_once_in_the_tree() {
    let tree = tree("specialists", &ALL_TOOLS);
    let expected: BTreeMap<&str, usize> = ALL_TOOLS.iter().map(|name| (*name, 1)).collect();
    assert_eq!(adapted(&tree), expected);
    for name in ALL_TOOLS {
        let owner = tree.owner_of(name).unwrap();
        assert!(owner.tool(name).is_some());
        assert_eq!(owner.tools.len(), owner.functions.len());
    }
    assert!(tree.owner_of("weather_get").is_none());
}

#[test]
fn t03_single_agent_mode_is_one_flat_agent_with_every_tool() {
    let everything = [ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat();
    let tree = Tree::single(specs(&everything), &TreeSettings::default()).unwrap();
    assert_eq!(tree.mode, TreeMode::Single);
    assert_eq!(tree.root.name, "lango-agent");
    assert_eq!(names(&tree), Vec::<&str>::new());
    assert_eq!(tools_of(&tree, "lango-agent"), everything);
    assert_eq!(tree.unmatched, Vec::<ToolName>::new());
    assert!(gate(&tree, &everything).has_handles(&tree.root.name));
    let offered: Vec<String> = first_request(tree)
        .functions
        .iter()
        .map(|function| function.name.to_string())
        .collect();
    assert_eq!(offered, everything);
}

#[test]
fn t04_agents_without_tools_are_skipped() {
    for topology in [built_in("specialists"), built_in("classic")] {
        for tool in ALL_TOOLS {
            let tree = tree_of(&topology, &[tool]);
            let owner = tree.owner_of(tool).unwrap().name.as_str();
            let expected = topology.agents.iter().map(|spec| spec.name.as_str());
            let expected: Vec<&str> = expected
                .filter(|name| [owner, "planner"].contains(name))
                .collect();
            assert_eq!(names(&tree), expected, "{tool}");
            let skipped: Vec<&str> = tree
                .skipped
                .iter()
                .map(|skipped| skipped.name.as_str())
                .collect();
            assert_eq!(
                skipped.len() + expected.len(),
                topology.agents.len(),
                "{tool}"
            );
            assert!(
                tree.skipped
                    .iter()
                    .all(|skipped| skipped.reason == "no tools")
            );
        }
    }
}

#[test]
fn t04_only_the_planner_is_always_included_and_it_never_has_tools() {
    for topology in Topology::BUILT_IN.map(built_in) {
        let always: Vec<&AgentSpec> = topology
            .agents
            .iter()
            .filter(|spec| spec.always_include)
            .collect();
        assert_eq!(always.len(), 1);
        assert_eq!(always[0].name, "planner");
        assert_eq!(always[0].prefixes, []);
    }
    for (name, tree) in every_tree()
        .into_iter()
        // The user may still assign tools to the planner by name.
        .filter(|(name, tree)| &*tree.topology != "garden" && !name.ends_with("tools for planner"))
    {
        assert_eq!(tools_of(&tree, "planner"), Vec::<&str>::new(), "{name}");
    }
    // Other specs can be always included, too.
    assert_eq!(names(&tree_of(&custom_topology(), &[])), ["poet"]);
}

#[test]
fn t05_operator_and_librarian_tools_give_operator_librarian_and_planner() {
    let tree = tree(
        "specialists",
        &["search_web", "exec_shell", "fs_read", "save_knowledge"],
    );
    assert_eq!(names(&tree), ["operator", "librarian", "planner"]);
}

#[test]
fn t06_without_tools_there_is_the_planner_alone() {
    assert_eq!(names(&tree("specialists", &[])), ["planner"]);
}

#[test]
fn t07_with_unmatched_tools_only_there_is_the_planner_alone() {
    let tree = tree("specialists", &UNKNOWN_TOOLS);
    assert_eq!(names(&tree), ["planner"]);
    assert_eq!(adapted(&tree), BTreeMap::new());
    assert_eq!(tree.unmatched, UNKNOWN_TOOLS);
    assert!(
        UNKNOWN_TOOLS
            .iter()
            .all(|tool| tree.owner_of(tool).is_none())
    );
    let gate = gate(&tree, &UNKNOWN_TOOLS);
    assert!(!gate.has_handles(&tree.root.name) && !gate.has_handles(&AgentName::from("planner")));
}

#[test]
fn t08_one_more_spec_is_one_more_agent_everywhere() {
    let spec = AgentSpec {
        name: AgentName::from("meteorologist"),
        role: "Watches the sky".to_owned(),
        prefixes: vec![PrefixSpec {
            prefix: "weather_".to_owned(),
            capability: "weather reports".to_owned(),
        }],
        keywords: vec!["rain".to_owned(), "storm".to_owned()],
        accepts: "a town".to_owned(),
        returns: "its weather".to_owned(),
        cannot: "changing the weather".to_owned(),
        always_include: false,
        instruction: String::new(),
        model: None,
        temperature: None,
        reasoning_effort: None,
        max_output_tokens: None,
        project_instructions: false,
        trust: lango_core::Trust::Trusted,
    };
    for name in Topology::BUILT_IN {
        let mut topology = built_in(name);
        topology.agents.push(spec.clone());
        let tools = ["weather_get", "fs_read"];
        assert_eq!(
            partition(&topology, tools).of("meteorologist"),
            ["weather_get"]
        );

        let tree = tree_of(&topology, &tools);
        let agent = tree.sub_agent("meteorologist").unwrap();
        assert_eq!(names(&tree).last(), Some(&"meteorologist"));
        assert_eq!(tools_of(&tree, "meteorologist"), ["weather_get"]);
        assert_eq!(tree.owner_of("weather_get").unwrap().name, "meteorologist");
        assert_eq!(
            &*agent.description,
            "Watches the sky. Can do: weather reports."
        );
        assert!(agent.instruction.starts_with("You are meteorologist"));

        let request = first_request(tree);
        assert!(
            delegate_names(&request)
                .unwrap()
                .contains(&"meteorologist".to_owned())
        );
        let entry = "### meteorologist\n- role: Watches the sky\n- keywords: rain, storm\n- capabilities: weather reports\n\
                     - accepts: a town\n- returns: its weather\n- cannot: changing the weather\n";
        assert!(
            request.instruction.contains(entry),
            "{}",
            request.instruction
        );

        // Without its own tools it is skipped like any other.
        let without = tree_of(&topology, &["fs_read"]);
        assert!(
            without
                .skipped
                .iter()
                .any(|skipped| skipped.name == "meteorologist")
        );
        assert!(!first_request(without).instruction.contains("meteorologist"));
    }
}

#[test]
fn t09_classic_has_four_agents_and_an_orchestrator_with_all_tools() {
    let everything = [ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat();
    let tree = tree("classic", &everything);
    assert_eq!(tree.root.name, "lango-orchestrator");
    assert_eq!(names(&tree), CLASSIC);
    assert_eq!(tools_of(&tree, "lango-orchestrator"), everything);
    let expected: BTreeMap<&str, usize> = everything.iter().map(|name| (*name, 2)).collect();
    assert_eq!(adapted(&tree), expected);
    let parts = partition(&built_in("classic"), everything.iter().copied());
    for agent in CLASSIC {
        assert_eq!(tools_of(&tree, agent), parts.of(agent));
    }
    assert!(gate(&tree, &everything).has_handles(&tree.root.name));
    let offered: Vec<String> = first_request(tree)
        .functions
        .iter()
        .map(|function| function.name.to_string())
        .collect();
    assert_eq!(offered, [&["delegate"], &everything[..]].concat());
}

#[test]
fn t10_classic_has_only_agents_with_tools_and_the_planner() {
    assert_eq!(
        names(&tree("classic", &["fs_read", "search_web"])),
        ["executor", "researcher", "planner"]
    );
    assert_eq!(
        names(&tree("classic", &["memory_store"])),
        ["planner", "memory-manager"]
    );
    assert_eq!(
        names(&tree("classic", &["weather_get"])),
        ["executor", "planner"]
    );
    let empty = tree("classic", &[]);
    assert_eq!(names(&empty), ["planner"]);
    assert!(empty.root.tools.is_empty());
}

#[test]
fn t11_classic_without_direct_tools_is_a_change_of_data() {
    let everything = [ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat();
    let by_setting = classic_without_direct_tools(&everything);
    assert_eq!(names(&by_setting), CLASSIC);
    assert!(by_setting.root.tools.is_empty());
    assert!(!gate(&by_setting, &everything).has_handles(&by_setting.root.name));
    let expected: BTreeMap<&str, usize> = everything.iter().map(|name| (*name, 1)).collect();
    assert_eq!(adapted(&by_setting), expected);

    let mut topology = built_in("classic");
    topology.orchestrator_tools = OrchestratorTools::None;
    assert_eq!(tree_of(&topology, &everything).digest, by_setting.digest);

    let request = first_request(by_setting);
    assert_eq!(request.functions.len(), 1);
    assert!(
        request
            .instruction
            .contains("You have no tools of your own. Whatever needs a tool, you must delegate.")
    );
    assert!(!request.instruction.contains("Direct work"));
}

#[test]
fn t11_a_setting_cannot_give_tools_to_an_orchestrator_built_without() {
    let all = TreeSettings {
        orchestrator_tools: Some(OrchestratorTools::All),
        ..TreeSettings::default()
    };
    let error = try_tree(&built_in("specialists"), &ALL_TOOLS, &all).unwrap_err();
    assert_eq!(
        error,
        TreeError::ToolLessOrchestrator {
            topology: "specialists".to_owned()
        }
    );
    assert!(
        error.to_string().contains("`specialists`")
            && error.to_string().contains("agent.orchestratorTools")
    );
    // Setting the default explicitly changes nothing.
    let same = try_tree(
        &built_in("specialists"),
        &ALL_TOOLS,
        &no_orchestrator_tools(),
    )
    .unwrap();
    assert_eq!(same.digest, tree("specialists", &ALL_TOOLS).digest);
    let same = try_tree(&built_in("classic"), &ALL_TOOLS, &all).unwrap();
    assert_eq!(same.digest, tree("classic", &ALL_TOOLS).digest);
}

#[test]
fn t13_a_topology_is_chosen_by_name_or_read_from_a_text() {
    assert_eq!(Topology::BUILT_IN, ["specialists", "classic"]);
    for name in Topology::BUILT_IN {
        assert_eq!(built_in(name).name, name);
        assert_eq!(&*tree(name, &ALL_TOOLS).topology, name);
    }
    let tree = tree_of(&custom_topology(), &["plant_water", "anything"]);
    assert_eq!(&*tree.topology, "garden");
    assert_eq!(tree.root.name, "foreman");
    assert_eq!(names(&tree), ["gardener", "poet", "helper"]);
    assert_eq!(tools_of(&tree, "helper"), ["anything"]);
    assert!(
        tree.root.tools.is_empty(),
        "an orchestrator has no tools unless its topology gives it some"
    );
}

#[test]
fn t13_an_unknown_topology_is_an_error_that_lists_the_valid_ones() {
    for name in ["swarm", "", "Specialists"] {
        let error = Topology::built_in(name).unwrap_err();
        assert_eq!(
            error,
            TopologyError::Unknown {
                name: name.to_owned()
            }
        );
        let text = error.to_string();
        assert!(text.contains(&format!("`{name}`")), "{text}");
        assert!(
            Topology::BUILT_IN.iter().all(|valid| text.contains(valid)),
            "{text}"
        );
    }
}

#[test]
fn t14_an_agent_file_is_partitioned_described_and_routed_to() {
    let tools = ["soil_probe", "plant_water"];
    assert_eq!(partition(&custom_topology(), tools).of("gardener"), tools);
    let tree = tree_of(&custom_topology(), &tools);
    let gardener = tree.sub_agent("gardener").unwrap();
    assert_eq!(
        &*gardener.description,
        "Looks after plants. Can do: plant care, soil analysis."
    );
    let root_instruction = [
        "Looks after plants",
        "plant care, soil analysis",
        "a plant and its trouble",
        "what was done for it",
    ];
    for expected in root_instruction
        .iter()
        .chain(&["anything indoors", "[REJECT]"])
    {
        assert!(
            gardener.instruction.contains(expected),
            "{expected}\n{}",
            gardener.instruction
        );
    }
    assert!(
        tree.sub_agent("poet")
            .unwrap()
            .instruction
            .ends_with("\nRhyme.")
    );

    let request = first_request(tree);
    assert_eq!(delegate_names(&request).unwrap(), ["gardener", "poet"]);
    let table = section(&request.instruction, "Routing table").unwrap();
    let expected = "### gardener\n- role: Looks after plants\n- keywords: plant, water, soil\n\
                    - capabilities: plant care, soil analysis\n- accepts: a plant and its trouble\n\
                    - returns: what was done for it\n- cannot: anything indoors\n\
                    ### poet\n- role: Writes verses\n- keywords: poem, verse\n- accepts: a subject\n\
                    - returns: four lines\n- cannot: prose\n";
    assert_eq!(table, expected);
}

#[test]
fn t14_an_agent_from_a_file_gets_its_instruction_and_its_tools() {
    let tree = Arc::new(tree_of(&custom_topology(), &["plant_water", "weather_get"]));
    let mut driven = ManualTurn::begin(&tree, "The fern droops");
    driven.reply(delegate_and_finish("gardener", "Water the fern"));
    let request = driven.request();
    assert_eq!(
        request.instruction,
        tree.sub_agent("gardener").unwrap().instruction
    );
    let offered: Vec<&str> = request
        .functions
        .iter()
        .map(|function| &*function.name)
        .collect();
    assert_eq!(offered, ["plant_water"]);
}

#[tokio::test]
async fn t14_an_agent_from_a_file_runs() {
    let tool = Arc::new(CountingTool::new("plant_water"));
    let bench = Bench {
        topology: custom_topology(),
        ..Bench::new(vec![Arc::clone(&tool) as Arc<dyn Tool>])
    };
    let runner = bench.runner(ScriptedModel::replies([
        delegate_and_finish("gardener", "Water the fern"),
        call("plant_water", json!({ "plant": "fern" })),
        say("The fern is watered"),
    ]));
    let (report, _) = turn(&mut runner.start(local()), "The fern droops").await;
    assert_eq!(tool.runs(), 1);
    assert_eq!(report.outcome, Outcome::Answered { limit: None });
    assert_eq!(report.answer.as_deref(), Some("The fern is watered"));
    assert_eq!(report.author, Some(AgentName::from("gardener")));
    assert_eq!(
        (report.model_calls, report.tool_calls, report.rounds),
        (3, 1, 1)
    );
}

#[test]
fn the_digest_differs_between_trees_and_is_stable_for_one() {
    let first = tree("specialists", &ALL_TOOLS).digest;
    assert_eq!(first, tree("specialists", &ALL_TOOLS).digest);
    let others = [
        tree("specialists", &ALL_TOOLS[1..]).digest,
        tree("classic", &ALL_TOOLS).digest,
        with_remotes(&built_in("specialists"), &ALL_TOOLS, remotes()).digest,
        Tree::single(specs(&ALL_TOOLS), &TreeSettings::default())
            .unwrap()
            .digest,
    ];
    assert!(others.iter().all(|other| *other != first));
}
