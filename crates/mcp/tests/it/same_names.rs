//! Two servers whose tools get the same name. The secrets of one never reach the other.

use crate::support::{Bench, call};
use lango_mcp::{ServerSettings, ServerTarget};
use lango_secrets::ServerToolId;
use lango_testkit::secrets::MemorySecrets;
use serde_json::json;
use std::sync::Arc;

const VALUE: &str = "hunter22-of-pay";

/// Returns a server whose tool gets the name `pay_b_login`.
fn server(bench: &Bench, id: &str, tool: &str) -> ServerSettings {
    ServerSettings {
        id: id.to_owned(),
        prefix: format!("{id}_"),
        tools: Some(vec![tool.to_owned()]),
        ..bench.server(&["--extra", tool])
    }
}

/// Returns a bench with a secret for the argument of `b_login` of the server `pay`.
fn bench() -> Bench {
    let id = ServerToolId {
        server: "pay".into(),
        tool: "b_login".into(),
    };
    let secrets = MemorySecrets::new(VALUE).with_server_field("PASSWORD", &id, "text");
    let mut bench = Bench::new();
    bench.secrets = Arc::new(secrets);
    bench
}

fn log(bench: &Bench) -> String {
    std::fs::read_to_string(bench.inside("log")).unwrap_or_default()
}

#[tokio::test]
async fn a_secret_is_sent_to_the_server_it_is_bound_to() {
    let bench = bench();
    let servers = bench.open(vec![server(&bench, "pay", "b_login")]).await;
    let arguments = json!({ "text": "secret:PASSWORD" });
    call(&servers, "pay_b_login", arguments.clone())
        .await
        .unwrap();
    servers.close().await;
    assert!(log(&bench).contains(VALUE));
    let bench = self::bench();
    let servers = bench.open(vec![server(&bench, "pay_b", "login")]).await;
    let error = call(&servers, "pay_b_login", arguments).await.unwrap_err();
    assert!(error.message.contains("mcp:pay_b/login"), "{error:?}");
    servers.close().await;
    assert!(!log(&bench).contains(VALUE));
}

#[tokio::test]
async fn a_name_that_two_servers_claim_is_not_offered() {
    let bench = bench();
    let both = vec![
        server(&bench, "pay", "b_login"),
        server(&bench, "pay_b", "login"),
    ];
    let servers = bench.open(both).await;
    assert!(servers.tools().is_empty());
    let name = "its tool `pay_b_login` is left out, because";
    assert_eq!(
        servers.warnings(),
        [
            format!(
                "MCP server `pay`: {name} `login` of the MCP server `pay_b` has that name; set mcp.servers.pay.prefix"
            ),
            format!(
                "MCP server `pay_b`: {name} `b_login` of the MCP server `pay` has that name; set mcp.servers.pay_b.prefix"
            ),
        ]
    );
    servers.close().await;
}

#[tokio::test]
async fn a_name_is_not_taken_over_while_its_server_is_down() {
    let bench = bench();
    let servers = bench.open(vec![server(&bench, "pay", "b_login")]).await;
    assert_eq!(servers.tools().len(), 1);
    servers.close().await;
    let mut down = server(&bench, "pay", "b_login");
    if let ServerTarget::Program(program) = &mut down.target {
        program.argv.extend(["--exit".into(), "3".into()]);
    }
    let servers = bench
        .open(vec![down, server(&bench, "pay_b", "login")])
        .await;
    let warnings = servers.warnings().join("\n");
    assert!(servers.tools().is_empty(), "{warnings}");
    assert!(
        warnings.contains("`pay_b_login` is left out, because `b_login` of the MCP server `pay`"),
        "{warnings}"
    );
    servers.close().await;
}

#[tokio::test]
async fn a_new_tool_does_not_take_the_name_of_an_accepted_one() {
    let bench = bench();
    let own = || server(&bench, "pay_b", "login");
    let other = |tools: &[&str]| ServerSettings {
        id: "pay".to_owned(),
        prefix: "pay_".to_owned(),
        ..bench.server(tools)
    };
    let extra = ["--extra", "b_login"];
    let servers = bench.open(vec![own()]).await;
    servers.close().await;
    let servers = bench.open(vec![other(&extra)]).await;
    servers.close().await;
    // As if the server had added the tool after it was pinned.
    let pins = std::fs::read_to_string(bench.own("mcp.json")).unwrap();
    let mut pins: serde_json::Value = serde_json::from_str(&pins).unwrap();
    let tool = &mut pins["servers"]["pay"]["tools"]["b_login"];
    tool["pending"] = tool["pinned"].take();
    std::fs::write(bench.own("mcp.json"), pins.to_string()).unwrap();
    let servers = bench.open(vec![other(&extra), own()]).await;
    let offers = |id: &str| {
        let mut servers = servers.overview().iter().filter(|server| server.id == id);
        servers.any(|server| server.tools.iter().any(|tool| tool.name == "pay_b_login"))
    };
    assert!(offers("pay_b"), "{:?}", servers.warnings());
    assert!(!offers("pay"));
    servers.close().await;
}
