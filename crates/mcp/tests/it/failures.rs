//! Servers that do not start, die, or send too much.

use crate::support::{Bench, call};
use lango_mcp::{Backoff, ConnectError, StartMode};
use lango_sandbox::SandboxStrength;
use serde_json::json;
use std::time::Duration;

/// Opens a server that cannot be used and returns its warnings.
async fn open_warnings(bench: &Bench, arguments: &[&str]) -> String {
    let servers = bench.opened(arguments).await;
    assert!(servers.tools().is_empty());
    let warnings = servers.warnings().join("\n");
    servers.close().await;
    warnings
}

#[tokio::test]
async fn a_server_that_exits_immediately_is_reported_with_its_exit_code_and_error_output() {
    let warning = open_warnings(&Bench::new(), &["--exit", "7"]).await;
    assert!(
        warning.contains("its program exited with code 7"),
        "{warning}"
    );
    assert!(
        warning.contains("its last error output: cannot find my settings"),
        "{warning}"
    );
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    for (program, problem) in [
        (
            "no-such-program",
            "there is no program `no-such-program` in",
        ),
        ("/opt/no-such/program", "was not found in the sandbox"),
    ] {
        let bench = Bench::new();
        let mut settings = bench.server(&[]);
        if let lango_mcp::ServerTarget::Program(settings) = &mut settings.target {
            settings.argv = vec![program.to_owned()];
        }
        let servers = bench.open(vec![settings]).await;
        let warnings = servers.warnings().join("\n");
        assert!(warnings.contains(problem), "{warnings}");
    }
}

#[tokio::test]
async fn a_handshake_times_out_and_the_other_servers_work() {
    let mut bench = Bench::new();
    bench.opened(&[]).await.close().await;
    bench.start_timeout = Duration::from_secs(1);
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
async fn a_few_lines_that_are_not_messages_are_ignored_and_many_close_the_connection() {
    let bench = Bench::new();
    let servers = bench.opened(&["--greet"]).await;
    assert!(
        call(&servers, "s_echo", json!({ "text": "here" }))
            .await
            .is_ok()
    );
    servers.close().await;
    let warning = open_warnings(&Bench::new(), &["--babble"]).await;
    assert!(
        warning
            .contains("it printed more than 1000 lines that are not messages, for example `bla`"),
        "{warning}"
    );
}

#[tokio::test]
async fn a_server_of_another_protocol_version_is_refused() {
    let warning = open_warnings(&Bench::new(), &["--version", "2099-01-01"]).await;
    assert!(
        warning.contains("it speaks version `2099-01-01` of the protocol; lango speaks 2025-11-25"),
        "{warning}"
    );
}

#[tokio::test]
async fn an_older_protocol_version_is_supported() {
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
async fn a_server_that_dies_during_a_call_leaves_an_unknown_outcome_and_is_down_for_a_while() {
    let mut bench = Bench::new();
    let hour = Duration::from_secs(3600);
    bench.backoff = Backoff {
        first: hour,
        longest: hour,
    };
    let servers = bench.opened(&[]).await;
    let error = call(&servers, "s_die", json!({}))
        .await
        .unwrap_err()
        .message;
    assert!(error.contains("broke during the call"), "{error}");
    assert!(error.contains("its program exited with code 3"), "{error}");
    assert!(
        error.contains("its last error output: something broke inside"),
        "{error}"
    );
    assert!(
        error.contains("it is unknown whether the call ran"),
        "{error}"
    );
    let down = call(&servers, "s_echo", json!({ "text": "x" }))
        .await
        .unwrap_err()
        .message;
    assert!(
        down.contains("the MCP server `s` is down: its program exited with code 3"),
        "{down}"
    );
    assert!(
        down.contains(" s ago, and lango reconnects on the first call after another 3"),
        "{down}"
    );
    assert_eq!(starts(&bench), 1, "a call while it is down starts nothing");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_died_is_restarted_by_the_first_call_after_the_backoff() {
    let mut bench = Bench::new();
    bench.backoff = Backoff {
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
async fn endless_lines_floods_and_endless_requests_close_the_connection_with_a_reason() {
    for (name, reason) in [
        ("s_huge", "it sent a message of more than 8 MiB"),
        (
            "s_flood",
            "it sent more than 20000 unsolicited messages in 10 s",
        ),
        (
            "s_pester",
            "it sent more than 32 requests without waiting for an answer",
        ),
    ] {
        let bench = Bench::new();
        let servers = bench.opened(&[]).await;
        let called = tokio::time::timeout(Duration::from_secs(60), call(&servers, name, json!({})));
        let error = called.await.unwrap().unwrap_err().message;
        assert!(error.contains(reason), "{name}: {error}");
        assert!(
            error.contains("it is unknown whether the call ran"),
            "{name}: {error}"
        );
        servers.close().await;
    }
}

#[tokio::test]
async fn without_a_sandbox_a_program_is_not_started_and_a_warning_says_why() {
    let mut bench = Bench::new();
    bench.strength = SandboxStrength::None {
        why: "there is no bubblewrap".to_owned(),
    };
    let warning = open_warnings(&bench, &[]).await;
    assert!(
        warning.contains(
            "lango does not start it, because no sandbox works here: there is no bubblewrap"
        ),
        "{warning}"
    );
    assert!(bench.log().is_empty());
    let servers =
        lango_mcp::Servers::open(bench.setup(vec![bench.server(&[])]), StartMode::PinsOnly).await;
    let probes = servers.test(None).await;
    assert!(matches!(
        probes[0].result,
        Err(ConnectError::NoSandbox { .. })
    ));
}
