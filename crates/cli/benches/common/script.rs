//! The model of the harnesses. What it answers follows from the request alone, so that it is the same before and after a
//! crash: the orchestrator gives each job to the operator, who reads a file (pure), writes one (idempotent) and runs a
//! command that adds a line to the file of effects (effect), one after the other or all at once.

use lango_core::ModelReply;
use lango_testkit::model::{calls, delegate, delegate_and_finish, say};
use lango_testkit::wire_server::{Answer, Recorded, WireServer};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The file of effects in the workspace.
pub const EFFECTS_FILE: &str = "effects";

/// The model on loopback, on a thread of its own.
pub struct ScriptedProvider {
    _runtime: Runtime,
    server: WireServer,
}

impl ScriptedProvider {
    /// Each reply takes at least `shortest`, and up to `longest` by the job's number.
    pub fn start(shortest: Duration, longest: Duration) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let script = move |request: &Recorded| {
            let number = last_job(request).unwrap_or_default();
            let spread = (longest - shortest) * u32::try_from(number * 7 % 11).unwrap_or(0) / 10;
            Answer::from(reply(request, number)).after(shortest + spread)
        };
        let server = runtime.block_on(WireServer::start(script)).forgetful();
        Self {
            _runtime: runtime,
            server,
        }
    }

    pub fn url(&self) -> &str {
        self.server.url()
    }
}

/// What a client says.
pub fn question(number: u64) -> String {
    format!("please do job-{number}.")
}

/// What is answered when it is done.
pub fn answer(number: u64) -> String {
    format!("done with job-{number}.")
}

/// What is in the file of a job.
pub fn content(number: u64) -> String {
    format!("job-{number}\n")
}

/// The number of the job that a text speaks of last.
pub fn job_in(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once("job-")?;
    let end = after.find(|c: char| !c.is_ascii_digit());
    after[..end.unwrap_or(after.len())].parse().ok()
}

fn reply(request: &Recorded, number: u64) -> ModelReply {
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
        // Every third job does all at once.
        let wanted = match number % 3 {
            0 if results == 0 => &steps[..],
            0 => &[],
            _ => steps.get(results..=results).unwrap_or_default(),
        };
        if !wanted.is_empty() {
            let wanted = wanted
                .iter()
                .map(|(name, arguments)| (*name, arguments.clone()));
            return calls(wanted);
        }
    }
    say(&answer(number))
}

/// One call of each class.
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

fn messages(request: &Recorded) -> &[Value] {
    let messages = request.body["messages"].as_array();
    messages.map_or(&[], Vec::as_slice)
}

/// The question or task is the last thing that anybody but an agent said about a job.
fn place_of_question(request: &Recorded) -> Option<(usize, u64)> {
    let job = |message: &Value| {
        let is_said = message["role"] == "user";
        is_said.then(|| job_in(message["content"].as_str()?))?
    };
    let mut backwards = messages(request).iter().enumerate().rev();
    backwards.find_map(|(at, message)| Some((at, job(message)?)))
}

fn last_job(request: &Recorded) -> Option<u64> {
    place_of_question(request).map(|(_, number)| number)
}

fn results_since_the_question(request: &Recorded) -> usize {
    let after = place_of_question(request).map_or(0, |(at, _)| at);
    let after = &messages(request)[after..];
    after
        .iter()
        .filter(|message| message["role"] == "tool")
        .count()
}
