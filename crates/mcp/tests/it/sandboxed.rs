//! A server's program is sandboxed like every other command, and ends when lango ends.

use crate::support::{Bench, call, until};
use lango_mcp::{EnvVariable, HiddenText, ServerTarget};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::Duration;

fn text_of(result: &str) -> Value {
    serde_json::from_str(result.lines().nth(1).unwrap()).unwrap()
}

#[tokio::test]
async fn a_server_sees_only_the_workspace_and_its_own_variables() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.own("")).unwrap();
    std::fs::write(bench.own("secret"), "the secret").unwrap();
    let mut settings = bench.server(&[]);
    if let ServerTarget::Program(program) = &mut settings.target {
        program.env.push(EnvVariable {
            name: "GIVEN".to_owned(),
            is_passed_on: false,
            value: Some(HiddenText::new("value")),
        });
    }
    let servers = bench.open(vec![settings]).await;
    let secret = bench.own("secret").display().to_string();
    let seen = text_of(
        &call(&servers, "s_look", json!({ "path": secret }))
            .await
            .unwrap(),
    );
    assert_eq!(seen["found"], Value::Null);
    assert_eq!(seen["env"]["GIVEN"], "value");
    assert!(seen["env"].get("CARGO_MANIFEST_DIR").is_none(), "{seen}");
    assert!(
        call(&servers, "s_put", json!({ "path": "new.txt" }))
            .await
            .is_ok()
    );
    assert_eq!(
        std::fs::read_to_string(bench.inside("new.txt")).unwrap(),
        "put"
    );
    let error = call(&servers, "s_look", json!({ "path": "server.py" })).await;
    assert!(error.unwrap().contains("A scripted MCP server"));
    servers.close().await;
}

#[tokio::test]
async fn a_server_has_network_access_only_if_it_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for (network, expected) in [
        (lango_sandbox::Network::None, "not reached"),
        (lango_sandbox::Network::Host, "reached"),
    ] {
        let bench = Bench::new();
        let mut settings = bench.server(&[]);
        if let ServerTarget::Program(program) = &mut settings.target {
            program.policy.network = network;
        }
        let servers = bench.open(vec![settings]).await;
        let text = call(&servers, "s_connect", json!({ "port": port }))
            .await
            .unwrap();
        assert!(text.lines().nth(1).unwrap().starts_with(expected), "{text}");
        servers.close().await;
    }
}

#[tokio::test]
async fn an_unset_variable_prevents_the_start() {
    let bench = Bench::new();
    let mut settings = bench.server(&[]);
    if let ServerTarget::Program(program) = &mut settings.target {
        program.env.push(EnvVariable {
            name: "MISSING".to_owned(),
            is_passed_on: true,
            value: None,
        });
    }
    let servers = bench.open(vec![settings]).await;
    assert_eq!(
        servers.warnings(),
        [
            "MCP server `s`: the environment variable `MISSING` is not set; set it, or remove it from mcp.servers.s"
        ]
    );
}

#[tokio::test]
async fn a_server_has_no_time_limit() {
    let bench = Bench::new();
    let mut settings = bench.server(&[]);
    if let ServerTarget::Program(program) = &mut settings.target {
        program.limits.time = Some(Duration::from_millis(300));
    }
    let servers = bench.open(vec![settings]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        call(&servers, "s_echo", json!({ "text": "x" }))
            .await
            .is_ok()
    );
    assert_eq!(
        bench
            .methods()
            .iter()
            .filter(|method| *method == "initialize")
            .count(),
        1
    );
    servers.close().await;
}

/// Returns whether a program runs in this workspace, inside or outside a sandbox.
fn is_running(bench: &Bench) -> bool {
    let mark = bench.inside("").display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let folders =
        processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    folders.into_iter().any(|folder| {
        folder
            .display()
            .to_string()
            .starts_with(mark.trim_end_matches('/'))
    })
}

#[tokio::test]
async fn no_process_of_a_server_survives_closing_or_dropping() {
    let bench = Bench::new();
    let servers = bench.opened(&["--stubborn"]).await;
    assert!(is_running(&bench));
    servers.close().await;
    assert!(!is_running(&bench));
    let error = call(&servers, "s_echo", json!({ "text": "x" }))
        .await
        .unwrap_err()
        .message;
    assert!(error.contains("lango is about to exit"), "{error}");

    let servers = bench.opened(&["--stubborn"]).await;
    assert!(
        call(&servers, "s_echo", json!({ "text": "x" }))
            .await
            .is_ok()
    );
    assert!(is_running(&bench));
    drop(servers);
    until("the program is gone", || !is_running(&bench)).await;
}
