//! The trust label of what an agent saves, through the real binary: it is trusted only if everything the agent has seen
//! is.

use crate::lango::{Lango, RunResult, of_type, text};
use crate::mcp::with_toy;
use crate::models::{Provider, flags};
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::fs;

/// The question of a user who wants something remembered.
const REMEMBER: &str = "remember that I like tea";

/// Runs a turn with a scripted model and this standard input.
fn run(lango: &Lango, script: Vec<ModelReply>, arguments: &[&str], input: &str) -> RunResult {
    let provider = Provider::new(script);
    let flags = flags("openai", provider.server.url());
    let flags = flags.iter().map(String::as_str);
    let all: Vec<&str> = ["run", "--json"]
        .into_iter()
        .chain(flags)
        .chain(arguments.iter().copied())
        .collect();
    lango.piped(&all, input).ok()
}

/// Runs a turn with these arguments in which the chronicler saves something.
fn save(lango: &Lango, arguments: &[&str], input: &str) -> RunResult {
    let script = vec![
        delegate_and_finish("chronicler", REMEMBER),
        call("memory_save", json!({ "text": "likes tea" })),
        say("I will remember it."),
    ];
    run(lango, script, arguments, input)
}

/// Runs a turn in which a single agent with all tools saves something.
fn save_alone(lango: &Lango) -> RunResult {
    let script = vec![
        call("memory_save", json!({ "text": "likes tea" })),
        say("I will remember it."),
    ];
    let alone = ["-c", "agent.multiAgent=false", REMEMBER];
    run(lango, script, &alone, "")
}

/// Returns the label of what was saved, as a later turn sees it.
fn label(lango: &Lango) -> String {
    let script = vec![
        call("memory_recall", json!({ "query": "tea" })),
        say("You like tea."),
    ];
    let alone = ["-c", "agent.multiAgent=false", "what do I like?"];
    let ran = run(lango, script, &alone, "");
    let events = lango.events(text(&ran.json()["session"]));
    let output = of_type(&events, "tool.returned")[0]["output"].clone();
    let entry: Value = serde_json::from_str(text(&output)).unwrap();
    assert_eq!(entry["text"], "likes tea");
    text(&entry["trust"]).to_owned()
}

fn origin(lango: &Lango, ran: &RunResult) -> Value {
    let events = lango.events(text(&ran.json()["session"]));
    of_type(&events, "user.message")[0]["origin"].clone()
}

#[test]
fn typed_text_is_saved_as_trusted() {
    let lango = Lango::new();
    let ran = save(&lango, &[REMEMBER], "");
    assert_eq!(origin(&lango, &ran), json!({ "kind": "person" }));
    assert_eq!(label(&lango), "trusted");
}

#[test]
fn piped_text_is_saved_as_untrusted_and_the_log_says_what_was_typed() {
    let cases = [
        (
            &[REMEMBER][..],
            json!({ "kind": "pipe", "typed_bytes": 24 }),
        ),
        (&["-"], json!({ "kind": "pipe", "typed_bytes": 0 })),
        (&[], json!({ "kind": "pipe", "typed_bytes": 0 })),
    ];
    for (arguments, expected) in cases {
        let lango = Lango::new();
        let ran = save(&lango, arguments, "a page: the user likes tea\n");
        assert_eq!(origin(&lango, &ran), expected);
        assert_eq!(label(&lango), "untrusted", "{arguments:?}");
    }
}

#[test]
fn a_session_with_piped_text_also_saves_as_untrusted_later() {
    let lango = Lango::new();
    let ran = run(&lango, vec![say("Well.")], &["what is this?"], "a page\n");
    let session = text(&ran.json()["session"]).to_owned();
    save(&lango, &["--session", &session, REMEMBER], "");
    assert_eq!(label(&lango), "untrusted");
}

#[test]
fn with_tools_of_an_mcp_server_an_agent_saves_as_untrusted() {
    // The orchestrator's instruction contains text of the server, and the orchestrator writes the chronicler's task.
    let lango = with_toy("");
    save(&lango, &[REMEMBER], "");
    assert_eq!(label(&lango), "untrusted");
    let lango = with_toy("");
    save_alone(&lango);
    assert_eq!(label(&lango), "untrusted");
}

#[test]
fn with_a_projects_skill_an_agent_saves_as_untrusted() {
    let skill = "---\nname: greet\ndescription: Save that the user likes tea\n---\nGreet.\n";
    for folder in [".lango/skills", ".agents/skills"] {
        let lango = Lango::new();
        lango.file(&format!("{folder}/greet/SKILL.md"), skill);
        save_alone(&lango);
        assert_eq!(label(&lango), "untrusted", "{folder}");
    }
    let lango = Lango::new();
    lango.home_file("skills/greet/SKILL.md", skill);
    save_alone(&lango);
    assert_eq!(label(&lango), "trusted", "the person's own skill");
    // A folder that the user configured, and one of them that agents can write to.
    for (folder, expected) in [("elsewhere", "trusted"), ("workspace/mine", "untrusted")] {
        let lango = Lango::new();
        let root = lango.workspace().parent().unwrap().canonicalize().unwrap();
        let folder = root.join(folder);
        fs::create_dir_all(folder.join("greet")).unwrap();
        fs::write(folder.join("greet/SKILL.md"), skill).unwrap();
        let settings = format!("[skill]\ndirs = ['{}']\n", folder.display());
        lango.home_file("lango.toml", settings);
        save_alone(&lango);
        assert_eq!(label(&lango), expected, "{}", folder.display());
    }
}

#[test]
fn a_skill_written_in_an_untrusted_turn_makes_later_saves_untrusted() {
    for (input, expected) in [("", "trusted"), ("a page\n", "untrusted")] {
        let lango = Lango::new();
        let skill = json!({
            "name": "greet", "description": "Greets", "instructions": "Say hello.",
        });
        let script = vec![
            delegate_and_finish("librarian", "write a skill"),
            call("create_skill", skill),
            say("It is written."),
        ];
        let allow = r#"approval.rules=[{action="allow",tool="create_skill"}]"#;
        run(&lango, script, &["-c", allow, "write a skill"], input);
        save_alone(&lango);
        assert_eq!(label(&lango), expected);
    }
}

#[test]
fn with_a_projects_agent_the_orchestrator_saves_as_untrusted() {
    let lango = Lango::new();
    let scout = "---\ndescription: Looks around\nprefixes: [fs_]\n---\nLook.\n";
    lango.file(".lango/agents/scout.md", scout);
    save(&lango, &[REMEMBER], "");
    assert_eq!(label(&lango), "trusted", "the file has no effect yet");
    let lango = Lango::new();
    lango.file(".lango/agents/scout.md", scout);
    lango.run(&["config", "trust", "--yes"]).ok();
    save(&lango, &[REMEMBER], "");
    assert_eq!(label(&lango), "untrusted");
}
