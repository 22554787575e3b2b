//! `lango agents`: the tree as text and JSON, other tool lists, and the instructions.

use crate::lango::{Lango, RunResult, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SIX: &str = r#"[
    "exec_shell", {"name": "fs_read", "description": "Reads a file"},
    "browser_navigate", "crypto_sign", "secrets_get", "payment_send",
    "search_web", "memory_store", {"name": "teleport"}
]"#;

const TOOLS: &str = "fs_list, fs_read, fs_stat, fs_write, fs_edit, fs_mkdir, fs_delete, fs_search, exec, exec_bg, exec_status, exec_stop";

fn tree(lango: &Lango, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["agents", "--json"]].concat();
    lango.run(&arguments).ok().json()
}

fn names(agents: &Value) -> Vec<&str> {
    let agents = agents.as_array().unwrap().iter();
    agents.map(|agent| text(&agent["name"])).collect()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(|k| &**k).collect()
}

fn with_tools(lango: &Lango, list: impl AsRef<[u8]>) -> RunResult {
    lango.file("tools.json", list);
    lango.run(&["agents", "--json", "--tools", "tools.json"])
}

#[track_caller]
fn assert_keys(tree: &Value) {
    let all = [
        "absent_tools",
        "agents",
        "mode",
        "root",
        "skipped",
        "topology",
        "unheard_files",
        "unmatched",
        "unused_files",
    ];
    assert_eq!(keys(tree), BTreeSet::from(all));
    let of_root = ["name", "settings", "tools"];
    assert_eq!(keys(&tree["root"]), BTreeSet::from(of_root));
    for agent in tree["agents"].as_array().unwrap() {
        let all = [
            "capabilities",
            "description",
            "model",
            "name",
            "remote",
            "settings",
            "source",
            "tools",
        ];
        assert_eq!(keys(agent), BTreeSet::from(all));
    }
    for skipped in tree["skipped"].as_array().unwrap() {
        assert_eq!(keys(skipped), BTreeSet::from(["name", "reason"]));
    }
}

#[test]
fn the_specialists_are_those_with_tools_and_the_planner() {
    let tree = tree(&Lango::new(), &[]);
    assert_keys(&tree);
    assert_eq!(tree["mode"], "multi");
    assert_eq!(tree["topology"], "specialists");
    let root = json!({ "name": "lango-orchestrator", "tools": [], "settings": {} });
    assert_eq!(tree["root"], root);
    let agents = ["operator", "vault", "librarian", "planner", "chronicler"];
    assert_eq!(names(&tree["agents"]), agents);
    let operator = &tree["agents"][0];
    assert_eq!(
        operator["tools"],
        json!(TOOLS.split(", ").collect::<Vec<_>>())
    );
    let capabilities = json!(["command execution", "file operations"]);
    assert_eq!(operator["capabilities"], capabilities);
    let absent = text(&tree["absent_tools"]);
    let reasons = [
        "browser_* (`browser.enabled` is false;",
        "; search_web needs a search service",
    ];
    assert!(
        reasons.iter().all(|reason| absent.contains(reason)),
        "{absent}"
    );
    assert!(!absent.contains("exec"), "{absent}");
    assert_eq!(operator["remote"], false);
    assert_eq!(names(&tree["skipped"]), ["navigator"]);
    assert_eq!(tree["skipped"][0]["reason"], "no tools");
    assert_eq!(tree["unmatched"], json!([]));
}

#[test]
fn the_classic_orchestrator_has_the_tools_too() {
    let tree = tree(&Lango::new(), &["-c", "agent.topology=classic"]);
    assert_keys(&tree);
    assert_eq!(tree["topology"], "classic");
    let agents = ["executor", "researcher", "planner", "memory-manager"];
    assert_eq!(names(&tree["agents"]), agents);
    assert_eq!(names(&tree["skipped"]), [""; 0]);
    let tool_count = |agent: &Value| agent["tools"].as_array().unwrap().len();
    let all: usize = tree["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(tool_count)
        .sum();
    assert_eq!((tool_count(&tree["root"]), all > 12), (all, true));
}

#[test]
fn a_single_agent_has_all_tools() {
    let tree = tree(&Lango::new(), &["-c", "agent.multiAgent=false"]);
    assert_keys(&tree);
    assert_eq!(tree["mode"], "single");
    assert_eq!(tree["root"]["name"], "lango-agent");
    let all = tree["root"]["tools"].as_array().unwrap();
    assert!(all.contains(&json!("exec")) && all.contains(&json!("graph_query")));
    assert_eq!(tree["agents"], json!([]));
}

#[test]
fn a_list_of_names_and_objects_shows_the_tree_for_other_tools() {
    let tree = with_tools(&Lango::new(), SIX).ok().json();
    assert_keys(&tree);
    let six = [
        "operator",
        "navigator",
        "vault",
        "librarian",
        "planner",
        "chronicler",
    ];
    assert_eq!(names(&tree["agents"]), six);
    assert_eq!(tree["agents"][0]["tools"], json!(["exec_shell", "fs_read"]));
    let vault = text(&tree["agents"][2]["description"]);
    let abilities = "cryptography, secret management, blockchain payments (USDC on Base)";
    assert!(vault.contains(abilities), "{vault}");
    assert_eq!(tree["skipped"], json!([]));
    assert_eq!(tree["unmatched"], json!(["teleport"]));
}

#[test]
fn a_tool_list_can_come_from_standard_input() {
    let ran = Lango::new().piped(&["agents", "--json", "--tools", "-"], r#"["memory_x"]"#);
    assert_eq!(names(&ran.ok().json()["agents"]), ["planner", "chronicler"]);
}

#[test]
fn the_text_shows_the_tree_the_missing_agents_and_the_unmatched_tools() {
    let lango = Lango::new();
    let shown = lango.run(&["agents"]).ok().stdout;
    let expected = format!(
        "\
lango-orchestrator (specialists topology)
├─ operator  Works on this machine with shell commands, files and skills. Can do: command execution, file operations.
│    tools: {TOOLS}
│    from: built-in
├─ vault  "
    );
    assert!(shown.starts_with(&expected), "{shown}");
    let missing = "unavailable: navigator (no tools)\nunavailable tools: browser_* (`browser.enabled` is false";
    assert!(shown.contains(missing), "{shown}");
    lango.file("tools.json", SIX);
    let shown = lango.run(&["agents", "--tools", "tools.json"]).ok().stdout;
    assert!(shown.contains("├─ navigator  "), "{shown}");
    let unmatched = "not assigned to any agent, so they cannot run: teleport\n";
    assert!(shown.contains(unmatched), "{shown}");
}

#[test]
fn every_agent_has_an_instruction_and_the_root_too() {
    let lango = Lango::new();
    lango.file("tools.json", SIX);
    for key in [
        "agent.topology=specialists",
        "agent.topology=classic",
        "agent.multiAgent=false",
    ] {
        let tools = ["-c", key, "agents", "--tools", "tools.json"];
        let run = |more: &[&str]| lango.run(&[&tools[..], more].concat()).ok();
        let tree = run(&["--json"]).json();
        let agents = names(&tree["agents"]);
        for name in [&agents[..], &[text(&tree["root"]["name"])]].concat() {
            let instruction = run(&["--instruction", name]).stdout;
            assert!(
                instruction.starts_with(&format!("You are {name}")),
                "{instruction}"
            );
        }
        if agents.is_empty() {
            continue;
        }
        let root = run(&["--instruction", text(&tree["root"]["name"])]).stdout;
        assert!(root.contains("NEVER invent or abbreviate agent names"));
        for agent in agents {
            assert!(root.contains(agent), "{agent} is not in {root}");
        }
    }
}

#[test]
fn the_instruction_of_an_unknown_agent_is_refused_with_the_valid_names() {
    let ran = Lango::new().run(&["agents", "--instruction", "navigator"]);
    let names = [
        "`navigator`",
        "lango-orchestrator, operator, vault, librarian, planner, chronicler",
    ];
    ran.refused(2, &names);
}

#[test]
fn an_invalid_tool_list_is_refused_with_its_name_and_the_reason() {
    let lango = Lango::new();
    for (list, reason) in [
        ("[\n\"fs_read\",", "line 2"),
        ("", "EOF"),
        (r#"{"name": "fs_read"}"#, "expected a sequence"),
        (
            "[1]",
            "an entry is neither a name nor an object with a `name`",
        ),
        (
            r#"[{"title": "x"}]"#,
            "an entry is neither a name nor an object",
        ),
        (r#"["fs_read", "fs_read"]"#, "two tools named `fs_read`"),
        (r#"["delegate"]"#, "cannot be named `delegate`"),
        (r#"["two words"]"#, "cannot be named `two words`"),
        (r#"[""]"#, "cannot be named ``"),
    ] {
        let ran = with_tools(&lango, list);
        ran.refused(2, &["`tools.json`", reason, "a JSON list such as"]);
    }
    with_tools(&lango, b"[\"\xff\"]").refused(2, &["`tools.json`", "byte is number 3"]);
    for (file, reason) in [
        ("nowhere.json", "No such file"),
        ("src", "Is a directory"),
        ("/dev/zero", "larger than 1024 KiB"),
    ] {
        let ran = lango.run(&["agents", "--tools", file]);
        ran.refused(2, &[&format!("`{file}`"), reason]);
    }
}

#[test]
fn no_control_character_of_a_tool_list_or_topology_reaches_the_terminal() {
    let lango = Lango::new();
    let ran = with_tools(&lango, r#"["fs_\u001b[2J"]"#);
    let ran = ran.refused(2, &["fs_␛[2J"]);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:#?}");
    let topology = r#"
name = "own"
root = "boss"
orchestrator_tools = "none"
match_order = ["clerk"]
[[agents]]
name = "clerk"
role = "Keeps \u001B]0;files"
prefixes = [{ prefix = "fs_", capability = "x" }]
keywords = ["file"]
accepts = "x"
returns = "x"
cannot = "x"
"#;
    lango.file("own.toml", topology);
    let ran = lango.run(&["-c", "agent.topology=own.toml", "agents"]);
    assert!(
        !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
        "{ran:#?}"
    );
}
