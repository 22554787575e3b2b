//! A test server on loopback, and a client for it.

use super::agent::ScriptedAgent;
use super::memory::{MemoryTasks, SystemClock};
use a2a::AgentSkill;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use lango_a2a::server::{AgentServer, ServerSettings};
use lango_core::{Clock, TaskStore, UserId};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// How long any operation of a test may take.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future)
        .await
        .expect("the operation timed out")
}

/// A server with a scripted agent.
pub(crate) struct TestServer {
    client: TestClient,
    pub server: AgentServer,
    pub agent: Arc<ScriptedAgent>,
    pub tasks: Arc<MemoryTasks>,
}

/// A client of a server.
pub(crate) struct TestClient {
    pub base: String,
    pub client: Client,
}

impl Deref for TestServer {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

pub(crate) fn settings() -> ServerSettings {
    let mut settings = ServerSettings::new("Test agent", "For tests", "2.1.0", "http://agent.test");
    settings.skills = vec![AgentSkill {
        id: "talk".to_owned(),
        name: "Talk".to_owned(),
        description: "Says what it is told".to_owned(),
        tags: vec!["test".to_owned()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }];
    settings.default_user = Some(UserId::new("ann"));
    settings
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: ServerSettings) -> Self {
        Self::with_tasks(Arc::default(), settings).await
    }

    /// Starts a server whose store may already have tasks.
    pub(crate) async fn with_tasks(tasks: Arc<MemoryTasks>, settings: ServerSettings) -> Self {
        let clock = Arc::new(SystemClock);
        Self::with_store(tasks.clone(), tasks, clock, settings).await
    }

    /// Starts a server with any store and clock.
    pub(crate) async fn with_store(
        store: Arc<dyn TaskStore>,
        tasks: Arc<MemoryTasks>,
        clock: Arc<dyn Clock>,
        settings: ServerSettings,
    ) -> Self {
        let agent = Arc::new(ScriptedAgent::default());
        let server = AgentServer::new(agent.clone(), store, clock, settings);
        Self {
            client: TestClient::serve(&server).await,
            server,
            agent,
            tasks,
        }
    }
}

impl TestClient {
    /// Serves a server on loopback, and returns a client for it.
    pub(crate) async fn serve(server: &AgentServer) -> Self {
        // Replaces the token check: the header `x-user` sets the user.
        let router = server
            .router()
            .layer(from_fn(|mut request: Request, next: Next| async {
                let user = request
                    .headers()
                    .get("x-user")
                    .map(|user| user.to_str().unwrap().to_owned());
                if let Some(user) = user {
                    request.extensions_mut().insert(UserId::new(user));
                }
                next.run(request).await
            }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            base,
            client: Client::builder().no_proxy().build().unwrap(),
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        request.header("A2A-Version", "1.0")
    }

    /// Sends a JSON-RPC call and returns the whole response.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let response = sent(self.request(Method::POST, "/"), &call).await;
        assert_eq!(response.headers()["content-type"], "application/json");
        let answer = read(response).await;
        assert_eq!(answer["jsonrpc"], "2.0");
        assert_eq!(answer["id"], 7);
        answer
    }

    /// Sends a call that must succeed, and returns its result.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let mut answer = self.rpc(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Sends a call that must fail, and returns its error.
    pub(crate) async fn error(&self, method: &str, params: Value) -> Value {
        let mut answer = self.rpc(method, params).await;
        assert!(answer.get("result").is_none(), "{answer}");
        answer["error"].take()
    }

    /// Sends a text, waits, and returns the task.
    pub(crate) async fn send(&self, text: &str) -> Value {
        self.result("SendMessage", json!({ "message": message(text) }))
            .await["task"]
            .take()
    }

    /// Sends a text and returns the task without waiting for its end.
    pub(crate) async fn start_task(&self, text: &str) -> Value {
        let params = json!({
            "message": message(text), "configuration": { "returnImmediately": true },
        });
        self.result("SendMessage", params).await["task"].take()
    }

    pub(crate) async fn task(&self, id: &Value) -> Value {
        self.result("GetTask", json!({ "id": id })).await
    }

    /// Polls a task until it is in this state.
    pub(crate) async fn wait_for_state(&self, id: &Value, state: &str) -> Value {
        with_timeout(async {
            loop {
                let task = self.task(id).await;
                if task["status"]["state"] == state {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    /// Sends an HTTP+JSON request, and returns the status and the body.
    pub(crate) async fn http(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/a2a+json")
                .body(body.to_string());
        }
        let response = with_timeout(request.send()).await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/a2a+json");
        (response.status(), read(response).await)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.http(Method::GET, path, None).await
    }

    /// Sends a JSON-RPC call that is answered with a stream. The events are the results of the responses.
    pub(crate) async fn rpc_stream(&self, method: &str, params: Value) -> Events {
        let call = json!({ "jsonrpc": "2.0", "id": "s-1", "method": method, "params": params });
        let response = sent(self.request(Method::POST, "/"), &call).await;
        Events::of(response, true)
    }

    pub(crate) async fn stream(&self, text: &str) -> Events {
        self.rpc_stream("SendStreamingMessage", json!({ "message": message(text) }))
            .await
    }

    pub(crate) async fn subscribe(&self, id: &Value) -> Events {
        self.rpc_stream("SubscribeToTask", json!({ "id": id }))
            .await
    }
}

/// Sends a request with a JSON body.
pub(crate) async fn sent(request: RequestBuilder, body: &Value) -> Response {
    let request = request
        .header("content-type", "application/json")
        .body(body.to_string());
    with_timeout(request.send()).await.unwrap()
}

/// Reads the JSON body of a response.
pub(crate) async fn read(response: Response) -> Value {
    serde_json::from_slice(&with_timeout(response.bytes()).await.unwrap()).unwrap()
}

/// The events of a stream. A comment is `null`.
pub(crate) struct Events {
    bytes: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    buffer: String,
    is_rpc: bool,
}

impl Events {
    pub(crate) fn of(response: Response, is_rpc: bool) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let bytes = response
            .bytes_stream()
            .map(|bytes| bytes.map(|bytes| bytes.to_vec()));
        Self {
            bytes: bytes.boxed(),
            buffer: String::new(),
            is_rpc,
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((block, rest)) = self.buffer.split_once("\n\n") {
                let block = block.to_owned();
                self.buffer = rest.to_owned();
                if block.starts_with(':') {
                    return Some(Value::Null);
                }
                let data = block
                    .strip_prefix("data: ")
                    .expect("an event has data only");
                let mut event: Value = serde_json::from_str(data).unwrap();
                if self.is_rpc {
                    assert_eq!(event["jsonrpc"], "2.0");
                    assert_eq!(event["id"], "s-1");
                    return Some(event["result"].take());
                }
                return Some(event);
            }
            match with_timeout(self.bytes.next()).await {
                Some(bytes) => self
                    .buffer
                    .push_str(std::str::from_utf8(&bytes.unwrap()).unwrap()),
                None => return None,
            }
        }
    }

    pub(crate) async fn next_event(&mut self) -> Value {
        self.next().await.expect("the stream has another event")
    }

    pub(crate) async fn remaining(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

pub(crate) fn message(text: &str) -> Value {
    json!({
        "messageId": a2a::new_message_id(), "role": "ROLE_USER", "parts": [{ "text": text }],
    })
}

/// Returns a message to an existing task.
pub(crate) fn reply(text: &str, task: &Value) -> Value {
    let mut message = message(text);
    message["taskId"] = task.clone();
    message
}

/// Replaces ids and times with fixed names, after checking their format.
pub(crate) fn normalize(mut value: Value) -> Value {
    match &mut value {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| *value = normalize(value.take())),
        Value::Object(map) => {
            for (key, value) in map {
                let text = value.as_str().unwrap_or_default();
                let is_id = text.len() == 36 && text.split('-').count() == 5;
                *value = match key.as_str() {
                    "timestamp" => {
                        assert_time(text);
                        json!("TIME")
                    }
                    "id" | "taskId" if is_id => json!("TASK"),
                    "contextId" if is_id => json!("CONTEXT"),
                    "messageId" if is_id => json!("MESSAGE"),
                    _ => normalize(value.take()),
                };
            }
        }
        _ => {}
    }
    value
}

/// Checks that a time has the format `2026-01-31T12:00:00.000Z`.
fn assert_time(text: &str) {
    let form: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(form, "0000-00-00T00:00:00.000Z", "{text}");
}

/// Returns the reason in an error's details.
pub(crate) fn reason(details: &Value) -> &str {
    let info = &details[0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    info["reason"].as_str().unwrap()
}

/// Scans for interrupted tasks until the server stops, as `lango serve` does.
pub(crate) fn recover_continuously(server: &AgentServer) {
    let server = server.clone();
    tokio::spawn(async move {
        while server.next_recovery().await {
            let _ = server.recover_stale().await;
        }
    });
}
