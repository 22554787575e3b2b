//! HTTP servers.

use crate::support::{Bench, call, credential};
use lango_mcp::{EnvCredential, HttpSettings, ServerSettings, ServerTarget};
use lango_testkit::mcp_server;
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A scripted HTTP server that ends with the test.
pub(crate) struct HttpTestServer {
    process: Child,
    pub port: u16,
}

impl HttpTestServer {
    pub(crate) async fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut process = Command::new("python3")
            .args(["-c", mcp_server::PROGRAM, "--http", "--log"])
            .arg(bench.inside("log"))
            .args(arguments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().unwrap().parse().unwrap();
        Self { process, port }
    }

    pub(crate) fn settings(&self, bench: &Bench, token: Option<Option<&str>>) -> ServerSettings {
        let mut settings = bench.server(&[]);
        settings.target = ServerTarget::Http(HttpSettings {
            url: format!("http://127.0.0.1:{}/mcp", self.port),
            token: token.map(|value| EnvCredential {
                variable: "TOKEN".to_owned(),
                value: value.map(credential),
            }),
            client: None,
        });
        settings
    }
}

#[tokio::test]
async fn an_http_server_answers_as_json_and_as_events() {
    for arguments in [&[] as &[&str], &["--sse"]] {
        let bench = Bench::new();
        let http_server = HttpTestServer::start(&bench, arguments).await;
        let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
        assert!(servers.warnings().is_empty(), "{:?}", servers.warnings());
        assert!(
            call(&servers, "s_add", json!({ "a": 1, "b": 2 }))
                .await
                .unwrap()
                .contains("\n3")
        );
        let error = call(&servers, "s_fail", json!({}))
            .await
            .unwrap_err()
            .message;
        assert!(error.contains("it did not work"), "{error}");
        assert!(
            bench.log().iter().any(
                |seen| seen["headers"]["Mcp-Protocol-Version"] == "2025-11-25"
                    || seen["headers"]["mcp-protocol-version"] == "2025-11-25"
            )
        );
        servers.close().await;
    }
}

#[tokio::test]
async fn a_server_with_only_the_legacy_transport_is_reported_with_advice() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--legacy"]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    let warnings = servers.warnings().join("\n");
    for expected in [
        "only the legacy HTTP+SSE transport",
        "streamable HTTP address",
        "mcp-remote@",
    ] {
        assert!(warnings.contains(expected), "{warnings}");
    }
    let probe = servers.test(Some("s")).await.remove(0);
    let error = probe.result.unwrap_err().to_string();
    assert!(error.contains("legacy HTTP+SSE"), "{error}");
}

#[tokio::test]
async fn a_tool_that_runs_only_as_a_task_is_not_offered_over_http_either() {
    for arguments in [&["--tasks"] as &[&str], &["--tasks", "--sse"]] {
        let bench = Bench::new();
        let http_server = HttpTestServer::start(&bench, arguments).await;
        let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
        let names = servers
            .tools()
            .iter()
            .map(|tool| tool.spec().name.to_string());
        let names: Vec<String> = names.collect();
        assert!(names.contains(&"s_either".to_owned()), "{names:?}");
        assert!(!names.contains(&"s_long".to_owned()), "{names:?}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_token_is_sent_and_a_missing_or_wrong_one_is_reported() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--token", "right"]).await;
    for (token, expected) in [
        (
            None,
            "it requires a login; run `lango mcp login s`, or set mcp.servers.s.tokenEnv to an environment variable that contains a token",
        ),
        (
            Some(Some("wrong")),
            "it does not accept the token in `TOKEN`",
        ),
        (Some(None), "the environment variable `TOKEN` is not set"),
        (Some(Some("a\nb")), "contains control characters"),
    ] {
        let servers = bench.open(vec![http_server.settings(&bench, token)]).await;
        let warnings = servers.warnings().join("\n");
        assert!(warnings.contains(expected), "{warnings}");
        assert!(!warnings.contains("wrong"), "{warnings}");
    }
    let servers = bench
        .open(vec![http_server.settings(&bench, Some(Some("right")))])
        .await;
    assert!(
        call(&servers, "s_echo", json!({ "text": "in" }))
            .await
            .unwrap()
            .contains("in")
    );
    servers.close().await;
}

#[tokio::test]
async fn a_too_long_answer_is_not_read_completely() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &[]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    let called = tokio::time::timeout(Duration::from_secs(60), call(&servers, "s_huge", json!({})));
    let error = called.await.unwrap().unwrap_err().message;
    assert!(
        error.contains("it sent a message of more than 8 MiB"),
        "{error}"
    );
    servers.close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_reported_and_one_that_dies_during_a_call_leaves_an_unknown_outcome()
 {
    let bench = Bench::new();
    let mut http_server = HttpTestServer::start(&bench, &[]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    let called = tokio::time::timeout(Duration::from_secs(60), call(&servers, "s_die", json!({})));
    let error = called.await.unwrap().unwrap_err().message;
    assert!(
        error.contains("it is unknown whether the call ran"),
        "{error}"
    );
    let _ = http_server.process.wait().await;
    servers.close().await;
    let mut settings = http_server.settings(&bench, None);
    settings.id = "gone".to_owned();
    let servers = bench.open(vec![settings]).await;
    let warnings = servers.warnings().join("\n");
    assert!(
        warnings.contains("MCP server `gone`: it did not finish the handshake"),
        "{warnings}"
    );
}
