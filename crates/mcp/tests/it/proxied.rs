//! A server's program that may contact listed hosts through its own proxy, with placeholders for secrets.

use crate::support::{Bench, call};
use lango_mcp::{ProgramProxy, SecretVariable, ServerSettings, ServerTarget};
use lango_net::{Egress, EgressLimits, EgressRules, SecretAccess};
use lango_sandbox::Network;
use lango_secrets::{Masks, SecretName};
use lango_testkit::secrets::MemorySecrets;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

const VALUE: &str = "a-token-that-is-not-to-be-seen";

/// Starts a web server that says whether it received the token, and echoes it.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let is_known = head.iter().any(|line| {
                line.to_lowercase().starts_with("authorization:") && line.ends_with(VALUE)
            });
            let body = format!("known: {is_known}; {}", head.join(", "));
            let length = body.len();
            let _ = write!(
                &stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    address
}

fn server(bench: &Bench, secrets: MemorySecrets, hosts: &[&str]) -> ServerSettings {
    let mut settings = bench.server(&["--extra", "fetch"]);
    let hosts: Vec<_> = hosts.iter().map(|host| host.parse().unwrap()).collect();
    if let ServerTarget::Program(program) = &mut settings.target {
        program.policy.network = Network::Proxied;
        let rules = EgressRules {
            allow: hosts.clone(),
            deny: Vec::new(),
        };
        program.proxy = Some(ProgramProxy {
            egress: Egress::new(rules, EgressLimits::default()),
            hosts,
            user: "local".into(),
            access: SecretAccess::new(Arc::new(secrets), Masks::default()),
            secrets: vec![SecretVariable {
                variable: "TOKEN".to_owned(),
                name: SecretName::new("SERVICE").unwrap(),
            }],
        });
    }
    settings
}

#[tokio::test]
async fn a_program_uses_a_secret_without_seeing_it() {
    let (own, other) = (serve(), serve());
    let bench = Bench::new();
    let origin = format!("http://{own}");
    let secrets = MemorySecrets::new(VALUE).with_header("SERVICE", "mcp:s", &origin, "ANY");
    let settings = server(&bench, secrets, &[&own, &other]);
    let servers = bench.open(vec![settings]).await;
    let fetch = async |address: &str| {
        let arguments = json!({ "url": format!("http://{address}/") });
        call(&servers, "s_fetch", arguments).await.unwrap()
    };
    let seen = call(&servers, "s_look", json!({ "path": "server.py" })).await;
    let seen = seen.unwrap();
    assert!(
        seen.contains("lango_secret_") && !seen.contains(VALUE),
        "{seen}"
    );
    let text = fetch(&own).await;
    assert!(
        text.contains("known: true") && text.contains("[secret SERVICE]"),
        "{text}"
    );
    assert!(!text.contains(VALUE), "{text}");
    let text = fetch(&other).await;
    assert!(text.contains("refused: lango: a request to"), "{text}");
    assert!(text.contains("[network: a request to"), "{text}");
    let text = fetch("127.0.0.1:9").await;
    assert!(
        text.contains("to `mcp.servers.s.network` to permit it"),
        "{text}"
    );
    // The server is restarted after it has ended.
    assert!(call(&servers, "s_die", json!({})).await.is_err());
    let mut text = String::new();
    for _ in 0..50 {
        let arguments = json!({ "url": format!("http://{own}/") });
        match call(&servers, "s_fetch", arguments).await {
            Ok(answer) => {
                text = answer;
                break;
            }
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
    assert!(text.contains("known: true"), "{text}");
    servers.close().await;
}

#[tokio::test]
async fn a_program_does_not_start_if_its_secret_is_not_bound_to_it() {
    let own = serve();
    let bench = Bench::new();
    let origin = format!("http://{own}");
    let with = |name, tool| MemorySecrets::new(VALUE).with_header(name, tool, &origin, "TOKEN");
    let missing = "there is no secret `SERVICE`; `lango secrets set SERVICE` stores it";
    for (secrets, problem) in [
        (MemorySecrets::new(VALUE), missing),
        (with("OTHER", "mcp:s"), missing),
        (
            with("SERVICE", "mcp:s").expired(),
            "the secret `SERVICE` has expired",
        ),
        (
            with("SERVICE", "mcp:other"),
            "is not bound to it; run `lango secrets bind SERVICE --tool mcp:s --host HOST --env TOKEN`",
        ),
    ] {
        let servers = bench.open(vec![server(&bench, secrets, &[&own])]).await;
        let warning = servers.warnings().join("\n");
        assert!(warning.contains(problem), "{warning}");
    }
    let locked = server(&bench, MemorySecrets::locked(), &[&own]);
    let servers = bench.open(vec![locked]).await;
    let warning = servers.warnings().join("\n");
    assert!(warning.contains("run `lango secrets unlock`"), "{warning}");
}
