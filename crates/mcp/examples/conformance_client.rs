//! The client under test of the MCP conformance suite: opens the server at the address that it is given, through the same
//! code as lango, and calls what the scenario offers. The suite says which scenario it is in the environment.
//!
//! ```sh
//! cargo build -p lango-mcp --example conformance_client
//! conformance client --command target/debug/examples/conformance_client --suite all --spec-version 2025-11-25 -o results
//! ```

use lango_core::Caller;
use lango_mcp::{Address, Pauses, Reach, ServerSettings, Servers, Setup, Start};
use lango_sandbox::{Helper, Launcher, Strength};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().unwrap_or_default();
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("lango-conformance-{}", std::process::id()));
    let servers = Servers::open(setup(url, &folder), Start::ConnectUnpinned).await;
    for warning in servers.warnings() {
        eprintln!("{warning}");
    }
    let called = call_all(&servers, &scenario).await;
    servers.close().await;
    let _ = std::fs::remove_dir_all(&folder);
    match servers.warnings().is_empty() {
        true => called,
        false => Err("the server was not connected".into()),
    }
}

fn setup(url: String, folder: &std::path::Path) -> Setup {
    let server = ServerSettings {
        id: "suite".to_owned(),
        reach: Reach::Address(Address { url, token: None }),
        agent: None,
        prefix: String::new(),
        tools: None,
        form_defaults: true,
    };
    // No program is started, so none is held.
    let launcher = Launcher::new(Helper {
        program: "/nonexistent".into(),
        arguments: Vec::new(),
    });
    Setup {
        servers: vec![server],
        launcher,
        strength: Strength::Full,
        pins: folder.join("pins.json"),
        attachments: folder.join("attachments"),
        patience: Duration::from_secs(20),
        pauses: Pauses::default(),
        taken: BTreeSet::new(),
    }
}

/// Calls each tool once, the way an agent's call would.
async fn call_all(servers: &Servers, scenario: &str) -> Result<(), Box<dyn Error>> {
    if scenario == "initialize" {
        return Ok(());
    }
    let caller = Caller {
        user: "suite".into(),
        session: "s_1".into(),
        turn: "t_1".into(),
        agent: "suite".into(),
        call: "c_1".into(),
    };
    for tool in servers.tools() {
        let spec = tool.spec();
        let arguments = match spec.name.as_str() {
            "add_numbers" => json!({ "a": 5, "b": 3 }),
            "json_schema_echo" => json!({ "schema": schema_of(servers, "json_schema_2020_12_tool") }),
            _ => json!({}),
        };
        let output = tool.run(&caller, Arc::new(arguments)).await;
        println!("{}: {output:?}", spec.name);
        output?;
    }
    Ok(())
}

/// The schema of a tool as agents are shown it.
fn schema_of(servers: &Servers, name: &str) -> Value {
    let tool = servers.tools().iter().find(|tool| tool.spec().name == name);
    tool.map_or(Value::Null, |tool| Value::clone(&tool.spec().parameters))
}
