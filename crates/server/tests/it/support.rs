//! A complete server on loopback: a runner with a scripted model, the task runner, the protocol, auth and recovery. The
//! client writes its requests by hand, so that it can also send invalid ones.

use a2a::AgentSkill;
use lango_a2a::server::{AgentServer, ServerSettings};
use lango_core::{
    AttachmentStore, BoxFuture, Model, SessionCatalog, SessionId, SessionStore, TaskLog, TaskStore,
    Tool, TurnId, UserId,
};
use lango_engine::{
    Gate, Runner, RunnerParts, SystemClock, Topology, Tree, TreeSettings, TurnUpdate,
};
use lango_net::Egress;
use lango_server::auth::Auth;
use lango_server::{
    ConnectionLimits, Notice, Recovery, ServerContext, TaskRunner, readiness, serve,
};
use lango_store::Store;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// The token of every server here.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A context with one runner.
pub(crate) struct TestContext {
    runner: Runner,
    store: Arc<Store>,
    egress: Egress,
}

impl ServerContext for TestContext {
    fn egress(&self) -> Egress {
        self.egress.clone()
    }

    fn runner(&self) -> Runner {
        self.runner.clone()
    }

    fn catalog(&self) -> Arc<dyn SessionCatalog> {
        Arc::clone(&self.store) as Arc<dyn SessionCatalog>
    }

    fn task_log(&self) -> Arc<dyn TaskLog> {
        Arc::clone(&self.store) as Arc<dyn TaskLog>
    }

    fn notify(&self, notice: Notice<'_>) {
        match notice {
            Notice::Error(error) => println!("error: {error}"),
            Notice::TasksResumed { count } => println!("{count} resumed"),
            Notice::TurnResumed { session, outcome } => println!("{session}: {outcome}"),
        }
    }

    fn turn_ended(&self, _: &UserId, _: &SessionId) {}

    fn publish_update(&self, _: &SessionId, _: &TurnId, _: &TurnUpdate) {}

    fn turn_continued<'a>(&'a self, _: &'a UserId, _: &'a TurnId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A running server.
pub(crate) struct TestServer {
    pub address: SocketAddr,
    pub store: Arc<Store>,
    pub runner: Runner,
    stop: Option<oneshot::Sender<Duration>>,
    running: tokio::task::JoinHandle<()>,
}

impl TestServer {
    /// Starts a server over a database in this directory, with this model and these tools.
    pub(crate) async fn start(
        folder: &Path,
        model: impl Model + 'static,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Self {
        let store = Store::open_sqlite(folder.join("lango.db"), "lango-orchestrator".into());
        Self::over(Arc::new(store.unwrap()), model, tools).await
    }

    /// Starts a server without tools, which fetches files through this guard.
    pub(crate) async fn fetching(
        folder: &Path,
        model: impl Model + 'static,
        egress: Egress,
    ) -> Self {
        let store = Store::open_sqlite(folder.join("lango.db"), "lango-orchestrator".into());
        Self::with_egress(Arc::new(store.unwrap()), model, vec![], egress).await
    }

    /// Starts a server over any database, with this model and these tools.
    pub(crate) async fn over(
        store: Arc<Store>,
        model: impl Model + 'static,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Self {
        Self::with_egress(store, model, tools, Egress::default()).await
    }

    async fn with_egress(
        store: Arc<Store>,
        model: impl Model + 'static,
        tools: Vec<Arc<dyn Tool>>,
        egress: Egress,
    ) -> Self {
        let specs = tools.iter().map(|tool| Arc::new(tool.spec().clone()));
        let topology = Topology::built_in("specialists").unwrap();
        let tree = Tree::multi(&topology, specs.collect(), vec![], &TreeSettings::default());
        let tree = Arc::new(tree.unwrap());
        let gate = Gate::new(&tree, tools).unwrap();
        let runner_store = Arc::clone(&store) as Arc<dyn SessionStore>;
        let runner = Runner::new(RunnerParts {
            attachments: Some(Arc::clone(&store) as Arc<dyn AttachmentStore>),
            ..RunnerParts::new(tree, gate, Arc::new(model), runner_store)
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let context = TestContext {
            runner: runner.clone(),
            store: Arc::clone(&store),
            egress,
        };
        let mut settings = ServerSettings::new(
            "lango",
            "a test of it",
            "0.0.0",
            &format!("http://{address}"),
        );
        settings.input_modes = lango_server::INPUT_MODES.map(str::to_owned).to_vec();
        settings.skills = vec![AgentSkill {
            id: "all".to_owned(),
            name: "all".to_owned(),
            description: "everything".to_owned(),
            tags: vec!["all".to_owned()],
            examples: None,
            input_modes: None,
            output_modes: None,
            security_requirements: None,
        }];
        // Short intervals, so that tests need not wait.
        settings.limits.follow_every = Duration::from_millis(20);
        settings.limits.recover_every = Duration::from_millis(60);
        let tasks = Arc::clone(&store) as Arc<dyn TaskStore>;
        let context = Arc::new(context);
        let task_runner = Arc::new(TaskRunner::new(Arc::clone(&context) as _));
        let clock = Arc::new(SystemClock);
        let server = AgentServer::new(task_runner, Arc::clone(&tasks), clock, settings);
        server.recover().await.unwrap();
        server.watch(None);
        let ready = readiness(Arc::clone(&context) as _, server.clone());
        let users = vec![UserId::from("a2a")];
        tokio::spawn(Recovery::new(server.clone(), context, tasks, users).run());
        let auth = Auth::new(Some(TOKEN), UserId::from("a2a"));
        let router = auth.require_token(server.router()).merge(ready);
        let router = auth.guard(router);
        let (stop, stopped) = oneshot::channel();
        let stopping = server.clone();
        let running = tokio::spawn(serve(
            listener,
            router,
            ConnectionLimits::default(),
            async move {
                match stopped.await {
                    Ok(grace_period) => stopping.stop(grace_period).await,
                    // If the test drops the sender, the server runs until its runtime ends.
                    Err(_) => std::future::pending().await,
                }
            },
        ));
        Self {
            address,
            store,
            runner,
            stop: Some(stop),
            running,
        }
    }

    /// Shuts down in order. Runs may finish within five seconds.
    pub(crate) async fn stop(self) {
        self.stop_within(Duration::from_secs(5)).await;
    }

    /// Shuts down in order. Runs may finish within this time.
    pub(crate) async fn stop_within(mut self, grace_period: Duration) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(grace_period);
        }
        self.running.await.unwrap();
    }

    /// Starts a task, in this context if there is one, and returns it without waiting for its end.
    pub(crate) async fn start_task(&self, id: &str, text: &str, context: Option<&str>) -> Value {
        let mut params = message(id, text);
        params["configuration"] = json!({ "returnImmediately": true });
        if let Some(context) = context {
            params["message"]["contextId"] = json!(context);
        }
        self.rpc("SendMessage", params).await["result"]["task"].take()
    }

    /// Polls a task until it is in this state.
    pub(crate) async fn wait_for_state(&self, id: &Value, state: &str) -> Value {
        let polling = async {
            loop {
                let task = self.rpc("GetTask", json!({ "id": id })).await;
                if task["result"]["status"]["state"] == state {
                    return task["result"].clone();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let timeout = Duration::from_secs(30);
        match tokio::time::timeout(timeout, polling).await {
            Ok(task) => task,
            Err(_) => panic!("{}", self.rpc("GetTask", json!({ "id": id })).await),
        }
    }

    /// Sends a JSON-RPC call with the token, and returns the whole response.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let reply = self.post("/", &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Sends a streaming JSON-RPC call with the token, and returns the results of all events.
    pub(crate) async fn stream(&self, method: &str, params: Value) -> Vec<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let reply = self.post("/", &body).await;
        let lines = reply.body.lines();
        let data = lines.filter_map(|line| line.strip_prefix("data:"));
        data.map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].clone())
            .collect()
    }

    /// Sends a POST request with the token.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        let token = format!("Bearer {TOKEN}");
        let host = self.address.to_string();
        let headers = [
            ("Host", host.as_str()),
            ("Authorization", &token),
            ("A2A-Version", "1.0"),
            ("Content-Type", "application/json"),
        ];
        send(self.address, "POST", path, &headers, &body.to_string()).await
    }
}

pub(crate) struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends a handwritten request, and reads until the connection ends.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    let reply = String::from_utf8(reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    let is_chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    Reply {
        status,
        head: head.to_owned(),
        body: if is_chunked {
            unchunk(body)
        } else {
            body.to_owned()
        },
    }
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&after[..size]);
        rest = &after[size..];
        rest = rest.strip_prefix("\r\n").unwrap_or(rest);
    }
    body
}

/// Returns the parameters of `SendMessage` for this text.
pub(crate) fn message(id: &str, text: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}
