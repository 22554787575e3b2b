//! A workspace with a scripted server in it, beside a folder of lango's own.

use lango_core::{Tool, ToolError};
use lango_mcp::{Pauses, Program, Progress, Reach, ServerSettings, Servers, Setup, Start};
use lango_sandbox::{Helper, Launcher, Limits, Policy, Strength};
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::secrets::MemorySecrets;
use lango_testkit::{mcp_server, tool::caller};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A place for servers.
pub struct Bench {
    folder: TempDir,
    pub patience: Duration,
    pub pauses: Pauses,
    pub strength: Strength,
    pub taken: BTreeSet<String>,
    pub masks: Masks,
    pub secrets: Arc<MemorySecrets>,
}

/// A token whose value is known.
pub fn credential(value: &str) -> Credential {
    Credential::fixed("TOKEN", SecretValue::new(value), &Masks::default())
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let bench = Self {
            folder,
            patience: Duration::from_secs(20),
            pauses: Pauses::default(),
            strength: Strength::Full,
            taken: BTreeSet::new(),
            masks: Masks::default(),
            secrets: Arc::default(),
        };
        std::fs::write(bench.inside("server.py"), mcp_server::PROGRAM).unwrap();
        bench
    }

    /// A path in the workspace.
    pub fn inside(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("workspace")
            .join(name)
    }

    /// A path in lango's own folder.
    pub fn own(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("own")
            .join(name)
    }

    /// What the server was told so far, a message each.
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.inside("log")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The methods of what the server was told so far.
    pub fn methods(&self) -> Vec<String> {
        let log = self.log();
        let methods = log.iter().filter_map(|message| message["method"].as_str());
        methods.map(str::to_owned).collect()
    }

    /// A scripted server with these arguments, which is called `s`.
    pub fn server(&self, arguments: &[&str]) -> ServerSettings {
        let mut argv: Vec<String> = ["python3", "server.py", "--log", "log"]
            .map(String::from)
            .into();
        argv.extend(arguments.iter().map(|word| (*word).to_owned()));
        ServerSettings {
            id: "s".to_owned(),
            reach: Reach::Program(Box::new(Program {
                argv,
                env: Vec::new(),
                proxy: None,
                data: Vec::new(),
                policy: Policy::of(self.inside("")),
                limits: Limits::default(),
                agents: Policy::of(self.folder.path().canonicalize().unwrap().join("agents")),
                copies: self.own("copies"),
            })),
            agent: None,
            prefix: "s_".to_owned(),
            tools: None,
            form_defaults: false,
        }
    }

    pub fn setup(&self, servers: Vec<ServerSettings>) -> Setup {
        Setup {
            servers,
            launcher: launcher(),
            strength: self.strength.clone(),
            pins: self.own("mcp.json"),
            grants: self.own("grants.json"),
            grants_seal: None,
            masks: self.masks.clone(),
            secrets: Arc::clone(&self.secrets) as _,
            attachments: self.own("attachments"),
            patience: self.patience,
            pauses: self.pauses,
            progress: Progress::default(),
            taken: self.taken.clone(),
        }
    }

    pub async fn open(&self, servers: Vec<ServerSettings>) -> Servers {
        Servers::open(self.setup(servers), Start::ConnectUnpinned).await
    }

    /// The scripted server with these arguments, open.
    pub async fn opened(&self, arguments: &[&str]) -> Servers {
        self.open(vec![self.server(arguments)]).await
    }
}

pub fn launcher() -> Launcher {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_lango-mcp-helper"));
    Launcher::new(Helper {
        program,
        arguments: Vec::new(),
    })
}

pub fn tool(servers: &Servers, name: &str) -> Arc<dyn Tool> {
    let found = servers.tools().iter().find(|tool| tool.spec().name == name);
    let names: Vec<&str> = servers
        .tools()
        .iter()
        .map(|tool| tool.spec().name.as_str())
        .collect();
    Arc::clone(
        found.unwrap_or_else(|| panic!("no tool {name} among {names:?}; {:?}", servers.warnings())),
    )
}

pub async fn call(servers: &Servers, name: &str, arguments: Value) -> Result<String, ToolError> {
    let output = tool(servers, name)
        .run(&caller(), Arc::new(arguments))
        .await;
    output.map(|output| output.text)
}

/// Waits until something holds; the test fails if it never does.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
