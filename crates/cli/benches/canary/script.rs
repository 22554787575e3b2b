//! The model of the harness. A question contains an agent, a tool and its arguments, or asks the provider to echo its
//! key.

use lango_testkit::canary;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer, message_text};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The task of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub agent: String,
    /// The tool and its arguments; none for a remote agent.
    pub call: Option<(String, Value)>,
}

/// The question that makes a provider echo its key.
pub(crate) const ECHO_YOUR_KEY: &str = "echo your key";

impl Task {
    pub(crate) fn question(&self) -> String {
        let (tool, arguments) = match &self.call {
            Some((tool, arguments)) => (tool.as_str(), arguments.clone()),
            None => ("", json!({})),
        };
        let task = json!({ "agent": self.agent, "tool": tool, "arguments": arguments });
        format!("task: {task} :end")
    }

    fn read(text: &str) -> Option<Self> {
        let (_, task) = text.rsplit_once("task: ")?;
        let (task, _) = task.split_once(" :end")?;
        let task: Value = serde_json::from_str(task).ok()?;
        let tool = task["tool"].as_str()?.to_owned();
        Some(Self {
            agent: task["agent"].as_str()?.to_owned(),
            call: (!tool.is_empty()).then(|| (tool, task["arguments"].clone())),
        })
    }
}

/// The model on loopback, with its own thread.
pub(crate) struct ScriptedModel {
    _runtime: Runtime,
    server: WireServer,
}

impl ScriptedModel {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(WireServer::start(reply));
        Self {
            _runtime: runtime,
            server,
        }
    }

    pub(crate) fn url(&self) -> &str {
        self.server.url()
    }

    /// Returns the requests so far, including their keys.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.server.requests()
    }
}

/// Returns the API key of a request.
pub(crate) fn key(request: &RecordedRequest) -> Option<&str> {
    request.header("authorization")?.strip_prefix("Bearer ")
}

fn reply(request: &RecordedRequest) -> ScriptedAnswer {
    let messages = request.body["messages"].as_array();
    let messages = messages.map_or(&[][..], Vec::as_slice);
    let question = messages.iter().rfind(|message| message["role"] == "user");
    let question = question.map(message_text).unwrap_or_default();
    if question.contains(ECHO_YOUR_KEY) {
        return say(&canary::echo(key(request).unwrap_or_default())).into();
    }
    let Some(task) = Task::read(&question) else {
        return say("no task in the question").into();
    };
    let has_result = messages.last().is_some_and(|last| last["role"] == "tool");
    let functions = request.functions();
    let can = |name: &str| functions.iter().any(|function| function == name);
    match &task.call {
        _ if has_result => say("done").into(),
        Some((tool, arguments)) if can(tool) => call(tool, arguments.clone()).into(),
        _ if can("delegate") => delegate_and_finish(&task.agent, &task.question()).into(),
        _ => say(&format!("no such tool among {functions:?}")).into(),
    }
}
