//! A workspace with a scripted server, next to lango's own folder.

use lango_core::{Tool, ToolError};
use lango_mcp::{
    Backoff, ProgramSettings, ServerSettings, ServerTarget, Servers, ServersSetup, StartMode,
    StartProgress,
};
use lango_sandbox::{HelperCommand, Launcher, Policy, ResourceLimits, SandboxStrength};
use lango_secrets::{Credential, Masks, SecretValue};
use lango_testkit::secrets::MemorySecrets;
use lango_testkit::{mcp_server, tool::caller};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The environment for a test's servers.
pub(crate) struct Bench {
    folder: TempDir,
    pub start_timeout: Duration,
    pub backoff: Backoff,
    pub strength: SandboxStrength,
    pub reserved_names: BTreeSet<String>,
    pub masks: Masks,
    pub secrets: Arc<MemorySecrets>,
}

/// Returns a credential with this value.
pub(crate) fn credential(value: &str) -> Credential {
    Credential::fixed("TOKEN", SecretValue::new(value), &Masks::default())
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let bench = Self {
            folder,
            start_timeout: Duration::from_secs(20),
            backoff: Backoff::default(),
            strength: SandboxStrength::Full,
            reserved_names: BTreeSet::new(),
            masks: Masks::default(),
            secrets: Arc::default(),
        };
        std::fs::write(bench.inside("server.py"), mcp_server::PROGRAM).unwrap();
        bench
    }

    /// Returns a path in the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("workspace")
            .join(name)
    }

    /// Returns a path in lango's own folder.
    pub(crate) fn own(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("own")
            .join(name)
    }

    /// Returns the messages that the server has received so far.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.inside("log")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the methods of the messages that the server has received so far.
    pub(crate) fn methods(&self) -> Vec<String> {
        let log = self.log();
        let methods = log.iter().filter_map(|message| message["method"].as_str());
        methods.map(str::to_owned).collect()
    }

    /// Returns the settings of a scripted server `s` with these arguments.
    pub(crate) fn server(&self, arguments: &[&str]) -> ServerSettings {
        let mut argv: Vec<String> = ["python3", "server.py", "--log", "log"]
            .map(String::from)
            .into();
        argv.extend(arguments.iter().map(|word| (*word).to_owned()));
        ServerSettings {
            id: "s".to_owned(),
            target: ServerTarget::Program(Box::new(ProgramSettings {
                argv,
                env: Vec::new(),
                proxy: None,
                data: Vec::new(),
                policy: Policy::of(self.inside("")),
                limits: ResourceLimits::default(),
                agents: Policy::of(self.folder.path().canonicalize().unwrap().join("agents")),
                copies: self.own("copies"),
            })),
            agent: None,
            prefix: "s_".to_owned(),
            tools: None,
            form_defaults: false,
        }
    }

    pub(crate) fn setup(&self, servers: Vec<ServerSettings>) -> ServersSetup {
        ServersSetup {
            servers,
            launcher: launcher(),
            strength: self.strength.clone(),
            pins: self.own("mcp.json"),
            grants: self.own("grants.json"),
            grants_seal: None,
            masks: self.masks.clone(),
            secrets: Arc::clone(&self.secrets) as _,
            attachments: self.own("attachments"),
            start_timeout: self.start_timeout,
            backoff: self.backoff,
            progress: StartProgress::default(),
            reserved_names: self.reserved_names.clone(),
        }
    }

    pub(crate) async fn open(&self, servers: Vec<ServerSettings>) -> Servers {
        Servers::open(self.setup(servers), StartMode::ConnectUnpinned).await
    }

    /// Opens the scripted server with these arguments.
    pub(crate) async fn opened(&self, arguments: &[&str]) -> Servers {
        self.open(vec![self.server(arguments)]).await
    }
}

pub(crate) fn launcher() -> Launcher {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_lango-mcp-helper"));
    Launcher::new(HelperCommand {
        program,
        arguments: Vec::new(),
    })
}

pub(crate) fn tool(servers: &Servers, name: &str) -> Arc<dyn Tool> {
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

pub(crate) async fn call(
    servers: &Servers,
    name: &str,
    arguments: Value,
) -> Result<String, ToolError> {
    let output = tool(servers, name)
        .run(&caller(), Arc::new(arguments))
        .await;
    output.map(|output| output.text)
}

/// Waits until a condition is true; fails the test if that takes too long.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
