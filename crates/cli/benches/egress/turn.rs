//! Calls lango's tools: in a turn of the real binary with a scripted model, or in this process behind a guard without
//! some of its checks.

use crate::drivers::egress;
use lango::app::sandbox_setup::SANDBOX_ARGUMENT;
use lango_browser::{BrowserLauncher, BrowserSessions, BrowserSetup, browser_tools, find_browser};
use lango_core::{ModelReply, Tool};
use lango_engine::SystemClock;
use lango_net::{Check, SeenLinks};
use lango_sandbox::{HelperCommand, Launcher, Policy};
use lango_store::Store;
use lango_testkit::model::{calls, say};
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer};
use lango_tools::{CommandLimits, CommandProxy, CommandSetup, Commands, Workspace, command_tools};
use lango_web::{FetchParts, fetch_tool};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Maximum number of calls in one turn, because its messages grow with each call.
const MAX_CALLS: usize = 300;
/// Calls that the model makes in one reply. lango runs only the first ones of a longer list.
const CALLS_PER_REPLY: usize = 25;
const CALL_TIMEOUT: Duration = Duration::from_secs(130);

/// A way to call lango's tools.
pub(crate) trait ToolCaller {
    /// Calls a tool once for each of the arguments. Returns the result or error of each call.
    fn call_all(&mut self, tool: &str, arguments: Vec<Value>) -> Vec<String>;

    /// Calls a tool and returns its result or error.
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        self.call_all(tool, vec![arguments]).remove(0)
    }

    fn workspace(&self) -> PathBuf;
}

/// A `lango run` whose model makes the requested calls.
pub(crate) struct ScriptedTurn {
    folder: TempDir,
    running: Option<RunningTurn>,
    count: usize,
    settings: String,
}

struct RunningTurn {
    child: Child,
    calls: Option<Sender<ModelReply>>,
    results: Receiver<Vec<String>>,
    _server: WireServer,
    _runtime: Runtime,
}

impl ScriptedTurn {
    /// Creates the folders. The first call starts lango.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "workspace"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            running: None,
            count: 0,
            settings: "[egress]\nmaxRequests = 10000000\n".to_owned(),
        }
    }

    /// Creates a turn with other settings of the guard, given as a part of `lango.toml`.
    pub(crate) fn with_settings(settings: &str) -> Self {
        Self {
            settings: settings.to_owned(),
            ..Self::new()
        }
    }

    /// Starts lango before the first call, so that its start is not part of the measured time.
    pub(crate) fn start_now(&mut self) {
        if self.running.is_none() {
            self.running = Some(self.start());
        }
    }

    /// Returns the peak memory of lango in MiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let running = self.running.as_ref().unwrap();
        let status = format!("/proc/{}/status", running.child.id());
        let status = fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap() / 1024
    }

    fn start(&self) -> RunningTurn {
        let runtime = Runtime::new().unwrap();
        let (calls, next_call) = channel();
        let (send_result, results) = channel();
        let server = runtime.block_on(WireServer::start(script(next_call, send_result)));
        let server = server.without_recording();
        let home = self.folder.path().join("home");
        fs::write(
            home.join("lango.toml"),
            config(server.url(), &self.settings),
        )
        .unwrap();
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
        let running = RunningTurn {
            child,
            calls: Some(calls),
            results,
            _server: server,
            _runtime: runtime,
        };
        self.wait_for_results(&running);
        running
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    fn wait_for_results(&self, running: &RunningTurn) -> Vec<String> {
        running
            .results
            .recv_timeout(CALL_TIMEOUT)
            .unwrap_or_else(|error| {
                let output = fs::read_to_string(self.output()).unwrap_or_default();
                panic!("`lango run` made no further request ({error}): {output}")
            })
    }
}

impl ToolCaller for ScriptedTurn {
    fn call_all(&mut self, tool: &str, arguments: Vec<Value>) -> Vec<String> {
        let replies = arguments.chunks(CALLS_PER_REPLY);
        let results =
            replies.flat_map(|arguments| self.call_in_one_reply(tool, arguments.to_vec()));
        results.collect()
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }
}

impl ScriptedTurn {
    fn call_in_one_reply(&mut self, tool: &str, arguments: Vec<Value>) -> Vec<String> {
        let count = arguments.len();
        if self.count + count > MAX_CALLS {
            self.running = None;
            self.count = 0;
        }
        self.count += count;
        let running = self.running.take().unwrap_or_else(|| self.start());
        let reply = calls(arguments.into_iter().map(|arguments| (tool, arguments)));
        running.calls.as_ref().unwrap().send(reply).unwrap();
        let results = self.wait_for_results(&running);
        self.running = Some(running);
        assert_eq!(
            results.len(),
            count,
            "some calls have no result: {results:?}"
        );
        for result in &results {
            assert!(
                !result.contains("nothing more can be called"),
                "the turn was stopped: {result}"
            );
        }
        results
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        // When the channel is closed, the model ends the turn.
        self.calls = None;
        let _ = self.child.wait();
    }
}

/// Returns a script that sends the results of the last calls to the battery, and waits for the next calls.
fn script(
    calls: Receiver<ModelReply>,
    results: Sender<Vec<String>>,
) -> impl Fn(&RecordedRequest) -> ScriptedAnswer + Send + Sync + 'static {
    let ends = Mutex::new((calls, results));
    move |request| {
        let messages = request.body["messages"].as_array();
        let last = messages.into_iter().flatten().rev();
        let last = last.take_while(|message| message["role"] == "tool");
        let mut contents: Vec<String> = last.map(|tool| tool["content"].to_string()).collect();
        contents.reverse();
        let ends = ends.lock().unwrap();
        let _ = ends.1.send(contents);
        let next = ends.0.recv();
        next.unwrap_or_else(|_| say("done")).into()
    }
}

fn config(model: &str, settings: &str) -> String {
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
{settings}
[browser]
enabled = true
[tools.exec]
network = ["*"]
[[approval.rules]]
action = "allow"
"#
    )
}

/// The command, browser and web tools in this process, behind a guard without some of its checks.
pub(crate) struct InProcessTools {
    tools: Vec<Arc<dyn Tool>>,
    runtime: Runtime,
    folder: TempDir,
}

impl InProcessTools {
    pub(crate) fn new(without: &[Check]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let policy = Policy::of(workspace);
        let sandbox = Launcher::new(HelperCommand {
            program: env!("CARGO_BIN_EXE_lango").into(),
            arguments: vec![SANDBOX_ARGUMENT.into()],
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
            secrets: None,
        });
        let sessions = BrowserSessions::new(BrowserSetup {
            launcher: BrowserLauncher {
                program: find_browser(None, std::env::var_os("PATH").as_deref()).unwrap(),
                sandbox,
                directory: folder.path().join("browsers"),
                egress: egress.clone(),
                workspace: Workspace::open(policy).unwrap(),
            },
            seen_links: SeenLinks::default(),
            idle_time: Duration::from_secs(300),
            search_url: "http://public.example/?q={query}".to_owned(),
        });
        let mut tools = command_tools(&commands);
        tools.extend(browser_tools(&sessions));
        tools.push(fetch_tool(FetchParts {
            egress,
            links: SeenLinks::default(),
            cache: Arc::new(Store::in_memory()),
            clock: Arc::new(SystemClock),
        }));
        Self {
            tools,
            runtime: Runtime::new().unwrap(),
            folder,
        }
    }
}

impl ToolCaller for InProcessTools {
    fn call_all(&mut self, tool: &str, arguments: Vec<Value>) -> Vec<String> {
        let mut tools = self.tools.iter();
        let tool = tools.find(|known| known.spec().name == tool).unwrap();
        let call = async |arguments| {
            let arguments = Arc::new(arguments);
            let mut caller = lango_testkit::tool::caller();
            caller.inspection = tool.inspect(&caller, Arc::clone(&arguments)).await;
            match tool.run(&caller, arguments).await {
                Ok(output) => output.text,
                Err(error) => error.message,
            }
        };
        let run = |arguments| self.runtime.block_on(call(arguments));
        arguments.into_iter().map(run).collect()
    }

    fn workspace(&self) -> PathBuf {
        let folder: &Path = self.folder.path();
        folder.join("workspace")
    }
}
