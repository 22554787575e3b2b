//! The client under test of the MCP conformance suite. It opens the server at the given address with the same code as
//! lango, logs in if the server requires it, and calls the tools of the scenario. The suite sets the scenario in the
//! environment.
//!
//! ```sh
//! cargo build -p lango-mcp --example conformance_client conformance client --command
//! target/debug/examples/conformance_client --suite all --spec-version 2025-11-25 -o results
//! ```

use lango_core::Caller;
use lango_mcp::{
    Backoff, EnvCredential, HttpSettings, OauthClientSettings, ServerSettings, ServerTarget,
    Servers, ServersSetup, StartMode, StartProgress,
};
use lango_sandbox::{HelperCommand, Launcher, SandboxStrength};
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::secrets::MemorySecrets;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of logins per scenario.
const MAX_LOGINS: usize = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().unwrap_or_default();
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("lango-conformance-{}", std::process::id()));
    let mut result = Ok(());
    for _ in 0..=MAX_LOGINS {
        let servers =
            Servers::open(setup(&url, &scenario, &folder), StartMode::ConnectUnpinned).await;
        result = match servers.warnings() {
            [] => call_all(&servers, &scenario).await,
            warnings => Err(warnings.join("; ").into()),
        };
        let wants_login = |error: &dyn Error| error.to_string().contains("lango mcp login");
        if result
            .as_ref()
            .is_err_and(|error| wants_login(error.as_ref()))
        {
            // A user would open the address in a browser; here a request that follows redirects replaces both.
            let login = servers.login("suite", None, |page| {
                drop(tokio::spawn(browse(page.to_owned())))
            });
            login.await?;
        } else {
            servers.close().await;
            break;
        }
        servers.close().await;
    }
    let _ = std::fs::remove_dir_all(&folder);
    result
}

async fn browse(page: String) -> reqwest::Result<()> {
    let browser = reqwest::Client::builder().no_proxy().build()?;
    let shown = browser.get(page).send().await?;
    println!("browser: {}", shown.text().await?);
    Ok(())
}

fn setup(url: &str, scenario: &str, folder: &std::path::Path) -> ServersSetup {
    let server = ServerSettings {
        id: "suite".to_owned(),
        target: ServerTarget::Http(HttpSettings {
            url: url.to_owned(),
            token: None,
            client: registered_client(scenario),
        }),
        agent: None,
        prefix: String::new(),
        tools: None,
        form_defaults: true,
    };
    // No program is started, so no sandbox is needed.
    let launcher = Launcher::new(HelperCommand {
        program: "/nonexistent".into(),
        arguments: Vec::new(),
    });
    ServersSetup {
        servers: vec![server],
        launcher,
        strength: SandboxStrength::Full,
        pins: folder.join("pins.json"),
        grants: folder.join("grants.json"),
        grants_seal: None,
        masks: Masks::default(),
        secrets: Arc::new(MemorySecrets::default()),
        attachments: folder.join("attachments"),
        start_timeout: Duration::from_secs(20),
        backoff: Backoff::default(),
        progress: StartProgress::default(),
        reserved_names: BTreeSet::new(),
    }
}

/// Returns the OAuth client of scenarios with a client that is already registered.
fn registered_client(scenario: &str) -> Option<OauthClientSettings> {
    if scenario == "auth/basic-cimd" {
        // The client id that the suite expects: the address of the client's metadata.
        return Some(OauthClientSettings {
            id: "https://conformance-test.local/client-metadata.json".to_owned(),
            secret: None,
        });
    }
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok()?;
    let context: Value = serde_json::from_str(&context).ok()?;
    let secret = context["client_secret"].as_str();
    Some(OauthClientSettings {
        id: context["client_id"].as_str()?.to_owned(),
        secret: secret.map(|secret| EnvCredential {
            variable: "MCP_CONFORMANCE_CONTEXT".to_owned(),
            value: Some(Credential::fixed(
                "MCP_CONFORMANCE_CONTEXT",
                SecretValue::new(secret),
                &Masks::default(),
            )),
        }),
    })
}

/// Calls each tool once, as an agent would.
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
        trust: lango_core::Trust::Untrusted,
        inspection: Default::default(),
        output: Default::default(),
    };
    for tool in servers.tools() {
        let spec = tool.spec();
        let arguments = match spec.name.as_str() {
            "add_numbers" => json!({ "a": 5, "b": 3 }),
            "json_schema_echo" => {
                json!({ "schema": schema_of(servers, "json_schema_2020_12_tool") })
            }
            _ => json!({}),
        };
        let output = tool.run(&caller, Arc::new(arguments)).await;
        println!("{}: {output:?}", spec.name);
        output?;
    }
    Ok(())
}

/// Returns the schema of a tool as agents see it.
fn schema_of(servers: &Servers, name: &str) -> Value {
    let tool = servers.tools().iter().find(|tool| tool.spec().name == name);
    tool.map_or(Value::Null, |tool| Value::clone(&tool.spec().parameters))
}
