//! `lango run`: who answers, the number of calls, what is printed to stdout and stderr, and the sources of a question.

use crate::lango::{Lango, field_values, finish, finish_child, of_type, text};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const TWO_PARTS: &str = "list the files and make a plan for my holiday";

#[test]
fn hello_is_answered_by_the_orchestrator_with_one_model_call_and_three_events() {
    let lango = Lango::new();
    let summary = lango.ask("hello");
    let keys: BTreeSet<&str> = summary.as_object().unwrap().keys().map(|k| &**k).collect();
    let expected = [
        "answer",
        "author",
        "cost_usd",
        "denied",
        "error",
        "limit",
        "model",
        "model_calls",
        "offline",
        "outcome",
        "rounds",
        "session",
        "time_ms",
        "tool_calls",
        "turn",
        "usage",
    ];
    assert_eq!(keys, BTreeSet::from(expected));
    assert_eq!(summary["outcome"], "answered");
    assert_eq!(summary["author"], "lango-orchestrator");
    assert_eq!(summary["model"], "offline/rules");
    assert_eq!(summary["offline"], true);
    assert_eq!(summary["limit"], json!(null));
    assert_eq!(counts(&summary), (1, 0, 0));
    let usage =
        json!({ "input_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0 });
    assert_eq!(summary["usage"], usage);

    let events = lango.events(text(&summary["session"]));
    let root = "lango-orchestrator";
    assert_eq!(field_values(&events, "author"), ["user", root, root]);
    let types = ["user.message", "agent.message", "turn.finished"];
    assert_eq!(field_values(&events, "type"), types);
    assert_eq!(events[0]["text"], "hello");
    assert_eq!(events[1]["text"], summary["answer"]);
    assert_eq!(events[2]["outcome"], "answered");
}

#[test]
fn the_answer_goes_to_stdout_and_everything_else_to_stderr() {
    let lango = Lango::new();
    let ran = lango.run(&["run", "what files are here?"]).ok();
    let answer = "1 folder, 2 files in .\nsrc/\nbudget.csv  9 B\nnotes.md  22 B\n";
    assert_eq!(ran.stdout, answer);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let [demo, delegated, tool, footer, go_on] = lines.as_slice() else {
        panic!("{ran:#?}");
    };
    assert_eq!(
        *delegated,
        "● lango-orchestrator → operator  what files are here"
    );
    let listed = "  operator ✓ list .  1 folder, 2 files in .  ";
    assert!(tool.starts_with(listed) && tool.ends_with(" ms"), "{tool}");
    let cost = "offline/rules · 3 model calls · 1 delegation round · 1 tool call · ";
    assert!(footer.starts_with(cost), "{footer}");
    assert!(footer.ends_with(" s · 0 tokens"), "{footer}");
    assert_eq!(
        *demo,
        "demo mode: built-in rules answer, not an AI model · connect a model: lango setup (or set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama)"
    );
    let quiet = lango.run(&["run", "-q", "hello"]).ok();
    assert_eq!(quiet.stderr, "");
    let chosen = lango
        .run(&["run", "-c", "agent.model=offline", "hello"])
        .ok();
    assert!(!chosen.stderr.contains("demo mode"), "{chosen:#?}");
    assert!(
        chosen
            .stderr
            .contains("0 tokens (built-in rules, not an AI model)"),
        "{chosen:#?}"
    );
    let session = go_on
        .strip_prefix("continue: lango run --session ")
        .and_then(|rest| rest.strip_suffix(" \"…\""));
    let events = lango.events(session.unwrap());
    assert_eq!(events[0]["text"], "what files are here?");
}

#[test]
fn a_task_for_one_tool_is_answered_by_its_owner() {
    let lango = Lango::new();
    let summary = lango.ask("what files are here?");
    assert_eq!(summary["author"], "operator");
    assert_eq!(counts(&summary), (3, 1, 1));
    for name in ["src/", "notes.md", "budget.csv"] {
        assert!(text(&summary["answer"]).contains(name), "{summary}");
    }
    let events = lango.events(text(&summary["session"]));
    let delegated = of_type(&events, "agent.delegated");
    assert_eq!(delegated.len(), 1);
    assert_eq!(delegated[0]["agent"], "operator");
    assert_eq!(delegated[0]["finish"], true);
    let called = of_type(&events, "tool.called");
    assert_eq!(called.len(), 1);
    assert_eq!(called[0]["tool"], "fs_list");
    assert_eq!(called[0]["author"], "operator");
}

#[test]
fn a_request_with_two_parts_is_delegated_in_parallel_and_answered_by_the_root() {
    let lango = Lango::new();
    let summary = lango.ask(TWO_PARTS);
    assert_eq!(summary["author"], "lango-orchestrator");
    assert_eq!(counts(&summary), (5, 1, 1));
    let answer = text(&summary["answer"]);
    assert!(answer.contains("notes.md") && answer.contains("holiday"));
    let events = lango.events(text(&summary["session"]));
    let delegated = of_type(&events, "agent.delegated");
    let to = |index: usize| (text(&delegated[index]["agent"]), &delegated[index]["round"]);
    assert_eq!(delegated.len(), 2);
    assert_eq!(to(0), ("operator", &json!(1)));
    assert_eq!(to(1), ("planner", &json!(1)));
}

#[test]
fn jsonl_prints_the_stored_events() {
    let lango = Lango::new();
    let ran = lango.run(&["run", "--jsonl", TWO_PARTS]).ok();
    let events = ran.json_lines();
    let session = text(&events[0]["session"]);
    assert_eq!(events, lango.events(session));
    let shown = lango.run(&["sessions", "show", session, "--jsonl"]).ok();
    assert_eq!(ran.stdout, shown.stdout);
    let numbers: Vec<_> = (1..=events.len()).map(|seq| json!(seq)).collect();
    assert!(events.iter().map(|event| &event["seq"]).eq(&numbers));
}

#[test]
fn quiet_prints_nothing_on_stderr() {
    let ran = Lango::new()
        .run(&["run", "-q", "what files are here?"])
        .ok();
    assert!(ran.stdout.contains("notes.md"));
    assert_eq!(ran.stderr, "");
}

#[test]
fn piped_text_is_added_to_the_question() {
    let lango = Lango::new();
    let ran = lango.piped(&["run", "--jsonl", "hello", "there"], "some\ntext\n\n");
    let asked = "hello there\n\n<stdin>\nsome\ntext\n</stdin>";
    assert_eq!(ran.ok().json_lines()[0]["text"], asked);
    let ran = lango.piped(&["run", "--jsonl", "hello"], " \n");
    assert_eq!(ran.ok().json_lines()[0]["text"], "hello");
}

#[test]
fn piped_text_alone_is_the_question() {
    let lango = Lango::new();
    let arguments: [&[&str]; 3] = [&["run", "-"], &["run"], &[]];
    for arguments in arguments {
        let ran = lango.piped(arguments, "what files are here?").ok();
        assert!(ran.stdout.contains("notes.md"), "{arguments:?}: {ran:#?}");
    }
}

#[test]
fn a_session_is_continued_by_a_prefix_of_its_id() {
    let lango = Lango::new();
    let session = lango.session("hello");
    lango.session("another session");
    let arguments = ["run", "--json", "--session", &session[..8], "list files"];
    let summary = lango.run(&arguments).ok().json();
    assert_eq!(summary["session"], session);
    let events = lango.events(&session);
    assert_eq!(of_type(&events, "turn.finished").len(), 2);
    assert_eq!(events[3]["seq"], 4);
    assert_eq!(events[3]["text"], "list files");
}

#[test]
fn ephemeral_stores_nothing() {
    let lango = Lango::new();
    let ran = lango.run(&["run", "--ephemeral", "what files are here?"]);
    let ran = ran.ok();
    assert!(ran.stdout.contains("notes.md"));
    assert!(!ran.stderr.contains("continue:"), "{ran:#?}");
    assert!(!lango.home().exists());
    lango.session("hello");
    let before = lango.stored_files();
    lango.run(&["run", "--ephemeral", "hello"]).ok();
    assert_eq!(lango.stored_files(), before);
}

#[test]
fn a_closed_pipe_neither_ends_the_turn_nor_prints_an_error() {
    let lango = Lango::new();
    // The first event is larger than a pipe's buffer, so the reader closes the pipe before it is written.
    let mut command = lango.command(&["run", "--jsonl", "list files"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, "long ".repeat(50_000).as_bytes()).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    drop(stdin);
    assert!(output.fill_buf().unwrap().starts_with(b"{\"seq\":1"));
    drop(output);
    let ran = finish_child(child, b"").ok();
    assert!(!ran.stderr.contains("error"), "{ran:#?}");
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    let events = lango.events(text(&listed[0]["id"]));
    assert_eq!(events.last().unwrap()["outcome"], "answered");
}

#[test]
fn every_command_tolerates_a_closed_pipe() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    for arguments in [
        &["run", "what files are here?"][..],
        &["agents"],
        &["config", "show"],
        &["doctor"],
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["--help"],
    ] {
        // Standard output is a pipe whose reader has closed it.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = lango.command(arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn();
        let ran = finish_child(child.unwrap(), b"").ok();
        assert!(!ran.stderr.contains("error"), "{arguments:?}: {ran:#?}");
    }
}

#[test]
fn unwritable_output_is_reported_after_the_turn_is_stored() {
    let lango = Lango::new();
    // More chunks than fit into the queue between the turn and the output.
    lango.file("long.txt", "line\n".repeat(300));
    for flag in ["--jsonl", "--json", "-q"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = lango.command(&["run", flag, "read long.txt"]);
        let child = command.stdout(full).stderr(Stdio::piped()).spawn();
        let ran = finish_child(child.unwrap(), b"").exits(1);
        let expected = "error: cannot write to standard output\n  cause: No space left on device";
        assert!(ran.stderr.contains(expected), "{flag}: {ran:#?}");
    }
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    for session in listed.as_array().unwrap() {
        let events = lango.events(text(&session["id"]));
        assert_eq!(events.last().unwrap()["outcome"], "answered");
    }
}

#[test]
fn a_shell_pipeline_works() {
    let lango = Lango::new();
    let script = "echo 'what files are here?' | \"$0\" run -q | head -1";
    let mut shell = Command::new("sh");
    let shell = lango.prepare(&mut shell);
    let ran = finish(shell.args(["-c", script, crate::lango::BINARY]), b"").ok();
    assert_eq!(ran.stdout, "1 folder, 2 files in .\n");
    assert_eq!(ran.stderr, "");
}

/// Returns the numbers of model calls, tool calls and rounds.
pub(crate) fn counts(summary: &serde_json::Value) -> (u64, u64, u64) {
    let count = |field: &str| summary[field].as_u64().unwrap();
    (count("model_calls"), count("tool_calls"), count("rounds"))
}
