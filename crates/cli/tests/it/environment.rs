//! The date and machine in the requests of agents, and the settings of their models, through the real binary.

use crate::lango::{Lango, text};
use crate::models::{Provider, flags};
use lango_testkit::model::{delegate_and_finish, say};
use serde_json::{Value, json};

/// Runs a question in a time zone whose offset is not a full hour.
fn ask(lango: &Lango, flags: &[String], more: &[&str]) -> String {
    let mut command = lango.command(&["run"]);
    command.args(flags).args(more).env("TZ", "XYZ-05:30");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn messages(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn date_system_and_folder_follow_the_question_and_are_not_repeated_in_later_turns() {
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "look"),
        say("Nothing."),
        say("Bye."),
    ]);
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    let summary: Value =
        serde_json::from_str(&ask(&lango, &flags, &["--json", "what is here?"])).unwrap();
    let session = text(&summary["session"]);
    ask(&lango, &flags, &["--session", session, "bye"]);
    let requests = provider.server.requests();
    let sent: Vec<Vec<String>> = requests
        .iter()
        .map(|request| messages(&request.body))
        .collect();
    let folder = lango.workspace().canonicalize().unwrap();
    let machine = format!(
        " (UTC+05:30)\nSystem: Linux\nWorking folder: {}\n",
        folder.display()
    );
    let [instruction, question] = &sent[0][..] else {
        panic!("{sent:?}");
    };
    let environment = question
        .strip_prefix("what is here?\n\n<environment>\nDate: ")
        .unwrap();
    assert!(environment.contains(&machine), "{question}");
    let date = environment.split(' ').nth(1).unwrap();
    let stored = lango.events(session)[0]["settings"]["environment"].clone();
    assert!(text(&stored["date"]).ends_with(date), "{stored}");
    assert_eq!(
        (&stored["utc_offset"], &stored["os"]),
        (&json!("UTC+05:30"), &json!("Linux"))
    );
    assert!(!instruction.contains(date));
    let brief = &sent[1][1];
    assert!(
        brief.contains("\n## Environment\nDate: ") && brief.ends_with("\n\n## Task\nlook"),
        "{brief}"
    );
    // The next turn starts with the same bytes, and has the date only once, after its own question.
    assert_eq!(sent[2][0], *instruction);
    assert_eq!(sent[2][1], "what is here?");
    let last = sent[2].last().unwrap();
    assert!(last.starts_with("bye\n\n<environment>\nDate: "), "{last}");
    let earlier = &sent[2][..sent[2].len() - 1];
    assert!(earlier.iter().all(|text| !text.contains("<environment>")));
}

#[test]
fn the_offline_rules_read_only_the_text_of_the_user() {
    let lango = Lango::new();
    let answer = lango.run(&["run", "--quiet", "hello"]).ok().stdout;
    assert!(!answer.contains("environment"), "{answer}");
    lango.file("notes.txt", "x");
    let files = lango.run(&["run", "--quiet", "what files are here?"]).ok();
    assert!(files.stdout.contains("notes.txt"), "{files:?}");
}

#[test]
fn model_settings_of_an_agent_override_the_general_ones_and_are_shown_and_stored() {
    let lango = Lango::new();
    lango.home_file(
        "agents/poet.md",
        "---\ndescription: Writes verse\ntemperature: 1.5\n---\nRhyme.\n",
    );
    let general = [
        "-c",
        "agent.temperature=0.2",
        "-c",
        "agent.reasoningEffort=low",
        "-c",
        "agent.maxOutputTokens=500",
    ];
    let agents = |more: &[&str]| {
        let arguments: Vec<&str> = general.iter().chain(more).copied().collect();
        lango.run(&arguments).ok()
    };
    let tree = agents(&["agents", "--json"]).json();
    let all = json!({ "temperature": 0.2, "reasoningEffort": "low", "maxOutputTokens": 500 });
    let own = json!({ "temperature": 1.5, "reasoningEffort": "low", "maxOutputTokens": 500 });
    assert_eq!(tree["root"]["settings"], all);
    let named = |name: &str| {
        let mut agents = tree["agents"].as_array().unwrap().iter();
        agents.find(|agent| agent["name"] == name).unwrap()["settings"].clone()
    };
    assert_eq!(
        (named("poet"), named("planner")),
        (own.clone(), all.clone())
    );
    let shown = agents(&["agents"]).stdout;
    let line = "settings: temperature 1.5, reasoning effort low, at most 500 output tokens";
    assert!(shown.contains(line), "{shown}");
    let plain = lango.run(&["agents"]).ok().stdout;
    assert_eq!(plain.matches("settings:").count(), 1, "{plain}");

    let events = agents(&["run", "--jsonl", "hello"]).json_lines();
    let stored = &events[0]["settings"];
    assert_eq!(stored["model_settings"], all);
    assert_eq!(stored["agent_model_settings"], json!({ "poet": own }));
    for (flag, expected) in [
        ("agent.temperature=2.5", "a number from 0 to 2"),
        ("agent.temperature=warm", "a number from 0 to 2"),
        (
            "agent.maxOutputTokens=0",
            "a whole number from 1 to 1000000",
        ),
        (
            "agent.reasoningEffort=huge",
            "`none`, `minimal`, `low`, `medium` or `high`",
        ),
    ] {
        lango
            .run(&["-c", flag, "run", "hello"])
            .refused(2, &[expected]);
    }
}

#[test]
fn an_untrusted_project_can_lower_the_output_limit_and_set_nothing_else() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "[agent]\nmaxOutputTokens = 1000\n");
    let settings = || lango.run(&["agents", "--json"]).ok().json()["root"]["settings"].clone();
    lango.file(
        "lango.toml",
        "[agent]\ntemperature = 2.0\nreasoningEffort = 'none'\nmaxOutputTokens = 2000\n",
    );
    assert_eq!(settings(), json!({ "maxOutputTokens": 1000 }));
    lango.file("lango.toml", "[agent]\nmaxOutputTokens = 200\n");
    assert_eq!(settings(), json!({ "maxOutputTokens": 200 }));
}
