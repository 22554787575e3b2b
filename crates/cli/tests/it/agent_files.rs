//! Agents as markdown files, through the real binary: which agents exist and which are called.

use crate::lango::{Lango, finish, of_type, text};
use crate::models::{Provider, flags, run};
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate, delegate_and_finish, say};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A new agent, which gets some of the librarian's tools.
const RESEARCHER: &str = "\
---
description: Looks things up in what is known
prefixes:
  - search_
  - { prefix: rag_, capability: reading documents }
keywords: [research]
---
Name every source.
";

/// An agent that replaces a built-in one.
const OPERATOR: &str = "\
---
name: operator
description: Only reads files.
prefixes: [fs_read, fs_list]
accepts: the name of a file
---
";

/// An agent without tools, with its own model.
pub(crate) const POET: &str = "\
---
description: Writes verse
always_include: true
model: muse/small
---
Rhyme, whatever happens.
";

pub(crate) fn with_agent_files() -> Lango {
    let lango = Lango::new();
    lango.home_file("agents/researcher.md", RESEARCHER);
    lango.home_file("agents/operator.md", OPERATOR);
    lango.home_file("agents/poet.md", POET);
    lango.home_file("agents/README.md", "About these agents.\n");
    lango
}

pub(crate) fn in_home(lango: &Lango, path: &str) -> PathBuf {
    lango.home().join("agents").join(path)
}

fn agents(lango: &Lango, more: &[&str]) -> Value {
    lango
        .run(&[more, &["agents", "--json"]].concat())
        .ok()
        .json()
}

fn agent<'a>(tree: &'a Value, name: &str) -> &'a Value {
    let mut agents = tree["agents"].as_array().unwrap().iter();
    let found = agents.find(|agent| agent["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {tree:#}"))
}

/// Asserts that a command fails with a configuration error that contains these parts and a next step.
#[track_caller]
pub(crate) fn assert_refused(lango: &Lango, arguments: &[&str], parts: &[&str]) {
    let ran = lango.run(arguments).exits(3);
    for part in parts {
        assert!(ran.stderr.contains(part), "no `{part}` in {ran:#?}");
    }
    assert!(ran.stderr.contains("\n  next: "), "{ran:#?}");
}

fn names(tree: &Value) -> Vec<&str> {
    let agents = tree["agents"].as_array().unwrap().iter();
    agents.map(|agent| text(&agent["name"])).collect()
}

#[test]
fn t15_agent_files_define_agents_with_the_tools_they_name() {
    let lango = with_agent_files();
    let tree = agents(&lango, &[]);
    let expected = [
        "operator",
        "vault",
        "librarian",
        "planner",
        "chronicler",
        "poet",
        "researcher",
    ];
    assert_eq!(names(&tree), expected);
    let searches = json!([
        "search_knowledge",
        "search_learnings",
        "rag_retrieve",
        "search_fetch"
    ]);
    let researcher = agent(&tree, "researcher");
    assert_eq!(researcher["tools"], searches);
    assert_eq!(
        researcher["capabilities"],
        json!(["information search", "reading documents"])
    );
    let left = agent(&tree, "librarian")["tools"].to_string();
    assert!(
        !left.contains("search_") && left.contains("graph_query"),
        "{left}"
    );
    assert_eq!(
        agent(&tree, "operator")["tools"],
        json!(["fs_list", "fs_read"])
    );
    let homeless = tree["unmatched"].as_array().unwrap();
    assert!(
        homeless.contains(&json!("fs_write")) && homeless.contains(&json!("exec")),
        "{tree:#}"
    );
    for (name, file) in [
        ("researcher", "researcher.md"),
        ("operator", "operator.md"),
        ("poet", "poet.md"),
    ] {
        assert_eq!(agent(&tree, name)["source"], json!(in_home(&lango, file)));
    }
    assert_eq!(agent(&tree, "planner")["source"], "built-in");
    assert_eq!(
        (
            &agent(&tree, "poet")["model"],
            &agent(&tree, "planner")["model"]
        ),
        (&json!("muse/small"), &json!(null))
    );

    let shown = lango.run(&["agents"]).ok().stdout;
    let poet = format!(
        "├─ poet  Writes verse.\n│    model: muse/small\n│    from: {}\n",
        in_home(&lango, "poet.md").display()
    );
    assert!(shown.contains(&poet), "{shown}");
    let own = lango.run(&["agents", "--instruction", "poet"]).ok().stdout;
    assert!(
        own.contains("Writes verse.") && own.contains("\nRhyme, whatever happens."),
        "{own}"
    );
    let root = lango
        .run(&["agents", "--instruction", "lango-orchestrator"])
        .ok()
        .stdout;
    assert!(
        root.contains(
            "### researcher\n- role: Looks things up in what is known\n- keywords: research\n"
        ),
        "{root}"
    );
}

/// The script of a turn in which all three agents work.
fn script() -> Vec<ModelReply> {
    vec![
        delegate("researcher", "what is known of tea?"),
        call("search_knowledge", json!({ "query": "tea" })),
        say("Nothing."),
        delegate("operator", "read notes.md"),
        call("fs_read", json!({ "path": "notes.md" })),
        say("Buy bread."),
        delegate_and_finish("poet", "a verse on bread"),
    ]
}

#[test]
fn t17_each_agent_works_with_its_own_model() {
    let lango = with_agent_files();
    let main = Provider::new(script());
    let muse = Provider::new(vec![say("O bread, thou art well-bred.")]);
    let mut flags = flags("openai", main.server.url());
    for flag in [
        "providers.muse.kind=anthropic".to_owned(),
        format!("providers.muse.baseUrl={}", muse.server.url()),
        "providers.muse.contextTokens=9000".to_owned(),
    ] {
        flags.extend(["-c".to_owned(), flag]);
    }
    let summary = run(&lango, &flags, &["--json", "tea, notes, verse"])
        .ok()
        .json();
    assert_eq!(summary["answer"], "O bread, thou art well-bred.");
    assert_eq!(
        (&summary["author"], &summary["model"]),
        (&json!("poet"), &json!("muse/small"))
    );
    let events = lango.events(text(&summary["session"]));
    let delegated: Vec<&str> = of_type(&events, "agent.delegated")
        .iter()
        .map(|e| text(&e["agent"]))
        .collect();
    assert_eq!(delegated, ["researcher", "operator", "poet"]);
    let ran: Vec<(&str, &str)> = of_type(&events, "tool.called")
        .iter()
        .map(|event| (text(&event["author"]), text(&event["tool"])))
        .collect();
    assert_eq!(
        ran,
        [("researcher", "search_knowledge"), ("operator", "fs_read")]
    );
    let poet: Vec<&Value> = of_type(&events, "agent.message")
        .into_iter()
        .filter(|e| e["author"] == "poet")
        .collect();
    assert_eq!(poet[0]["model"], "muse/small");
    let stored = json!({ "poet": { "model": "muse/small", "context_tokens": 9000 } });
    assert_eq!(events[0]["settings"]["models"], stored);
    let asked = muse.server.requests();
    assert_eq!(asked.len(), 1);
    assert!(
        asked[0].body["system"]
            .to_string()
            .contains("Rhyme, whatever happens.")
    );
    assert_eq!(main.server.requests().len(), 7);
}

#[test]
fn agents_dir_moves_the_folder_and_a_single_agent_or_a_custom_topology_ignores_files() {
    let lango = with_agent_files();
    lango.file("crew/poet.md", POET);
    let crew = agents(&lango, &["-c", "agent.agentsDir=crew"]);
    assert_eq!(names(&crew).last(), Some(&"poet"));
    assert_eq!(
        agent(&crew, "poet")["source"],
        json!(lango.workspace().join("crew/poet.md"))
    );
    assert_eq!(agent(&crew, "operator")["source"], "built-in");

    let unused = |flags: &[&str]| {
        let tree = agents(&lango, flags);
        assert_eq!(
            tree["unused_files"].as_array().unwrap().len(),
            3,
            "{tree:#}"
        );
        lango.run(&[flags, &["agents"]].concat()).ok().stdout
    };
    // Even a broken file does not stop a command that does not use it.
    lango.home_file("agents/poet.md", "broken");
    let single = unused(&["-c", "agent.multiAgent=false"]);
    assert!(
        single.contains("not used, because a single agent runs: "),
        "{single}"
    );
    lango.file("own.toml", "name = 'own'\n[[agents]]\nname = 'a'\nrole = 'x'\naccepts = 'x'\nreturns = 'x'\ncannot = 'x'\nalways_include = true\nmodel = 'muse/x'\n");
    let own = ["-c", "agent.topology=own.toml"];
    let shown = unused(&own);
    assert!(
        shown.contains("not used, because the topology own defines its own agents: "),
        "{shown}"
    );
    let place = format!(
        "{}: the model of `a`: there is no provider `muse`",
        lango.workspace().join("own.toml").display()
    );
    assert_refused(&lango, &[&own[..], &["run", "hello"]].concat(), &[&place]);
}

#[test]
fn t19_a_folder_is_a_topology_of_exactly_the_agents_in_it() {
    let lango = with_agent_files();
    lango.file("team/poet.md", POET.replace("model: muse/small\n", ""));
    lango.file(
        "team/clerk.md",
        "---\ndescription: Keeps the files\nprefixes: [fs_]\nkeywords: [file, files]\n---\n",
    );
    let here = ["-c", "agent.topology=./team"];
    let tree = agents(&lango, &here);
    assert_eq!(names(&tree), ["clerk", "poet"]);
    assert_eq!(
        (&tree["topology"], &tree["root"]["name"]),
        (&json!("team"), &json!("lango-orchestrator"))
    );
    assert_eq!(tree["unused_files"].as_array().unwrap().len(), 3);
    lango.file("team/topology.toml", "root = 'boss'\nunmatched = 'poet'\n");
    let arguments = [&here[..], &["run", "--json", "what files are here?"]].concat();
    let summary = lango.run(&arguments).ok().json();
    assert_eq!(summary["author"], "clerk");
    let tree = agents(&lango, &here);
    assert_eq!(
        (&tree["root"]["name"], &tree["unmatched"]),
        (&json!("boss"), &json!([]))
    );
    assert!(
        agent(&tree, "poet")["tools"]
            .to_string()
            .contains("graph_query")
    );

    // By its name in the agents folder.
    lango.home_file("agents/pair/poet.md", POET);
    let tree = agents(&lango, &["-c", "agent.topology=pair"]);
    assert_eq!(names(&tree), ["poet"]);
    for (content, part) in [
        ("rot = 'x'\n", "unknown field `rot`"),
        ("root = 'poet'\n", "the name `poet` is used twice"),
        (
            "unmatched = 'nobody'\n",
            "`nobody` in `match_order` or `unmatched`",
        ),
        ("[[agents]]\n", "unknown field `agents`"),
    ] {
        lango.file("team/topology.toml", content);
        let ran = lango.run(&[&here[..], &["agents"]].concat());
        ran.refused(3, &["team/topology.toml", part]);
    }
    lango.file("team/clerk.md", "");
    let ran = lango.run(&[&here[..], &["agents"]].concat());
    ran.refused(3, &["team/clerk.md:1: it does not start with a `---` line"]);
}

#[test]
fn a_new_agent_file_is_not_overwritten_and_defines_an_agent_immediately() {
    let lango = Lango::new();
    let written = lango.run(&["agents", "new", "poet"]).ok();
    assert_eq!(
        written.stdout,
        format!("{}\n", in_home(&lango, "poet.md").display())
    );
    assert_eq!(names(&agents(&lango, &[])).last(), Some(&"poet"));
    lango
        .run(&["agents", "new", "poet"])
        .refused(2, &["poet.md` cannot be written", "exists"]);
    lango
        .run(&["agents", "new", "a/../b"])
        .refused(2, &["cannot be an agent's name"]);
    lango
        .run(&["agents", "new", "user"])
        .refused(2, &["reserved for the user"]);
    lango
        .run(&["agents", "new", "lango-orchestrator"])
        .refused(2, &["is the name of the orchestrator"]);
    // A new file for a built-in agent describes that agent.
    let before = agents(&lango, &[]);
    lango.run(&["agents", "new", "librarian"]).ok();
    let after = agents(&lango, &[]);
    let without_source = |tree: &Value| {
        let mut librarian = agent(tree, "librarian").clone();
        librarian["source"] = Value::Null;
        librarian
    };
    assert_eq!(without_source(&after), without_source(&before));
    assert_eq!(
        agent(&after, "librarian")["source"],
        json!(in_home(&lango, "librarian.md"))
    );
}

#[test]
fn agents_cannot_change_agent_files() {
    let lango = Lango::new();
    lango.file("crew/poet.md", POET.replace("model: muse/small\n", ""));
    let write = "approval.rules=[{action='allow'}]";
    for flag in ["agent.agentsDir=crew", "agent.topology=./crew"] {
        let provider = Provider::new(vec![
            call(
                "fs_write",
                json!({ "path": "crew/poet.md", "content": "mine" }),
            ),
            say("done"),
        ]);
        let mut flags = flags("openai", provider.server.url());
        let more = ["agent.multiAgent=false", flag, write];
        flags.extend(
            more.iter()
                .flat_map(|flag| ["-c".to_owned(), (*flag).to_owned()]),
        );
        run(&lango, &flags, &["write"]).ok();
        let content = std::fs::read_to_string(lango.workspace().join("crew/poet.md")).unwrap();
        assert!(content.contains("Rhyme"), "{flag}: {content}");
        assert_eq!(provider.server.requests().len(), 2);
    }
    let mut command = lango.command(&["agents"]);
    finish(
        command.env("LANGO_AGENT_AGENTS_DIR", lango.workspace().join("crew")),
        b"",
    )
    .ok();
}
