//! The model of the harnesses. Its replies depend only on the request, so they are the same before and after a crash.
//! The orchestrator delegates each job to the operator. The operator reads a file (pure), writes a file (idempotent)
//! and runs a command that adds a line to the effects file (effect), one call after the other or all in one reply.

use lango_core::ModelReply;
use lango_testkit::model::{calls, delegate, delegate_and_finish, say};
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The name of the effects file in the workspace.
pub(crate) const EFFECTS_FILE: &str = "effects";

/// The model on loopback, with its own thread.
pub(crate) struct ScriptedProvider {
    _runtime: Runtime,
    server: WireServer,
}

impl ScriptedProvider {
    /// Starts the model. A reply takes between `min` and `max`, depending on the number of the job.
    pub(crate) fn start(min: Duration, max: Duration) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let script = move |request: &RecordedRequest| {
            let number = last_job(request).unwrap_or_default();
            let spread = (max - min) * u32::try_from(number * 7 % 11).unwrap_or(0) / 10;
            ScriptedAnswer::from(reply(request, number)).after(min + spread)
        };
        let server = runtime
            .block_on(WireServer::start(script))
            .without_recording();
        Self {
            _runtime: runtime,
            server,
        }
    }

    pub(crate) fn url(&self) -> &str {
        self.server.url()
    }
}

/// Returns the message that a client sends for a job.
pub(crate) fn question(number: u64) -> String {
    format!("please do job-{number}.")
}

/// Returns the final answer for a job.
pub(crate) fn answer(number: u64) -> String {
    format!("done with job-{number}.")
}

/// Returns the content of a job's file.
pub(crate) fn content(number: u64) -> String {
    format!("job-{number}\n")
}

/// Returns the number of the last job that a text mentions.
pub(crate) fn job_in(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once("job-")?;
    let end = after.find(|c: char| !c.is_ascii_digit());
    after[..end.unwrap_or(after.len())].parse().ok()
}

fn reply(request: &RecordedRequest, number: u64) -> ModelReply {
    let functions = request.functions();
    let can = |name: &str| functions.iter().any(|function| function == name);
    let results = results_since_the_question(request);
    if can("delegate") && results == 0 {
        let task = format!("do job-{number}.");
        return match number % 2 {
            0 => delegate_and_finish("operator", &task),
            _ => delegate("operator", &task),
        };
    }
    if can("exec") {
        let steps = steps(number);
        // Every third job makes all calls in one reply.
        let next = match number % 3 {
            0 if results == 0 => &steps[..],
            0 => &[],
            _ => steps.get(results..=results).unwrap_or_default(),
        };
        if !next.is_empty() {
            let next = next
                .iter()
                .map(|(name, arguments)| (*name, arguments.clone()));
            return calls(next);
        }
    }
    say(&answer(number))
}

/// Returns one call of each effect class.
fn steps(number: u64) -> [(&'static str, Value); 3] {
    let command =
        format!("printf '%s\\n' \"{number} $LANGO_CALL_KEY\" >> {EFFECTS_FILE} # job-{number}");
    [
        ("fs_read", json!({ "path": "notes.md" })),
        (
            "fs_write",
            json!({ "path": format!("written/{number}"), "content": content(number) }),
        ),
        ("exec", json!({ "command": command })),
    ]
}

fn messages(request: &RecordedRequest) -> &[Value] {
    let messages = request.body["messages"].as_array();
    messages.map_or(&[], Vec::as_slice)
}

/// Returns the index and the job of the last user message that mentions a job: the question or the task.
fn find_question(request: &RecordedRequest) -> Option<(usize, u64)> {
    let job = |message: &Value| {
        let is_user = message["role"] == "user";
        is_user.then(|| job_in(message["content"].as_str()?))?
    };
    let mut backwards = messages(request).iter().enumerate().rev();
    backwards.find_map(|(at, message)| Some((at, job(message)?)))
}

fn last_job(request: &RecordedRequest) -> Option<u64> {
    find_question(request).map(|(_, number)| number)
}

fn results_since_the_question(request: &RecordedRequest) -> usize {
    let after = find_question(request).map_or(0, |(at, _)| at);
    let after = &messages(request)[after..];
    after
        .iter()
        .filter(|message| message["role"] == "tool")
        .count()
}
