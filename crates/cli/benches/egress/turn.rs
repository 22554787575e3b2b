//! The tools of the battery: called by a turn of the real binary whose model does what the battery says, or in this process
//! behind a guard that lacks a check.

use crate::drivers::egress;
use lango_browser::{BrowserLauncher, BrowserSetup, Sessions, browser_tools, find_browser};
use lango_cli::hands::SANDBOX_MARK;
use lango_core::{ModelReply, Tool};
use lango_net::{Check, SeenLinks};
use lango_sandbox::{Helper, Launcher, Policy};
use lango_testkit::model::{call, say};
use lango_testkit::wire_server::{Answer, Recorded, WireServer};
use lango_tools::{CommandLimits, CommandProxy, CommandSetup, Commands, Workspace, command_tools};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Calls of one turn; its messages grow with each.
const MOST_CALLS: usize = 60;
/// How long one call may take.
const LONGEST_CALL: Duration = Duration::from_secs(130);

/// What calls tools.
pub trait Caller {
    /// Calls a tool and gives its result, or why it failed.
    fn call(&mut self, tool: &str, arguments: Value) -> String;

    /// The folder of the agents.
    fn workspace(&self) -> PathBuf;
}

/// `lango run`, whose model makes the calls of the battery.
pub struct Turn {
    folder: TempDir,
    running: Option<Running>,
    count: usize,
}

struct Running {
    child: Child,
    calls: Option<Sender<ModelReply>>,
    results: Receiver<String>,
    _server: WireServer,
    _runtime: Runtime,
}

impl Turn {
    /// Nothing is started before the first call.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "workspace"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            running: None,
            count: 0,
        }
    }

    fn start(&self) -> Running {
        let runtime = Runtime::new().unwrap();
        let (calls, next_call) = channel();
        let (send_result, results) = channel();
        let server = runtime.block_on(WireServer::start(script(next_call, send_result)));
        let server = server.forgetful();
        let home = self.folder.path().join("home");
        fs::write(home.join("lango.toml"), config(server.url())).unwrap();
        let output = fs::File::create(self.output()).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_lango"))
            .args(["run", "follow the script"])
            .current_dir(self.workspace())
            .env_clear()
            .env("LANGO_HOME", &home)
            .env("HOME", &home)
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .unwrap();
        let running = Running {
            child,
            calls: Some(calls),
            results,
            _server: server,
            _runtime: runtime,
        };
        self.wait_for_result(&running);
        running
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    fn wait_for_result(&self, running: &Running) -> String {
        running
            .results
            .recv_timeout(LONGEST_CALL)
            .unwrap_or_else(|error| {
                let output = fs::read_to_string(self.output()).unwrap_or_default();
                panic!("`lango run` makes no further request ({error}): {output}")
            })
    }
}

impl Caller for Turn {
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        if self.count.is_multiple_of(MOST_CALLS) {
            self.running = None;
        }
        self.count += 1;
        let running = self.running.take().unwrap_or_else(|| self.start());
        let calls = running.calls.as_ref().unwrap();
        calls.send(call(tool, arguments)).unwrap();
        let result = self.wait_for_result(&running);
        self.running = Some(running);
        assert!(
            !result.contains("nothing more can be called"),
            "the turn was stopped: {result}"
        );
        result
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without a further call the model says that it is done.
        self.calls = None;
        let _ = self.child.wait();
    }
}

/// Gives the battery the result of the last call, and waits for the next one.
fn script(
    calls: Receiver<ModelReply>,
    results: Sender<String>,
) -> impl Fn(&Recorded) -> Answer + Send + Sync + 'static {
    let ends = Mutex::new((calls, results));
    move |request| {
        let messages = request.body["messages"].as_array();
        let last = messages.and_then(|messages| messages.last());
        let content = last.map(|message| message["content"].to_string());
        let ends = ends.lock().unwrap();
        let _ = ends.1.send(content.unwrap_or_default());
        let next = ends.0.recv();
        next.unwrap_or_else(|_| say("done")).into()
    }
}

fn config(model: &str) -> String {
    format!(
        r#"
[agent]
multiAgent = false
model = "script/model"
maxModelCalls = 1000
maxToolCalls = 1000
turnTimeout = "30m"
[providers.script]
kind = "openai"
baseUrl = "{model}/v1"
[egress]
maxRequests = 10000000
[browser]
enabled = true
[tools.exec]
network = ["*"]
[[approval.rules]]
action = "allow"
"#
    )
}

/// The tools of commands and of the browser, behind a guard without some of its checks.
pub struct InProcessTools {
    tools: Vec<Arc<dyn Tool>>,
    runtime: Runtime,
    folder: TempDir,
}

impl InProcessTools {
    pub fn new(without: &[Check]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let policy = Policy::of(workspace);
        let sandbox = Launcher::new(Helper {
            program: env!("CARGO_BIN_EXE_lango").into(),
            arguments: vec![SANDBOX_MARK.into()],
        });
        let egress = egress(without);
        let commands = Commands::new(CommandSetup {
            launcher: sandbox.clone(),
            policy: policy.clone(),
            outputs: folder.path().join("outputs"),
            limits: CommandLimits::default(),
            proxy: Some(CommandProxy {
                egress: egress.clone(),
                hosts: vec!["*".parse().unwrap()],
            }),
        });
        let sessions = Sessions::new(BrowserSetup {
            launcher: BrowserLauncher {
                program: find_browser(None, std::env::var_os("PATH").as_deref()).unwrap(),
                sandbox,
                directory: folder.path().join("browsers"),
                egress,
                workspace: Workspace::open(policy).unwrap(),
            },
            seen_links: SeenLinks::default(),
            idle_time: Duration::from_secs(300),
            search_url: "http://public.example/?q={query}".to_owned(),
        });
        let mut tools = command_tools(&commands);
        tools.extend(browser_tools(&sessions));
        Self {
            tools,
            runtime: Runtime::new().unwrap(),
            folder,
        }
    }
}

impl Caller for InProcessTools {
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let mut tools = self.tools.iter();
        let tool = tools.find(|known| known.spec().name == tool).unwrap();
        let arguments = Arc::new(arguments);
        self.runtime.block_on(async {
            let mut caller = lango_testkit::tool::caller();
            caller.inspection = tool.inspect(&caller, Arc::clone(&arguments)).await;
            match tool.run(&caller, arguments).await {
                Ok(output) => output.text,
                Err(error) => error.message,
            }
        })
    }

    fn workspace(&self) -> PathBuf {
        let folder: &Path = self.folder.path();
        folder.join("workspace")
    }
}
