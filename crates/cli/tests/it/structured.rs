//! `lango run --schema` through the real binary: valid JSON on stdout, or a failure with the location of the problem.

use crate::lango::{Lango, RunResult, of_type};
use crate::models::{Provider, flags, run};
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": { "files": { "type": "array", "items": { "type": "string" } } },
  "required": ["files"]
}"#;

fn ask(replies: Vec<ModelReply>, more: &[&str]) -> (RunResult, Vec<Value>, Lango) {
    let provider = Provider::new(replies);
    let lango = Lango::new();
    lango.file("files.json", SCHEMA);
    let more: Vec<&str> = ["--schema", "files.json", "which files are here?"]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    let ran = run(&lango, &flags("openai", provider.server.url()), &more);
    let requests = provider.server.requests();
    let bodies = requests.iter().map(|request| request.body.clone());
    (ran, bodies.collect(), lango)
}

#[test]
fn stdout_is_exactly_the_json_of_a_valid_answer() {
    let answer = "{\"files\":\n  [\"a_b_c\", \"*d*\"] }";
    for text in [answer.to_owned(), format!("```json\n{answer}\n```")] {
        let (ran, requests, _) = ask(vec![say(&text)], &[]);
        let ran = ran.ok();
        assert_eq!(ran.stdout, format!("{answer}\n"), "as the model wrote it");
        let sent = requests[0].to_string();
        assert!(sent.contains("<answer-schema>"), "{sent}");
    }
}

#[test]
fn the_orchestrator_answers_itself_even_if_it_delegates_with_finish() {
    let replies = vec![
        delegate_and_finish("operator", "list the files"),
        call("fs_list", json!({})),
        say("There is files.json."),
        say(r#"{"files": ["files.json"]}"#),
    ];
    let (ran, requests, _) = ask(replies, &["--json"]);
    let summary = ran.ok().json();
    assert_eq!(summary["author"], "lango-orchestrator");
    assert_eq!(summary["answer"], r#"{"files": ["files.json"]}"#);
    assert_eq!(requests.len(), 4);
    assert!(!requests[0]["tools"].to_string().contains("\"finish\""));
}

#[test]
fn an_invalid_answer_is_retried_once_with_the_location() {
    let replies = vec![say(r#"{"files": [1]}"#), say(r#"{"files": ["a"]}"#)];
    let (ran, requests, _) = ask(replies, &[]);
    assert_eq!(ran.ok().stdout, "{\"files\": [\"a\"]}\n");
    let sent = requests[1].to_string();
    assert!(sent.contains("at `/files/0`: 1 is not of type"), "{sent}");
}

#[test]
fn a_second_invalid_answer_exits_1_with_the_location_and_an_empty_stdout() {
    let replies = || vec![say(r#"{"files": [1]}"#), say("There are none.")];
    let (ran, requests, lango) = ask(replies(), &[]);
    let ran = ran.exits(1);
    assert_eq!(ran.stdout, "");
    let reason = "the answer does not satisfy the schema: it is not one JSON value";
    assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    assert_eq!(requests.len(), 2);
    let sessions = lango.run(&["sessions", "list", "--json"]).ok().json();
    let events = lango.events(sessions[0]["id"].as_str().unwrap());
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(events[0]["settings"]["answer_schema"], schema);
    let end = of_type(&events, "turn.finished")[0];
    assert_eq!(end["outcome"], "failed");

    let (ran, _, _) = ask(replies(), &["--json"]);
    let summary = ran.exits(1).json();
    assert_eq!(summary["outcome"], "failed");
    let error = summary["error"].as_str().unwrap();
    assert!(error.starts_with(reason), "{error}");
}

#[test]
fn events_are_printed_as_usual_and_a_limit_without_an_answer_exits_5() {
    let (ran, _, _) = ask(vec![say(r#"{"files": []}"#)], &["--jsonl"]);
    let events = ran.ok().json_lines();
    assert_eq!(of_type(&events, "turn.finished").len(), 1);
    let (ran, requests, _) = ask(vec![say("{}")], &["-c", "agent.maxModelCalls=0"]);
    let ran = ran.exits(5);
    assert_eq!((ran.stdout.as_str(), requests.len()), ("", 0));
}

#[test]
fn an_invalid_schema_is_a_usage_error_with_the_location_and_no_model_is_called() {
    let large = format!("{{\"title\": \"{}\"}}", "x".repeat(64 * 1024));
    for (content, expected) in [
        ("{\n  \"type\": object\n}", "line 2 column 11"),
        (
            r#"{"properties": {"a": {"type": "text"}}}"#,
            "at `/properties/a/type`",
        ),
        ("[]", "it must be a JSON object"),
        (&large, "larger than 64 KiB"),
        (
            r#"{"$ref": "http://127.0.0.1:9/other.json"}"#,
            "127.0.0.1:9/other.json",
        ),
    ] {
        let lango = Lango::new();
        lango.file("bad.json", content);
        let ran = lango.run(&["run", "--schema", "bad.json", "hello"]);
        ran.refused(2, &["the schema `bad.json` cannot be used", expected]);
        assert!(!lango.database().exists(), "nothing was begun");
    }
    let lango = Lango::new();
    let ran = lango.run(&["run", "--schema", "none.json", "hello"]);
    ran.refused(2, &["`none.json`", "No such file"]);
}

#[test]
fn a_turn_with_a_denied_call_still_answers_by_its_schema() {
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write a file"),
        call("fs_write", json!({ "path": "a.txt", "content": "a" })),
        say("Not allowed."),
        say(r#"{"files": []}"#),
    ]);
    let lango = Lango::new();
    lango.file("files.json", SCHEMA);
    let flags = flags("openai", provider.server.url());
    let more = ["--schema", "files.json", "write a.txt"];
    let ran = run(&lango, &flags, &more).exits(4);
    assert_eq!(ran.stdout, "{\"files\": []}\n", "denied, and answered");
}
