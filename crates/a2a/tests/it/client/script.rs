//! An agent on loopback that speaks either binding and says what a test tells it to. It refuses requests that no server
//! would have to take, so that every test also checks what is sent.

use super::support::{Act, Answer, End, Seen, Server, json, response, sse};
use futures_util::StreamExt;
use lango_a2a::client::{A2aAgent, Binding, Patience, RemoteSettings, connect};
use lango_core::{RemoteAgent, RemoteAnswer, RemoteCall, RemoteError, RemoteEvent, RemoteThread};
use lango_secrets::{Credential, Masks, SecretValue};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub const BOTH: [Binding; 2] = [Binding::JsonRpc, Binding::HttpJson];

/// What a server is asked, whatever the binding.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    Send(Value),
    Stream(Value),
    Get(String),
    Subscribe(String),
    Cancel(String),
}

/// What it says.
#[derive(Debug, Clone)]
pub enum Said {
    Whole(Value),
    Stream(Vec<Value>, End),
    /// An error by its protocol code, its reason and its words.
    Error(i32, &'static str, String),
    /// Bytes as they are.
    Raw(Answer),
}

pub struct Scripted {
    pub server: Server,
    pub binding: Binding,
}

/// A card for this server.
pub fn card(url: &str, binding: Binding, streams: bool) -> Value {
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
    pub async fn start(
        binding: Binding,
        streams: bool,
        script: impl Fn(&Op) -> Said + Send + Sync + 'static,
    ) -> Self {
        let server = Server::start(move |seen| answer(binding, streams, seen, &script)).await;
        Self { server, binding }
    }

    pub async fn agent(&self) -> Arc<A2aAgent> {
        connect(&settings(&self.server.url), &patience())
            .await
            .unwrap()
    }

    /// What it was asked after the card.
    pub fn asked(&self) -> Vec<Op> {
        let seen = self.server.seen();
        let asked = seen.iter().filter(|one| !one.path.ends_with(".json"));
        asked.map(|one| op(self.binding, one).unwrap()).collect()
    }
}

/// As long as a loaded machine may need, and no pause longer than a test should take.
pub fn patience() -> Patience {
    Patience {
        card: Duration::from_secs(20),
        connect: Duration::from_secs(20),
        idle: Duration::from_secs(20),
        reply: Duration::from_secs(20),
        pace: Duration::from_millis(2),
        retry: Duration::from_millis(5),
    }
}

pub fn token(value: &str, masks: &Masks) -> Credential {
    Credential::fixed("HELPER_TOKEN", SecretValue::new(value), masks)
}

pub fn settings(url: &str) -> RemoteSettings {
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
    seen: &Seen,
    script: &(impl Fn(&Op) -> Said + ?Sized),
) -> Answer {
    if seen.header("a2a-version") != Some("1.0") || seen.header("accept-encoding").is_some() {
        return response(400, &[], "wrong headers");
    }
    if seen.header("authorization") != Some("Bearer s3cret-t0ken") {
        return response(401, &[], "");
    }
    if seen.path == "/.well-known/agent-card.json" {
        let url = format!("http://{}", seen.header("host").unwrap());
        return json(200, &card(&url, binding, streams));
    }
    match op(binding, seen) {
        Err(why) => response(
            400,
            &[],
            &format!("{{\"error\":{{\"message\":\"{why}\"}}}}"),
        ),
        Ok(op) => deliver(binding, script(&op)),
    }
}

fn op(binding: Binding, seen: &Seen) -> Result<Op, String> {
    let body = &seen.body;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if binding == Binding::JsonRpc {
        let is_envelope = body["jsonrpc"] == "2.0" && !body["id"].is_null();
        if seen.method != "POST" || seen.path != "/a2a" || !is_envelope {
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
    let path = seen
        .path
        .strip_prefix("/a2a/")
        .ok_or("not below the interface")?;
    match (seen.method.as_str(), path) {
        ("POST", "message:send") => return Ok(Op::Send(body.clone())),
        ("POST", "message:stream") => return Ok(Op::Stream(body.clone())),
        _ => {}
    }
    let task = path.strip_prefix("tasks/").ok_or("no such place")?;
    let (id, verb) = task.split_once(':').unwrap_or((task, ""));
    match (seen.method.as_str(), verb) {
        ("GET", "") => Ok(Op::Get(id.to_owned())),
        ("GET", "subscribe") => Ok(Op::Subscribe(id.to_owned())),
        ("POST", "cancel") => Ok(Op::Cancel(id.to_owned())),
        _ => Err("no such method".to_owned()),
    }
}

/// Puts what is said into the form of the binding.
pub fn deliver(binding: Binding, said: Said) -> Answer {
    let wrapped = |value: Value| match binding {
        Binding::JsonRpc => json!({ "jsonrpc": "2.0", "id": 1, "result": value }),
        Binding::HttpJson => value,
    };
    match said {
        Said::Whole(value) => json(200, &wrapped(value)),
        Said::Stream(items, end) => {
            let frames: Vec<String> = items
                .into_iter()
                .map(|item| wrapped(item).to_string())
                .collect();
            sse(&frames, end)
        }
        Said::Error(code, reason, words) => {
            let detail = json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason, "domain": "a2a-protocol.org" }]);
            match binding {
                Binding::JsonRpc => json(
                    200,
                    &json!({ "jsonrpc": "2.0", "id": 1,
                    "error": { "code": code, "message": words, "data": detail } }),
                ),
                Binding::HttpJson => {
                    let status = if code == -32001 { 404 } else { 400 };
                    json(
                        status,
                        &json!({ "error": { "code": status, "message": words, "details": detail } }),
                    )
                }
            }
        }
        Said::Raw(acts) => acts,
    }
}

/// Events and how it ended.
pub type Heard = (Vec<RemoteEvent>, Result<RemoteAnswer, RemoteError>);

/// Hears a call to its end. Nothing may follow the end.
pub async fn hear(agent: &A2aAgent, call: RemoteCall) -> Heard {
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

pub fn send(text: &str) -> RemoteCall {
    send_in(text, None)
}

pub fn send_in(text: &str, thread: Option<RemoteThread>) -> RemoteCall {
    RemoteCall::Send {
        key: format!("key of {text}"),
        text: text.into(),
        files: Vec::new(),
        thread,
    }
}

pub fn go_on() -> RemoteCall {
    RemoteCall::GoOn {
        thread: thread(Some("t1")),
    }
}

pub fn thread(task: Option<&str>) -> RemoteThread {
    RemoteThread {
        context: "c1".into(),
        task: task.map(Into::into),
    }
}

pub fn accepted() -> RemoteEvent {
    RemoteEvent::Accepted(thread(Some("t1")))
}

pub fn text(text: &str) -> RemoteEvent {
    RemoteEvent::Text(text.to_owned())
}

/// An answer that ends the task.
pub fn done(text: &str) -> RemoteAnswer {
    RemoteAnswer {
        thread: Some(thread(None)),
        ..RemoteAnswer::from(text.to_owned())
    }
}

/// A task in a state, with artifacts of an id and a text each.
pub fn task(state: &str, words: &str, artifacts: &[(&str, &str)]) -> Value {
    json!({ "task": bare_task(state, words, artifacts) })
}

pub fn bare_task(state: &str, words: &str, artifacts: &[(&str, &str)]) -> Value {
    let artifacts: Vec<Value> = artifacts
        .iter()
        .map(|(id, text)| artifact(id, text))
        .collect();
    json!({ "id": "t1", "contextId": "c1", "status": status(state, words), "artifacts": artifacts })
}

pub fn status(state: &str, words: &str) -> Value {
    let mut status =
        json!({ "state": format!("TASK_STATE_{state}"), "timestamp": "2026-01-01T00:00:00Z" });
    if !words.is_empty() {
        status["message"] =
            json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": words }] });
    }
    status
}

pub fn artifact(id: &str, text: &str) -> Value {
    json!({ "artifactId": id, "parts": [{ "text": text }] })
}

pub fn update(state: &str, words: &str) -> Value {
    json!({ "statusUpdate": { "taskId": "t1", "contextId": "c1", "status": status(state, words) } })
}

pub fn chunk(id: &str, text: &str, is_more: bool) -> Value {
    json!({ "artifactUpdate": { "taskId": "t1", "contextId": "c1",
        "artifact": artifact(id, text), "append": is_more } })
}

pub fn not_found() -> Said {
    Said::Error(-32001, "TASK_NOT_FOUND", "Task not found".to_owned())
}

/// A connection that is closed without an answer.
pub fn nothing() -> Said {
    Said::Raw(vec![Act::Write(Vec::new())])
}
