//! The real binary with a browser and a scripted model. The test site is the only host that it may contact.

use crate::common::rpc_client::{RpcClient, is_over, state};
use crate::common::server_process::{ServerLog, ServerProcess};
use crate::common::test_env::TestEnv;
use crate::processes::ProcessTracker;
use crate::script::{ScriptedModel, Task};
use crate::site::Site;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TURN_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the child processes of lango may live after it has exited.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The test site and the model, shared by all parts of the harness.
pub(crate) struct Harness {
    pub site: Site,
    model: ScriptedModel,
}

impl Harness {
    pub(crate) fn start() -> Self {
        let site = Site::start();
        let model = ScriptedModel::start(&site.host());
        Self { site, model }
    }

    /// Creates a home and a workspace, with additional lines of configuration.
    pub(crate) fn test_env(&self, more: &str) -> TestEnv {
        let configuration = format!(
            "agent.multiAgent = false\nagent.model = 'mock/any'\nagent.maxModelCalls = 100\n{more}\
             [providers.mock]\nkind = 'openai'\nbaseUrl = '{}'\n\
             [egress]\nallow = ['{}']\ndeny = ['*']\n\
             [[approval.rules]]\naction = 'allow'\n",
            self.model.url(),
            self.site.host(),
        );
        TestEnv::with_configuration(&configuration).with_browser()
    }
}

/// A `lango run` process for one task.
pub(crate) struct Run {
    pub child: Child,
    pub processes: ProcessTracker,
}

impl Run {
    pub(crate) fn start(test_env: &TestEnv, task: &Task) -> Self {
        let child = test_env
            .lango()
            .args(["run", &task.question()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let processes = ProcessTracker::new(child.id(), &test_env.home());
        Self { child, processes }
    }

    /// Waits for the exit and records the child processes meanwhile. Returns the exit code, or `None` after a signal.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let started = Instant::now();
        loop {
            self.processes.record();
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(
                started.elapsed() < TURN_TIMEOUT,
                "`lango run` does not exit"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A `lango serve` process with a client.
pub(crate) struct RunningServer {
    pub process: ServerProcess,
    pub processes: ProcessTracker,
    pub client: Client,
}

/// A client that sends tasks to a server, from any thread.
pub(crate) struct Client {
    server_log: ServerLog,
    rpc_client: RpcClient,
    messages: AtomicUsize,
}

impl RunningServer {
    pub(crate) fn start(test_env: &TestEnv) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let server_log = ServerLog::default();
        let process = ServerProcess::start(test_env, &test_env.home(), port, &server_log);
        let is_ready = process.is_ready_within(Duration::from_secs(20));
        assert!(is_ready, "{:?}", server_log.last());
        Self {
            processes: ProcessTracker::new(process.id(), &test_env.home()),
            client: Client {
                rpc_client: RpcClient::new(test_env, &test_env.home(), port),
                server_log,
                messages: AtomicUsize::new(0),
            },
            process,
        }
    }

    /// Shuts the server down, and waits until all its child processes have exited.
    pub(crate) fn end(&mut self) -> Result<Duration, String> {
        self.processes.record();
        self.process.end(EXIT_TIMEOUT);
        match self.client.server_log.crashes() {
            crashes if crashes.is_empty() => self.processes.wait_for_none(EXIT_TIMEOUT),
            crashes => Err(crashes.join("; ")),
        }
    }
}

impl Client {
    /// Sends a task in a conversation and waits for the answer.
    pub(crate) fn ask(&self, conversation: &str, task: &Task) -> Result<String, String> {
        let answered = self.send(conversation, task, false)?;
        let text = &answered["artifacts"][0]["parts"][0]["text"];
        match (state(&answered), text.as_str()) {
            ("COMPLETED", Some(text)) => Ok(text.to_owned()),
            _ => Err(format!(
                "{task:?}: {answered}; {:?}",
                self.server_log.last()
            )),
        }
    }

    /// Sends a task without waiting for the answer. Returns the id of the A2A task.
    pub(crate) fn start_task(&self, conversation: &str, task: &Task) -> Result<String, String> {
        let started = self.send(conversation, task, true)?;
        let id = started["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| format!("no task: {started}"))
    }

    fn send(
        &self,
        conversation: &str,
        task: &Task,
        returns_immediately: bool,
    ) -> Result<Value, String> {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let message = json!({
            "message": {
                "messageId": format!("m-{number}"),
                "contextId": conversation,
                "role": "ROLE_USER",
                "parts": [{ "text": task.question() }],
            },
            "configuration": { "returnImmediately": returns_immediately },
        });
        let sent = self.rpc_client.rpc("SendMessage", message, TURN_TIMEOUT);
        let sent =
            sent.map_err(|error| format!("{task:?}: {error:?}; {:?}", self.server_log.last()))?;
        Ok(sent["task"].clone())
    }

    /// Cancels a task. Returns how long it took until the task had ended.
    pub(crate) fn cancel(&self, id: &str) -> Result<Duration, String> {
        let started = Instant::now();
        let cancelled = self
            .rpc_client
            .rpc("CancelTask", json!({ "id": id }), TURN_TIMEOUT);
        cancelled.map_err(|error| format!("{error:?}"))?;
        while !self.rpc_client.task(id).is_some_and(|task| is_over(&task)) {
            if started.elapsed() > TURN_TIMEOUT {
                return Err("a cancelled task does not end".to_owned());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(started.elapsed())
    }
}
