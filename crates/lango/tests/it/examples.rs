//! Runs every example, as its header says, and reads what it prints.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns a compiled example. Cargo builds them together with the tests.
fn example(name: &str) -> Command {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let path: PathBuf = folder.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing; run `cargo test -p lango`",
        path.display()
    );
    Command::new(path)
}

/// Runs an example to its end and returns what it prints.
fn run(name: &str, arguments: &[&str]) -> String {
    let output = example(name).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_example_is_run_by_a_test() {
    let source = include_str!("examples.rs");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            source.contains(&format!("(\"{name}\"")),
            "{name} is not run"
        );
    }
}

#[test]
fn hello_answers() {
    assert!(run("hello", &[]).starts_with("lango-orchestrator: Hello"));
}

#[test]
fn own_tool_is_called_through_its_owner() {
    let printed = run("own_tool", &[]);
    assert!(
        printed.contains("order A-17 was shipped on Monday"),
        "{printed}"
    );
    assert!(printed.contains("1 tool call, 1 delegation"), "{printed}");
}

#[test]
fn own_agents_own_the_tools_with_their_prefixes() {
    let printed = run("own_agents", &[]);
    for line in [
        "billing: ",
        "invoice 7: 40.00, due on Friday",
        "parcel X1 is in Lyon",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
}

#[test]
fn streaming_prints_the_draft_once() {
    let printed = run("streaming", &[]);
    assert_eq!(printed.matches("1. Write down").count(), 1, "{printed}");
    assert!(
        printed.contains("[lango-orchestrator asks planner]"),
        "{printed}"
    );
    assert!(printed.contains("[answered: 2 model calls]"), "{printed}");
}

#[test]
fn approvals_allow_the_small_refund_and_deny_the_large_one() {
    let printed = run("approvals", &[]);
    assert!(
        printed.contains("refunded 500 cents of order A-17"),
        "{printed}"
    );
    assert!(printed.contains("need a manager"), "{printed}");
    assert!(!printed.contains("refunded 50000"), "{printed}");
}

#[test]
fn replay_notices_a_changed_tool() {
    let printed = run("replay", &[]);
    assert!(printed.contains("tax of 20 %: same results"), "{printed}");
    assert!(
        printed.contains("tax of 19 %: DIFFERENT results"),
        "{printed}"
    );
}

#[test]
fn postgres_workers_continue_each_others_session() {
    let address = lango_testkit::postgres::fresh_schema();
    let printed = run("postgres_workers", &[&address]);
    assert!(
        printed.contains("outcomes: answered, answered"),
        "{printed}"
    );
    assert!(printed.contains("3 turns in one log"), "{printed}");
}

#[test]
fn remote_agent_delegates_to_the_agent_at_a_url() {
    let printed = run("remote_agent", &[]);
    assert!(printed.contains("the weather in Porto: sunny"), "{printed}");
}

#[test]
fn axum_service_answers_and_continues_a_session() {
    let mut service = example("axum_service");
    let mut service = service
        .env("PORT", "0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = service.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once('/').unwrap().1.to_owned();
    let ask = |path: &str, message: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let length = message.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{message}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    let response = ask("/ask", "hello");
    let missing = ask("/ask?session=s_none", "hello");
    let body: serde_json::Value =
        serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let session = body["session"].as_str().unwrap();
    let again = ask(&format!("/ask?session={session}"), "hello again");
    service.kill().unwrap();
    service.wait().unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    assert!(again.contains(session), "{again}");
}
