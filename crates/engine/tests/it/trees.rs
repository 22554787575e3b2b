//! The tool sets and topologies for the tests of tree, partition, capabilities and instructions, and the requests of a
//! tree's models.

use lango_core::{
    AgentName, Event, Limits, ModelReply, ModelRequest, SessionId, Timestamp, ToolName, TurnId,
    TurnSettings,
};
use lango_engine::{
    ModeSwitch, ModelStep, OrchestratorTools, RemoteCard, ToolAssignment, Topology, Tree,
    TreeError, TreeSettings, Turn, TurnInput, TurnStart, TurnStep,
};
use lango_testkit::tool::specs;
use std::sync::Arc;

/// Tools of every specialist, with every prefix and every bare name.
pub(crate) const ALL_TOOLS: [&str; 27] = [
    "exec",
    "exec_shell",
    "fs_read",
    "fs_list",
    "skill_deploy",
    "browser_navigate",
    "browser_screenshot",
    "crypto_sign",
    "secrets_get",
    "payment_send",
    "search_web",
    "rag_query",
    "rag_retrieve",
    "graph_traverse",
    "graph_query",
    "save_knowledge",
    "save_knowledge_item",
    "save_learning",
    "save_learning_x",
    "create_skill",
    "create_skill_x",
    "list_skills",
    "memory_store",
    "memory_list_observations",
    "memory_list_reflections",
    "observe_event",
    "reflect_summary",
];

/// Tools whose prefixes no built-in topology knows.
pub(crate) const UNKNOWN_TOOLS: [&str; 3] = ["weather_get", "calendar_add", "zip"];

/// Tools of an MCP server, which are assigned to an agent by name.
pub(crate) const SERVER_TOOLS: [&str; 3] =
    ["tracker_search", "tracker_read-issue", "browser_issues"];

/// The agents of `specialists`, in order.
pub(crate) const SPECIALISTS: [&str; 6] = [
    "operator",
    "navigator",
    "vault",
    "librarian",
    "planner",
    "chronicler",
];

/// The agents of `classic`, in order.
pub(crate) const CLASSIC: [&str; 4] = ["executor", "researcher", "planner", "memory-manager"];

/// A topology as a user may write it: its own root, one agent with tools, one without, and one for unmatched tools.
pub(crate) const CUSTOM_TOPOLOGY: &str = r#"
name = "garden"
root = "foreman"
unmatched = "helper"

[[agents]]
name = "gardener"
role = "Looks after plants"
prefixes = [
  { prefix = "plant_", capability = "plant care" },
  { prefix = "soil_", capability = "soil analysis" },
]
keywords = ["plant", "water", "soil"]
accepts = "a plant and its trouble"
returns = "what was done for it"
cannot = "anything indoors"

[[agents]]
name = "poet"
role = "Writes verses"
keywords = ["poem", "verse"]
accepts = "a subject"
returns = "four lines"
cannot = "prose"
always_include = true
instruction = "Rhyme."

[[agents]]
name = "helper"
role = "Does odd jobs"
accepts = "a job"
returns = "whether it is done"
cannot = "garden work"
"#;

pub(crate) fn built_in(name: &str) -> Topology {
    Topology::built_in(name).unwrap()
}

pub(crate) fn custom_topology() -> Topology {
    Topology::parse(CUSTOM_TOPOLOGY, "garden.toml").unwrap()
}

/// Builds a tree of a built-in topology with these tools.
pub(crate) fn tree(topology: &str, tools: &[&str]) -> Tree {
    tree_of(&built_in(topology), tools)
}

/// Builds a tree of any topology with these tools.
pub(crate) fn tree_of(topology: &Topology, tools: &[&str]) -> Tree {
    try_tree(topology, tools, &TreeSettings::default()).unwrap()
}

pub(crate) fn try_tree(
    topology: &Topology,
    tools: &[&str],
    settings: &TreeSettings,
) -> Result<Tree, TreeError> {
    Tree::multi(topology, specs(tools), Vec::new(), settings)
}

/// Builds `classic` with `agent.orchestratorTools = "none"`.
pub(crate) fn classic_without_direct_tools(tools: &[&str]) -> Tree {
    try_tree(&built_in("classic"), tools, &no_orchestrator_tools()).unwrap()
}

pub(crate) fn no_orchestrator_tools() -> TreeSettings {
    TreeSettings {
        orchestrator_tools: Some(OrchestratorTools::None),
        ..TreeSettings::default()
    }
}

pub(crate) fn with_rounds(rounds: u32) -> TreeSettings {
    TreeSettings {
        rounds,
        ..TreeSettings::default()
    }
}

pub(crate) fn remote(name: &str, description: &str) -> RemoteCard {
    RemoteCard {
        name: AgentName::from(name),
        description: description.to_owned(),
    }
}

/// Two remote agents, in an order that is not alphabetical.
pub(crate) fn remotes() -> Vec<RemoteCard> {
    vec![
        remote("weather-station", "Tells the weather of any town"),
        remote("almanac", "Knows feasts and seasons"),
    ]
}

pub(crate) fn with_remotes(topology: &Topology, tools: &[&str], remotes: Vec<RemoteCard>) -> Tree {
    Tree::multi(topology, specs(tools), remotes, &TreeSettings::default()).unwrap()
}

/// Returns the names of the sub-agents, in order.
pub(crate) fn names(tree: &Tree) -> Vec<&str> {
    tree.agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect()
}

/// Returns the names of an agent's tools, in order.
pub(crate) fn tools_of<'a>(tree: &'a Tree, agent: &str) -> Vec<&'a str> {
    let agent = tree
        .agent(agent)
        .unwrap_or_else(|| panic!("there is no agent `{agent}`"));
    agent
        .tools
        .iter()
        .map(|tool| tool.spec.name.as_str())
        .collect()
}

/// Returns trees of all topologies with many tool sets, with and without remote agents, each with a description.
pub(crate) fn every_tree() -> Vec<(String, Tree)> {
    let everything = [ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat();
    let own_tools = [everything.as_slice(), &["plant_water", "soil_probe"]].concat();
    let mut sets: Vec<Vec<&str>> = vec![
        vec![],
        everything,
        own_tools,
        ALL_TOOLS.to_vec(),
        UNKNOWN_TOOLS.to_vec(),
        vec!["exec_shell", "search_web"],
        vec!["fs_read", "fs_list", "weather_get"],
        vec!["browser_navigate", "secrets_get"],
    ];
    sets.extend(ALL_TOOLS.iter().map(|tool| vec![*tool]));
    let mut trees = Vec::new();
    for set in &sets {
        for topology in [
            built_in("specialists"),
            built_in("classic"),
            custom_topology(),
        ] {
            for settings in [TreeSettings::default(), no_orchestrator_tools()] {
                for remotes in [Vec::new(), remotes()] {
                    let name = format!(
                        "{} over {set:?}, {settings:?}, remotes {remotes:?}",
                        topology.name
                    );
                    trees.push((
                        name,
                        Tree::multi(&topology, specs(set), remotes, &settings).unwrap(),
                    ));
                }
            }
        }
    }
    for topology in [
        built_in("specialists"),
        built_in("classic"),
        custom_topology(),
    ] {
        for spec in &topology.agents {
            let tools = [SERVER_TOOLS.as_slice(), &ALL_TOOLS].concat();
            let settings = with_server_tools(spec.name.as_str());
            let tree = Tree::multi(&topology, specs(&tools), remotes(), &settings).unwrap();
            let name = format!("{} with a server's tools for {}", topology.name, spec.name);
            trees.push((name, tree));
        }
    }
    trees
}

/// Settings that assign the tools of a server to this agent.
pub(crate) fn with_server_tools(agent: &str) -> TreeSettings {
    let home = ToolAssignment {
        agent: AgentName::from(agent),
        capability: "issue tracking".into(),
    };
    let assignments = SERVER_TOOLS.map(|tool| (ToolName::from(tool), home.clone()));
    TreeSettings {
        tool_assignments: assignments.into(),
        ..TreeSettings::default()
    }
}

/// A turn whose steps the test performs one by one.
pub(crate) struct ManualTurn {
    pub turn: Turn,
    pub events: Vec<Event>,
}

impl ManualTurn {
    pub(crate) fn begin(tree: &Arc<Tree>, question: &str) -> Self {
        let start = TurnStart {
            session: SessionId::from("s_1"),
            turn: TurnId::from("t_1"),
            first_seq: 1,
            history: Arc::default(),
            rules: Arc::default(),
            mode: ModeSwitch::default(),
        };
        let settings = TurnSettings {
            limits: Limits::default(),
            model: "test/scripted".into(),
            topology: Arc::clone(&tree.digest),
            ..TurnSettings::default()
        };
        let (turn, events) = Turn::begin(
            Arc::clone(tree),
            start,
            question.into(),
            settings,
            Timestamp(1),
        );
        Self { turn, events }
    }

    /// Returns the only model step that is ready.
    pub(crate) fn model_step(&self) -> ModelStep {
        match self.turn.ready().as_slice() {
            [TurnStep::CallModel(step)] => step.clone(),
            other => panic!("one model call was expected: {other:?}"),
        }
    }

    /// Returns the request of the ready model step.
    pub(crate) fn request(&self) -> ModelRequest {
        self.turn.request(&self.model_step())
    }

    /// Passes a reply to the ready model step.
    pub(crate) fn reply(&mut self, reply: ModelReply) {
        let step = self.model_step();
        let model = "test/scripted".into();
        let inspections = Vec::new();
        self.accept(TurnInput::ModelReplied {
            step,
            reply,
            model,
            inspections,
        });
    }

    pub(crate) fn accept(&mut self, input: TurnInput) {
        self.events.extend(self.turn.accept(input, Timestamp(2)));
    }
}

/// Returns the first request of the root's model.
pub(crate) fn first_request(tree: Tree) -> ModelRequest {
    ManualTurn::begin(&Arc::new(tree), "hello").request()
}

/// Returns the root's instruction as its model sees it.
pub(crate) fn root_instruction(tree: Tree) -> String {
    let expected = Arc::clone(&tree.root.instruction);
    let request = first_request(tree);
    assert_eq!(request.instruction, expected);
    request.instruction.to_string()
}

/// Returns the names that `delegate` accepts in a request, if it is offered.
pub(crate) fn delegate_names(request: &ModelRequest) -> Option<Vec<String>> {
    let delegate = request
        .functions
        .iter()
        .find(|function| &*function.name == "delegate")?;
    let names = delegate.parameters["properties"]["agent"]["enum"].as_array()?;
    Some(
        names
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect(),
    )
}

/// Counts a phrase as whole words, ignoring case.
pub(crate) fn occurrences(text: &str, phrase: &str) -> usize {
    let (text, phrase) = (text.to_lowercase(), phrase.to_lowercase());
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |start: usize| {
        let (before, after) = (&text[..start], &text[start + phrase.len()..]);
        !before.ends_with(in_word) && !after.starts_with(in_word)
    };
    text.match_indices(&phrase)
        .filter(|(start, _)| whole(*start))
        .count()
}

/// Returns the lines below a heading `## …`, up to the next one.
pub(crate) fn section<'a>(instruction: &'a str, heading: &str) -> Option<&'a str> {
    let start = instruction.find(&format!("## {heading}\n"))?;
    let body = &instruction[start + heading.len() + 4..];
    Some(body.split("\n## ").next().unwrap_or(body))
}

/// Returns an agent's lines in the routing table.
pub(crate) fn entry<'a>(instruction: &'a str, agent: &str) -> Option<&'a str> {
    let table = section(instruction, "Routing table")?;
    let mut entries = table.split("### ").skip(1);
    entries.find(|entry| entry.lines().next() == Some(agent))
}

#[test]
fn occurrences_are_whole_words_in_any_case() {
    assert_eq!(
        occurrences("Exec, exec. execute fs_exec exec-x EXEC", "exec"),
        4
    );
    assert_eq!(
        occurrences("the fs_read tool, my_fs_read, fs_reader", "fs_read"),
        1
    );
    assert_eq!(occurrences("nothing here", "exec"), 0);
}
