//! A scripted agent on loopback, for both bindings. It refuses invalid requests, so every test also checks what the
//! client sends.

use super::support::{Action, Answer, End, ReceivedRequest, Server, json, response, sse};
use futures_util::StreamExt;
use lango_a2a::client::{A2aAgent, Binding, RemoteSettings, RemoteTimeouts, connect};
use lango_core::{RemoteAgent, RemoteAnswer, RemoteCall, RemoteError, RemoteEvent, RemoteThread};
use lango_secrets::{Credential, Masks, SecretValue};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const BOTH: [Binding; 2] = [Binding::JsonRpc, Binding::HttpJson];

/// An operation that the client requested, over either binding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Send(Value),
    Stream(Value),
    Get(String),
    Subscribe(String),
    Cancel(String),
}

/// The reply of the scripted agent.
#[derive(Debug, Clone)]
pub(crate) enum ScriptedReply {
    Whole(Value),
    Stream(Vec<Value>, End),
    /// An error: its protocol code, its reason and its message.
    Error(i32, &'static str, String),
    /// Raw actions on the connection.
    Raw(Answer),
}

pub(crate) struct Scripted {
    pub server: Server,
    pub binding: Binding,
}

/// Returns a card for a server at this URL.
pub(crate) fn card(url: &str, binding: Binding, streams: bool) -> Value {
    json!({
        "name": "Helper", "description": "Helps.", "version": "1",
        "supportedInterfaces": [
            { "url": format!("{url}/a2a"), "protocolBinding": binding.name(), "protocolVersion": "1.0" },
        ],
        "capabilities": { "streaming": streams },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "Summing", "description": "Adds numbers.", "tags": [] }],
    })
}

impl Scripted {
    pub(crate) async fn start(
        binding: Binding,
        streams: bool,
        script: impl Fn(&Op) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let server = Server::start(move |request| answer(binding, streams, request, &script)).await;
        Self { server, binding }
    }

    pub(crate) async fn agent(&self) -> Arc<A2aAgent> {
        connect(&settings(&self.server.url), &timeouts())
            .await
            .unwrap()
    }

    /// Returns the operations that were requested, without the card.
    pub(crate) fn operations(&self) -> Vec<Op> {
        let requests = self.server.requests();
        let operations = requests.iter().filter(|one| !one.path.ends_with(".json"));
        operations
            .map(|one| op(self.binding, one).unwrap())
            .collect()
    }
}

/// Returns timeouts that are long enough for a loaded machine, with intervals that are short enough for a test.
pub(crate) fn timeouts() -> RemoteTimeouts {
    RemoteTimeouts {
        card: Duration::from_secs(20),
        connect: Duration::from_secs(20),
        idle: Duration::from_secs(20),
        reply: Duration::from_secs(20),
        poll_interval: Duration::from_millis(2),
        retry_interval: Duration::from_millis(5),
    }
}

pub(crate) fn token(value: &str, masks: &Masks) -> Credential {
    Credential::fixed("HELPER_TOKEN", SecretValue::new(value), masks)
}

pub(crate) fn settings(url: &str) -> RemoteSettings {
    let masks = Masks::default();
    RemoteSettings {
        name: "helper".into(),
        card_url: url.to_owned(),
        token: Some(token("s3cret-t0ken", &masks)),
        headers: Vec::new(),
        timeout: None,
        masks,
        token_source: "environment variable `HELPER_TOKEN`".to_owned(),
    }
}

fn answer(
    binding: Binding,
    streams: bool,
    request: &ReceivedRequest,
    script: &(impl Fn(&Op) -> ScriptedReply + ?Sized),
) -> Answer {
    if request.header("a2a-version") != Some("1.0") || request.header("accept-encoding").is_some() {
        return response(400, &[], "wrong headers");
    }
    if request.header("authorization") != Some("Bearer s3cret-t0ken") {
        return response(401, &[], "");
    }
    if request.path == "/.well-known/agent-card.json" {
        let url = format!("http://{}", request.header("host").unwrap());
        return json(200, &card(&url, binding, streams));
    }
    match op(binding, request) {
        Err(why) => response(
            400,
            &[],
            &format!("{{\"error\":{{\"message\":\"{why}\"}}}}"),
        ),
        Ok(op) => deliver(binding, script(&op)),
    }
}

fn op(binding: Binding, request: &ReceivedRequest) -> Result<Op, String> {
    let body = &request.body;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if binding == Binding::JsonRpc {
        let is_envelope = body["jsonrpc"] == "2.0" && !body["id"].is_null();
        if request.method != "POST" || request.path != "/a2a" || !is_envelope {
            return Err("no JSON-RPC request".to_owned());
        }
        let params = &body["params"];
        return match body["method"].as_str().unwrap_or_default() {
            "SendMessage" => Ok(Op::Send(params.clone())),
            "SendStreamingMessage" => Ok(Op::Stream(params.clone())),
            "GetTask" => Ok(Op::Get(text(&params["id"]))),
            "SubscribeToTask" => Ok(Op::Subscribe(text(&params["id"]))),
            "CancelTask" => Ok(Op::Cancel(text(&params["id"]))),
            other => Err(format!("no method {other}")),
        };
    }
    let path = request
        .path
        .strip_prefix("/a2a/")
        .ok_or("not below the interface")?;
    match (request.method.as_str(), path) {
        ("POST", "message:send") => return Ok(Op::Send(body.clone())),
        ("POST", "message:stream") => return Ok(Op::Stream(body.clone())),
        _ => {}
    }
    let task = path.strip_prefix("tasks/").ok_or("no such place")?;
    let (id, verb) = task.split_once(':').unwrap_or((task, ""));
    match (request.method.as_str(), verb) {
        ("GET", "") => Ok(Op::Get(id.to_owned())),
        ("GET", "subscribe") => Ok(Op::Subscribe(id.to_owned())),
        ("POST", "cancel") => Ok(Op::Cancel(id.to_owned())),
        _ => Err("no such method".to_owned()),
    }
}

/// Encodes a reply in the form of the binding.
pub(crate) fn deliver(binding: Binding, reply: ScriptedReply) -> Answer {
    let wrapped = |value: Value| match binding {
        Binding::JsonRpc => json!({ "jsonrpc": "2.0", "id": 1, "result": value }),
        Binding::HttpJson => value,
    };
    match reply {
        ScriptedReply::Whole(value) => json(200, &wrapped(value)),
        ScriptedReply::Stream(items, end) => {
            let frames: Vec<String> = items
                .into_iter()
                .map(|item| wrapped(item).to_string())
                .collect();
            sse(&frames, end)
        }
        ScriptedReply::Error(code, reason, message) => {
            let detail = json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason, "domain": "a2a-protocol.org" }]);
            match binding {
                Binding::JsonRpc => json(
                    200,
                    &json!({ "jsonrpc": "2.0", "id": 1,
                    "error": { "code": code, "message": message, "data": detail } }),
                ),
                Binding::HttpJson => {
                    let status = if code == -32001 { 404 } else { 400 };
                    json(
                        status,
                        &json!({ "error": { "code": status, "message": message, "details": detail } }),
                    )
                }
            }
        }
        ScriptedReply::Raw(acts) => acts,
    }
}

/// The events of a call, and its result.
pub(crate) type CallTrace = (Vec<RemoteEvent>, Result<RemoteAnswer, RemoteError>);

/// Runs a call to its end. Fails if anything follows the end.
pub(crate) async fn run_call(agent: &A2aAgent, call: RemoteCall) -> CallTrace {
    let mut stream = agent.call(call);
    let mut events = Vec::new();
    let end = loop {
        match stream.next().await.expect("a call ends with its end") {
            Ok(RemoteEvent::Answer(answer)) => break Ok(answer),
            Ok(event) => events.push(event),
            Err(error) => break Err(error),
        }
    };
    assert!(stream.next().await.is_none(), "nothing follows the end");
    (events, end)
}

pub(crate) fn send(text: &str) -> RemoteCall {
    send_in(text, None)
}

pub(crate) fn send_in(text: &str, thread: Option<RemoteThread>) -> RemoteCall {
    RemoteCall::Send {
        key: format!("key of {text}"),
        text: text.into(),
        files: Vec::new(),
        thread,
    }
}

pub(crate) fn resume() -> RemoteCall {
    RemoteCall::Resume {
        thread: thread(Some("t1")),
    }
}

pub(crate) fn thread(task: Option<&str>) -> RemoteThread {
    RemoteThread {
        context: "c1".into(),
        task: task.map(Into::into),
    }
}

pub(crate) fn accepted() -> RemoteEvent {
    RemoteEvent::Accepted(thread(Some("t1")))
}

pub(crate) fn text(text: &str) -> RemoteEvent {
    RemoteEvent::Text(text.to_owned())
}

/// Returns an answer that ends the task.
pub(crate) fn done(text: &str) -> RemoteAnswer {
    RemoteAnswer {
        thread: Some(thread(None)),
        ..RemoteAnswer::from(text.to_owned())
    }
}

/// Returns a task in a state, with a status message and artifacts, each with an id and a text.
pub(crate) fn task(state: &str, message: &str, artifacts: &[(&str, &str)]) -> Value {
    json!({ "task": bare_task(state, message, artifacts) })
}

/// Returns a task like [`task`], without the wrapper.
pub(crate) fn bare_task(state: &str, message: &str, artifacts: &[(&str, &str)]) -> Value {
    let artifacts: Vec<Value> = artifacts
        .iter()
        .map(|(id, text)| artifact(id, text))
        .collect();
    json!({ "id": "t1", "contextId": "c1", "status": status(state, message), "artifacts": artifacts })
}

pub(crate) fn status(state: &str, message: &str) -> Value {
    let mut status =
        json!({ "state": format!("TASK_STATE_{state}"), "timestamp": "2026-01-01T00:00:00Z" });
    if !message.is_empty() {
        status["message"] =
            json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": message }] });
    }
    status
}

pub(crate) fn artifact(id: &str, text: &str) -> Value {
    json!({ "artifactId": id, "parts": [{ "text": text }] })
}

pub(crate) fn update(state: &str, message: &str) -> Value {
    json!({ "statusUpdate": { "taskId": "t1", "contextId": "c1", "status": status(state, message) } })
}

pub(crate) fn chunk(id: &str, text: &str, is_more: bool) -> Value {
    json!({ "artifactUpdate": { "taskId": "t1", "contextId": "c1",
        "artifact": artifact(id, text), "append": is_more } })
}

pub(crate) fn not_found() -> ScriptedReply {
    ScriptedReply::Error(-32001, "TASK_NOT_FOUND", "Task not found".to_owned())
}

/// Returns a reply that closes the connection without an answer.
pub(crate) fn no_answer() -> ScriptedReply {
    ScriptedReply::Raw(vec![Action::Write(Vec::new())])
}
