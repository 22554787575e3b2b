//! Logs: silent by default, nested spans with ids as JSON lines, and nothing that a user or a model wrote.

use crate::lango::{Lango, finish, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn logged(lango: &Lango, selection: &str, arguments: &[&str]) -> Vec<Value> {
    let mut command = lango.command(arguments);
    let ran = finish(command.env("LANGO_LOG", selection), b"").ok();
    let lines = ran.stderr.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn json_logs_of_a_delegated_turn_have_nested_spans_with_ids() {
    let lango = Lango::new();
    let question = "what files are here?";
    let arguments = ["--log-format", "json", "run", question];
    let lines = logged(&lango, "info", &arguments);
    let mut closed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut turns = Vec::new();
    for line in &lines {
        if line["fields"]["message"] != "close" {
            continue;
        }
        let span = &line["span"];
        let name = text(&span["name"]);
        *closed.entry(name).or_default() += 1;
        let parents = line["spans"].as_array().unwrap();
        match name {
            "turn" => turns.push(text(&span["turn"])),
            _ => {
                assert_eq!(parents[0]["name"], "turn", "{line}");
                assert!(parents[0]["session"].is_string(), "{line}");
            }
        }
        match name {
            "model_call" => assert!(span["agent"].is_string() && span["model"].is_string()),
            "tool_call" => {
                assert_eq!(
                    (&span["agent"], &span["tool"]),
                    (&"operator".into(), &"fs_list".into())
                );
                assert!(span["call"].is_string() && span["status"] == "Ok", "{line}");
            }
            "commit" => assert!(
                span["first_seq"].is_u64() && span["events"].is_u64(),
                "{line}"
            ),
            _ => {}
        }
    }
    assert_eq!(turns.len(), 1);
    assert_eq!(
        (closed["model_call"], closed["tool_call"], closed["commit"]),
        (3, 1, 4)
    );
    let finished = lines
        .iter()
        .find(|line| line["fields"]["message"] == "the turn finished");
    assert_eq!(finished.unwrap()["fields"]["outcome"], "answered");
    let everything = serde_json::to_string(&lines).unwrap();
    assert!(!everything.contains("what files") && !everything.contains("notes.md"));
}

#[test]
fn nothing_is_logged_unless_it_is_asked_for() {
    let lango = Lango::new();
    let mut command = lango.command(&["run", "hello"]);
    let ran = finish(command.env_remove("LANGO_LOG"), b"").ok();
    assert!(!ran.stderr.contains("close"), "{}", ran.stderr);
}

#[test]
fn a_wrong_level_is_a_usage_error_that_names_the_right_ones() {
    let lango = Lango::new();
    let mut command = lango.command(&["run", "hello"]);
    let ran = finish(command.env("LANGO_LOG", "loud"), b"").exits(2);
    assert!(
        ran.stderr.contains("`loud`") && ran.stderr.contains("error, warn, info"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_server_with_json_logs_writes_only_json_lines() {
    let lango = Lango::new();
    let mut command = lango.command(&["--log-format", "json", "serve", "--port", "0"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = || -> Option<Value> {
        let line = lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    };
    while !next().unwrap()["fields"]["message"]
        .to_string()
        .contains("http://127.0.0.1:")
    {}
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    while next().is_some() {}
    assert!(child.wait().unwrap().code().is_some());
}
