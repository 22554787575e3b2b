//! A web server on loopback that records its requests, and the tools that use it.

use lango_core::{
    Caller, Clock, Inspection, OutputSink, SessionId, Timestamp, Tool, ToolError, ToolOutput,
    Trust, UserId, WebCache,
};
use lango_net::{Egress, EgressLimits, EgressRules, SeenLinks};
use lango_store::Store;
use lango_web::{FetchParts, fetch_tool};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request that the server received.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl RecordedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }
}

/// The response to a request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the server keeps the connection open and never responds.
    pub is_silent: bool,
}

impl Reply {
    pub(crate) fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let reply = Self {
            status: 200,
            headers: Vec::new(),
            body: body.into(),
            is_silent: false,
        };
        match content_type {
            "" => reply,
            content_type => reply.with("Content-Type", content_type),
        }
    }

    pub(crate) fn html(body: &str) -> Self {
        Self::new("text/html; charset=utf-8", body)
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::new("application/json", body.to_string())
    }

    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::new("text/plain", "")
        }
    }

    pub(crate) fn silence() -> Self {
        Self {
            is_silent: true,
            ..Self::status(200)
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A web server. Dropping it stops it.
pub(crate) struct Site {
    pub port: u16,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    task: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    pub(crate) async fn serve(
        answer: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let (answer, recorded) = (Arc::new(answer), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, recorded) = (Arc::clone(&answer), Arc::clone(&recorded));
                tokio::spawn(async move {
                    let _ = exchange(stream, &*answer, &recorded).await;
                });
            }
        });
        Self {
            port,
            requests,
            task,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

async fn exchange(
    mut stream: TcpStream,
    answer: &(impl Fn(&RecordedRequest) -> Reply + Sync),
    recorded: &Mutex<Vec<RecordedRequest>>,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, target) = (word(), word());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            break;
        }
    }
    let request = RecordedRequest {
        method,
        target,
        headers,
        body: String::from_utf8_lossy(&bytes[head_end + 4..]).into_owned(),
    };
    recorded.lock().unwrap().push(request.clone());
    let reply = answer(&request);
    if reply.is_silent {
        std::future::pending::<()>().await;
    }
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if reply.status != 304 {
        head.push_str(&format!("Content-Length: {}\r\n", reply.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&reply.body).await?;
    stream.shutdown().await
}

/// A clock that tests control.
#[derive(Default)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    /// 2026-11-16T05:44:02Z, in milliseconds.
    pub(crate) const START: u64 = 1_794_807_842_000;

    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1000, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(Self::START + self.0.load(Ordering::Relaxed))
    }
}

/// The tool `search_fetch` with its dependencies.
pub(crate) struct Bench {
    pub tool: Arc<dyn Tool>,
    pub links: SeenLinks,
    pub clock: Arc<TestClock>,
}

impl Bench {
    /// Creates a tool that may contact only these sites.
    pub(crate) fn new(sites: &[&Site]) -> Self {
        Self::with(sites, Arc::new(Store::in_memory()), EgressLimits::default())
    }

    pub(crate) fn with(sites: &[&Site], cache: Arc<dyn WebCache>, limits: EgressLimits) -> Self {
        let allowed = sites.iter().map(|site| format!("127.0.0.1:{}", site.port));
        let rules = EgressRules {
            allow: allowed.map(|entry| entry.parse().unwrap()).collect(),
            deny: Vec::new(),
        };
        Self::behind(Egress::new(rules, limits), cache)
    }

    /// Creates a tool that uses this egress guard.
    pub(crate) fn behind(egress: Egress, cache: Arc<dyn WebCache>) -> Self {
        let links = SeenLinks::default();
        let clock = Arc::new(TestClock::default());
        let tool = fetch_tool(FetchParts {
            egress,
            links: links.clone(),
            cache,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        });
        Self { tool, links, clock }
    }

    /// Inspects and runs a call, like the gate does for an approved call.
    pub(crate) async fn call(&self, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.call_as("ann", arguments).await
    }

    pub(crate) async fn call_as(
        &self,
        user: &str,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let arguments = Arc::new(arguments);
        let mut caller = caller();
        caller.user = UserId::from(user);
        caller.inspection = self.tool.inspect(&caller, Arc::clone(&arguments)).await;
        self.tool.run(&caller, arguments).await
    }

    pub(crate) async fn inspect(&self, url: &str) -> Inspection {
        let arguments = Arc::new(json!({ "url": url }));
        self.tool.inspect(&caller(), arguments).await
    }

    /// Returns the text of a page.
    pub(crate) async fn fetch(&self, url: &str) -> String {
        let output = self.call(json!({ "url": url })).await.unwrap();
        assert_eq!(output.trust, Trust::Untrusted);
        output.text
    }

    pub(crate) async fn error(&self, url: &str) -> String {
        let error = self.call(json!({ "url": url })).await.unwrap_err();
        error.message
    }
}

pub(crate) fn session() -> SessionId {
    SessionId::from("s_1")
}

pub(crate) fn caller() -> Caller {
    Caller {
        user: UserId::from("ann"),
        session: session(),
        turn: "t_1".into(),
        agent: "librarian".into(),
        call: "c_1".into(),
        trust: Trust::Untrusted,
        inspection: Inspection::default(),
        output: OutputSink::default(),
    }
}
