//! Keys of the configuration through the real binary: setting a key changes the behaviour.

use crate::lango::{Lango, RunResult, field_values, of_type, text};
use crate::run::counts;
use serde_json::{Value, json};

const LIST: &str = "what files are here?";

/// Runs `lango run --json` with these keys.
fn run(lango: &Lango, keys: &[&str], question: &str) -> RunResult {
    let flags = keys.iter().flat_map(|key| ["-c", key]);
    let arguments: Vec<&str> = flags.chain(["run", "--json", question]).collect();
    lango.run(&arguments)
}

fn instruction(lango: &Lango, key: &str) -> String {
    let arguments = ["-c", key, "agents", "--instruction", "lango-orchestrator"];
    lango.run(&arguments).ok().stdout
}

/// A topology with one agent and a root with another name.
const TEAM: &str = r#"
name = "team"
root = "boss"
orchestrator_tools = "none"
match_order = ["clerk"]

[[agents]]
name = "clerk"
role = "Keeps the files"
prefixes = [{ prefix = "fs_", capability = "file operations" }]
keywords = ["file", "files"]
accepts = "a question about files"
returns = "what the files say"
cannot = "anything else"
"#;

#[test]
fn with_multi_agent_false_a_single_agent_calls_its_tools_itself() {
    let lango = Lango::new();
    let summary = run(&lango, &["agent.multiAgent=false"], LIST).ok().json();
    assert_eq!(summary["author"], "lango-agent");
    assert_eq!(counts(&summary), (2, 1, 0));
    let events = lango.events(text(&summary["session"]));
    let mut authors = field_values(&events, "author");
    authors.dedup();
    assert_eq!(authors, ["user", "lango-agent"]);
    assert!(of_type(&events, "agent.delegated").is_empty());
}

#[test]
fn the_classic_orchestrator_makes_one_simple_call_itself() {
    let lango = Lango::new();
    let summary = run(&lango, &["agent.topology=classic"], LIST).ok().json();
    assert_eq!(summary["author"], "lango-orchestrator");
    assert_eq!(counts(&summary), (2, 1, 0));
    let events = lango.events(text(&summary["session"]));
    let called = of_type(&events, "tool.called");
    assert_eq!(called[0]["author"], "lango-orchestrator");
    assert!(of_type(&events, "agent.delegated").is_empty());
}

#[test]
fn a_classic_orchestrator_without_tools_delegates() {
    let keys = ["agent.topology=classic", "agent.orchestratorTools=none"];
    let summary = run(&Lango::new(), &keys, LIST).ok().json();
    assert_eq!(summary["author"], "executor");
    assert_eq!(counts(&summary), (3, 1, 1));
}

#[test]
fn orchestrator_tools_all_is_valid_only_with_classic() {
    let lango = Lango::new();
    let keys = ["agent.orchestratorTools=all", "agent.topology=classic"];
    assert_eq!(counts(&run(&lango, &keys, LIST).ok().json()).2, 0);
    let arguments = ["-c", "agent.orchestratorTools=all", "run", "hello"];
    lango.run(&arguments).refused(
        3,
        &[
            "`specialists`",
            "agent.orchestratorTools",
            "agent.topology=classic",
        ],
    );
}

#[test]
fn a_topology_is_found_by_its_path_or_by_its_name_in_the_agents_folder() {
    let lango = Lango::new();
    lango.home_file("agents/team.toml", TEAM);
    lango.file("here.toml", TEAM);
    lango.file("crew/other.toml", TEAM);
    let absolute = format!("agent.topology={}/here.toml", lango.workspace().display());
    for keys in [
        &["agent.topology=team"][..],
        &["agent.topology=./here.toml"],
        &[&absolute],
        &["agent.topology=other", "agent.agentsDir=crew"],
    ] {
        let summary = run(&lango, keys, LIST).ok().json();
        assert_eq!(summary["author"], "clerk", "{keys:?}");
        let events = lango.events(text(&summary["session"]));
        assert_eq!(events.last().unwrap()["author"], "boss");
    }
}

#[test]
fn an_unknown_topology_is_refused_with_the_valid_ones_and_the_searched_folder() {
    let lango = Lango::new();
    let arguments = ["-c", "agent.topology=nix", "run", "hello"];
    let folder = lango.home().join("agents");
    let names = ["`nix`", "specialists, classic", folder.to_str().unwrap()];
    lango.run(&arguments).refused(3, &names);
    lango.home_file("agents/team.toml", TEAM);
    lango.run(&arguments).refused(3, &["(it has team)"]);
}

#[test]
fn an_invalid_topology_file_is_refused_with_its_path_and_the_reason() {
    let lango = Lango::new();
    lango.file("broken.toml", "name = \"x\"\nroot = = \"y\"\n");
    lango.file("binary.toml", b"name = \"\xff\"");
    for (file, reason) in [
        ("missing.toml", "No such file"),
        ("broken.toml", "line 2"),
        ("binary.toml", "byte is number 9"),
        ("/dev/zero", "larger than 1024 KiB"),
        (
            "src/",
            "a file NAME.md for each of its agents, but there is none",
        ),
    ] {
        let key = format!("agent.topology={file}");
        let ran = lango.run(&["-c", &key, "run", "hello"]);
        ran.refused(3, &[file.trim_end_matches('/'), reason]);
    }
}

#[test]
fn an_unknown_model_is_refused_with_the_known_ones() {
    let lango = Lango::new();
    let ran = lango.run(&["-c", "agent.model=acme/x", "run", "hello"]);
    ran.refused(
        3,
        &["`acme`", "offline/rules", "lango setup --provider acme"],
    );
    for model in ["agent.model=offline/rules", "agent.model=offline"] {
        assert_eq!(
            run(&lango, &[model], "hello").ok().json()["model"],
            "offline/rules"
        );
    }
}

#[test]
fn the_delegation_limit_is_in_the_instruction_and_zero_means_three() {
    let lango = Lango::new();
    let says = |key, rounds: u32| {
        let text = instruction(&lango, key);
        let line = format!("At most {rounds} delegation rounds");
        assert!(text.contains(&line), "{key}: {text}");
        let summary = run(&lango, &[key], "hello").ok().json();
        let events = lango.events(text_of(&summary));
        assert_eq!(events[0]["settings"]["limits"]["rounds"], rounds, "{key}");
    };
    says("agent.maxDelegationRounds=5", 5);
    says("agent.maxDelegationRounds=0", 3);
    says("agent.multiAgent=true", 3);
}

fn text_of(summary: &Value) -> &str {
    text(&summary["session"])
}

#[test]
fn a_budget_of_zero_model_calls_calls_no_model_and_says_so() {
    let lango = Lango::new();
    let summary = run(&lango, &["agent.maxModelCalls=0"], LIST)
        .exits(5)
        .json();
    assert_eq!(summary["outcome"], "limited");
    assert_eq!(summary["limit"], "model_calls");
    assert_eq!(counts(&summary), (0, 0, 0));
    let answer = text(&summary["answer"]);
    assert!(answer.contains("agent.maxModelCalls is 0"), "{answer}");
    let ran = lango.run(&["-c", "agent.maxModelCalls=0", "run", LIST]);
    let ran = ran.exits(5);
    assert!(ran.stderr.contains("raise it with -c agent.maxModelCalls="));
}

#[test]
fn the_last_model_call_of_a_budget_is_for_the_answer() {
    let lango = Lango::new();
    let one = run(&lango, &["agent.maxModelCalls=1"], LIST).ok().json();
    assert_eq!(one["outcome"], "answered");
    assert_eq!(one["limit"], "model_calls");
    assert_eq!(counts(&one), (1, 0, 0));
    let two = run(&lango, &["agent.maxModelCalls=2"], LIST).ok().json();
    assert_eq!(two["limit"], "model_calls");
    assert_eq!(counts(&two), (2, 0, 1));
    for summary in [&one, &two] {
        assert!(text(&summary["answer"]).contains("limit"), "{summary}");
    }
    assert_eq!(
        counts(&run(&lango, &["agent.maxModelCalls=3"], LIST).ok().json()),
        (3, 1, 1)
    );
}

#[test]
fn a_budget_of_zero_tool_calls_runs_no_tool() {
    let lango = Lango::new();
    let summary = run(&lango, &["agent.maxToolCalls=0"], LIST).json();
    assert_eq!(summary["tool_calls"], 0);
    let events = lango.events(text_of(&summary));
    assert!(of_type(&events, "tool.called").is_empty());
    assert!(!text(&summary["answer"]).contains("notes.md"));
    let summary = run(&lango, &["agent.maxToolCalls=1"], LIST).ok().json();
    assert_eq!(counts(&summary), (3, 1, 1));
}

#[test]
fn a_turn_ends_at_its_timeout() {
    let lango = Lango::new();
    // The tool has so much to read that it is still running at the timeout.
    lango.create_many_files();
    let question = "list the files in many/";
    let ran = run(&lango, &["agent.turnTimeout=2ms"], question);
    let summary = ran.exits(5).json();
    assert_eq!(summary["outcome"], "limited");
    assert_eq!(summary["limit"], "time");
    let answer = text(&summary["answer"]);
    assert!(answer.contains("agent.turnTimeout"), "{answer}");
    assert_eq!(
        lango.events(text_of(&summary))[0]["settings"]["limits"]["turn_ms"],
        2
    );
}

#[test]
fn a_tool_that_takes_too_long_is_cancelled() {
    let lango = Lango::new();
    lango.create_many_files();
    let summary = run(
        &lango,
        &["agent.toolTimeout=1ms"],
        "list the files in many/",
    );
    let summary = summary.ok().json();
    let events = lango.events(text_of(&summary));
    let returned = of_type(&events, "tool.returned");
    assert_eq!(returned[0]["status"], "error");
    assert_eq!(
        returned[0]["output"],
        "stopped after 0.001 s: it gave no result"
    );
    let answer = text(&summary["answer"]);
    assert!(answer.contains("gave no result"), "{answer}");
}

#[test]
fn strict_tools_refuses_an_unmatched_tool() {
    let lango = Lango::new();
    lango.file("tools.json", r#"["fs_read", "teleport", "dance"]"#);
    let arguments = ["agents", "--tools", "tools.json"];
    lango.run(&arguments).ok();
    let strict = [&["-c", "agent.strictTools=true"][..], &arguments].concat();
    let names = ["`teleport`", "`dance`", "agent.strictTools"];
    lango.run(&strict).refused(3, &names);
}

#[test]
fn sessions_are_stored_where_session_store_says() {
    let lango = Lango::new();
    let key = "session.store=sqlite:data/mine.db";
    let summary = run(&lango, &[key], "hello").ok().json();
    assert!(lango.workspace().join("data/mine.db").is_file());
    assert!(!lango.database().exists());
    let listed = lango.run(&["-c", key, "sessions", "list", "--json"]);
    assert_eq!(listed.ok().json()[0]["id"], summary["session"]);
    let elsewhere = lango.run(&["sessions", "list", "--json"]);
    assert_eq!(elsewhere.ok().json(), json!([]));
}

#[test]
fn a_flag_wins_over_a_variable_and_a_variable_over_files() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "agent.maxToolCalls = 9\n");
    lango.file(
        "lango.toml",
        "[agent]\nmaxModelCalls = 2\nmaxToolCalls = 2\n",
    );
    let shown = |arguments: &[&str]| {
        let mut command = lango.command(arguments);
        command.env("LANGO_AGENT_MAX_TOOL_CALLS", "3");
        let shown = crate::lango::finish(&mut command, b"").ok().json();
        let value = |key: &str| shown[key]["value"].as_u64().unwrap();
        (value("agent.maxModelCalls"), value("agent.maxToolCalls"))
    };
    assert_eq!(shown(&["config", "show", "--json"]), (2, 3));
    let flag = ["-c", "agent.maxToolCalls=4", "config", "show", "--json"];
    assert_eq!(shown(&flag), (2, 4));
}
