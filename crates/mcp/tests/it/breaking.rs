//! Servers that do not start, break off, or say too much.

use crate::support::{Bench, call};
use lango_mcp::{ConnectError, Pauses, Start};
use lango_sandbox::Strength;
use serde_json::json;
use std::time::Duration;

/// The warnings of a server that cannot be used.
async fn warned(bench: &Bench, arguments: &[&str]) -> String {
    let servers = bench.opened(arguments).await;
    assert!(servers.tools().is_empty());
    let warnings = servers.warnings().join("\n");
    servers.close().await;
    warnings
}

#[tokio::test]
async fn a_server_that_ends_at_once_is_reported_with_its_code_and_last_words() {
    let warning = warned(&Bench::new(), &["--exit", "7"]).await;
    assert!(
        warning.contains("its program ended with code 7"),
        "{warning}"
    );
    assert!(
        warning.contains("its last words: cannot find my settings"),
        "{warning}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_reported_as_such() {
    let bench = Bench::new();
    let mut settings = bench.server(&[]);
    if let lango_mcp::Reach::Program(program) = &mut settings.reach {
        program.argv = vec!["no-such-program".to_owned()];
    }
    let servers = bench.open(vec![settings]).await;
    let warnings = servers.warnings().join("\n");
    assert!(
        warnings.contains("was not found in the sandbox"),
        "{warnings}"
    );
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_given_up_and_the_other_servers_are_there() {
    let mut bench = Bench::new();
    bench.opened(&[]).await.close().await;
    bench.patience = Duration::from_secs(1);
    let mut mute = bench.server(&["--mute"]);
    mute.id = "mute".to_owned();
    let servers = bench.open(vec![mute, bench.server(&[])]).await;
    assert_eq!(
        servers.warnings(),
        ["MCP server `mute`: it did not answer within 1 s"]
    );
    let names = servers.tools().iter().map(|tool| tool.spec().name.clone());
    assert!(names.into_iter().any(|name| name == "s_echo"));
    servers.close().await;
}

#[tokio::test]
async fn a_line_that_is_no_message_is_overlooked_and_a_stream_of_them_ends_the_connection() {
    let bench = Bench::new();
    let servers = bench.opened(&["--greet"]).await;
    assert!(
        call(&servers, "s_echo", json!({ "text": "here" }))
            .await
            .is_ok()
    );
    servers.close().await;
    let warning = warned(&Bench::new(), &["--babble"]).await;
    assert!(
        warning.contains("it printed more than 1000 lines that are no messages, such as `bla`"),
        "{warning}"
    );
}

#[tokio::test]
async fn a_server_of_another_protocol_version_is_refused() {
    let warning = warned(&Bench::new(), &["--version", "2099-01-01"]).await;
    assert!(
        warning.contains("it speaks version `2099-01-01` of the protocol; lango speaks 2025-11-25"),
        "{warning}"
    );
}

#[tokio::test]
async fn an_older_version_of_the_protocol_is_understood() {
    let bench = Bench::new();
    let servers = bench.opened(&["--version", "2024-11-05"]).await;
    assert!(
        call(&servers, "s_echo", json!({ "text": "here" }))
            .await
            .is_ok()
    );
    servers.close().await;
}

fn starts(bench: &Bench) -> usize {
    bench
        .methods()
        .iter()
        .filter(|method| *method == "initialize")
        .count()
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_a_call_leaves_it_unknown_and_is_down_for_a_while() {
    let mut bench = Bench::new();
    let hour = Duration::from_secs(3600);
    bench.pauses = Pauses {
        first: hour,
        longest: hour,
    };
    let servers = bench.opened(&[]).await;
    let error = call(&servers, "s_die", json!({}))
        .await
        .unwrap_err()
        .message;
    assert!(
        error.contains("broke off in the middle of the call"),
        "{error}"
    );
    assert!(error.contains("its program ended with code 3"), "{error}");
    assert!(
        error.contains("its last words: something broke inside"),
        "{error}"
    );
    assert!(
        error.contains("nobody knows whether it was done"),
        "{error}"
    );
    let down = call(&servers, "s_echo", json!({ "text": "x" }))
        .await
        .unwrap_err()
        .message;
    assert!(
        down.contains("the MCP server `s` is down: its program ended with code 3"),
        "{down}"
    );
    assert!(
        down.contains(" s ago and is tried again at the next call after 3"),
        "{down}"
    );
    assert_eq!(starts(&bench), 1, "a call while it is down starts nothing");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_died_is_started_again_by_the_next_call_after_the_pause() {
    let mut bench = Bench::new();
    bench.pauses = Pauses {
        first: Duration::ZERO,
        longest: Duration::ZERO,
    };
    let servers = bench.opened(&[]).await;
    for time in 1..=3 {
        assert!(call(&servers, "s_die", json!({})).await.is_err());
        assert_eq!(starts(&bench), time);
        assert!(
            call(&servers, "s_echo", json!({ "text": "back" }))
                .await
                .unwrap()
                .contains("back")
        );
    }
    servers.close().await;
}

#[tokio::test]
async fn a_line_without_end_a_flood_and_endless_questions_end_the_connection_and_say_why() {
    for (name, reason) in [
        ("s_huge", "it sent a message of more than 8 MiB"),
        (
            "s_flood",
            "it sent more than 20000 messages in 10 s that nobody had asked for",
        ),
        (
            "s_pester",
            "it asked more than 32 questions without waiting for an answer",
        ),
    ] {
        let bench = Bench::new();
        let servers = bench.opened(&[]).await;
        let called = tokio::time::timeout(Duration::from_secs(60), call(&servers, name, json!({})));
        let error = called.await.unwrap().unwrap_err().message;
        assert!(error.contains(reason), "{name}: {error}");
        assert!(
            error.contains("nobody knows whether it was done"),
            "{name}: {error}"
        );
        servers.close().await;
    }
}

#[tokio::test]
async fn without_a_sandbox_a_program_is_not_started_and_it_is_said_why() {
    let mut bench = Bench::new();
    bench.strength = Strength::None {
        why: "there is no bubblewrap".to_owned(),
    };
    let warning = warned(&bench, &[]).await;
    assert!(
        warning
            .contains("it is not started, because no sandbox works here: there is no bubblewrap"),
        "{warning}"
    );
    assert!(bench.log().is_empty());
    let servers =
        lango_mcp::Servers::open(bench.setup(vec![bench.server(&[])]), Start::PinsOnly).await;
    let probes = servers.test(None).await;
    assert!(matches!(
        probes[0].result,
        Err(ConnectError::NoSandbox { .. })
    ));
}
