//! An API over a database in memory, with a scripted model, tools (one of which asks for approval), and a minimal
//! program. Requests go to the router without a socket.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Request};
use bytes::Bytes;
use futures_util::StreamExt;
use lango_api::access::digest_of;
use lango_api::tokens::{NewToken, issue};
use lango_api::{Api, ApiContext, ApiParts, Feeds, Part, Program};
use lango_core::{
    AttachmentStore, BoxFuture, BoxStream, Grant, Limits, Model, PendingApproval, Risk, Scopes,
    SessionCatalog, SessionId, SessionStore, TaskLog, Text, TokenKind, Tool, TurnId, UserId,
};
use lango_engine::{
    Gate, RandomIds, Runner, RunnerParts, SystemClock, Topology, Tree, TreeSettings, TurnUpdate,
};
use lango_net::Egress;
use lango_server::{Notice, ServerContext};
use lango_store::{LiveChanges, Store};
use lango_testkit::model::{PacedModel, ScriptedModel};
use lango_testkit::tool::CountingTool;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;

/// The owner of the installation.
pub(crate) const OWNER: &str = "local";

/// The token of A2A, which has no scopes here.
pub(crate) const A2A_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The name of the configured model.
pub(crate) const MODEL: &str = "test/scripted";

/// An API with everything around it.
pub(crate) struct TestApi {
    pub store: Arc<Store>,
    pub model: Arc<ScriptedModel>,
    /// A tool that asks for approval.
    pub writer: Arc<CountingTool>,
    pub router: Router,
}

impl TestApi {
    /// Creates an API with this model and two tools: `fs_read`, and `fs_write`, which needs approval.
    pub(crate) fn new(model: ScriptedModel) -> Self {
        Self::with_limits(model, Limits::default())
    }

    /// The same with other limits of turns.
    pub(crate) fn with_limits(model: ScriptedModel, limits: Limits) -> Self {
        Self::with_reader(model, limits, CountingTool::new("fs_read"))
    }

    /// The same with another tool that needs no approval.
    pub(crate) fn with_reader(model: ScriptedModel, limits: Limits, reader: CountingTool) -> Self {
        let store = Arc::new(Store::in_memory());
        let model = Arc::new(model);
        let writer = Arc::new(CountingTool::new("fs_write").with_risk(Risk::Moderate));
        let tools: Vec<Arc<dyn Tool>> =
            vec![Arc::new(reader), Arc::clone(&writer) as Arc<dyn Tool>];
        let specs = tools.iter().map(|tool| Arc::new(tool.spec().clone()));
        let topology = Topology::built_in("specialists").unwrap();
        let tree = Tree::multi(&topology, specs.collect(), vec![], &TreeSettings::default());
        let tree = Arc::new(tree.unwrap());
        let gate = Gate::new(&tree, tools).unwrap();
        // Paced, so that clients see the pieces of a streamed text one by one.
        let runner_model = Arc::new(PacedModel(Arc::clone(&model) as Arc<dyn Model>));
        let runner_store = Arc::clone(&store) as Arc<dyn SessionStore>;
        let runner = Runner::new(RunnerParts {
            attachments: Some(Arc::clone(&store) as Arc<dyn AttachmentStore>),
            limits,
            ..RunnerParts::new(tree, gate, runner_model, runner_store)
        });
        let program = Arc::new(TestProgram {
            runner,
            store: Arc::clone(&store),
        });
        let feeds = Feeds::new(
            Arc::clone(&store) as _,
            Arc::clone(&store) as _,
            Arc::new(LiveChanges(Arc::clone(&store))) as _,
        );
        let api = Api::new(ApiParts {
            context: Arc::clone(&program) as _,
            server: program,
            store: Arc::clone(&store),
            feeds,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            a2a_token: Some(digest_of(A2A_TOKEN)),
            max_running: 16,
            max_streams: 16,
            is_https: false,
        });
        Self {
            store,
            model,
            writer,
            router: api.router_beside(Router::new()),
        }
    }

    /// Creates a token of the owner with these scopes, such as `read run approve`.
    pub(crate) async fn token(&self, scopes: &str) -> String {
        self.token_of(OWNER, scopes).await
    }

    /// Creates a token of a user.
    pub(crate) async fn token_of(&self, user: &str, scopes: &str) -> String {
        let new = NewToken {
            user: UserId::from(user),
            name: "test".into(),
            kind: TokenKind::Token,
            scopes: scopes.parse::<Scopes>().unwrap(),
            lifetime: None,
        };
        issue(&*self.store, &SystemClock, new).await.unwrap().secret
    }

    /// Sends a GET request.
    pub(crate) async fn get(&self, token: &str, path: &str) -> TestResponse {
        let request = Request::get(path).header(AUTHORIZATION, format!("Bearer {token}"));
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Sends a POST request with a JSON body.
    pub(crate) async fn post(&self, token: &str, path: &str, body: &Value) -> TestResponse {
        self.post_with(token, path, &[], body).await
    }

    /// The same with more headers.
    pub(crate) async fn post_with(
        &self,
        token: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> TestResponse {
        let mut request = Request::post(path)
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// Sends a request, and reads the whole response.
    pub(crate) async fn send(&self, request: Request<Body>) -> TestResponse {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        TestResponse {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Returns what the model was sent in its last call, as JSON.
    pub(crate) fn last_request(&self) -> String {
        let asked = self.model.requests();
        format!("{:?}", asked.last().map(|request| &request.messages))
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl TestResponse {
    /// Returns the body of a response that succeeded.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the data of all events of a stream, `[DONE]` excluded.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.body);
        assert_eq!(self.header("content-type"), "text/event-stream");
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// Asserts that it is an error in OpenAI's shape, and returns it.
    pub(crate) fn openai_error(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        let error = self.json()["error"].take();
        for field in ["message", "type", "param", "code"] {
            assert!(error.get(field).is_some(), "no {field} in {}", self.body);
        }
        assert!(
            !error["message"].as_str().unwrap().is_empty(),
            "{}",
            self.body
        );
        error
    }
}

/// A program that describes nothing.
struct TestProgram {
    runner: Runner,
    store: Arc<Store>,
}

impl ServerContext for TestProgram {
    fn runner(&self) -> Runner {
        self.runner.clone()
    }

    fn egress(&self) -> Egress {
        Egress::default()
    }

    fn catalog(&self) -> Arc<dyn SessionCatalog> {
        Arc::clone(&self.store) as Arc<dyn SessionCatalog>
    }

    fn task_log(&self) -> Arc<dyn TaskLog> {
        Arc::clone(&self.store) as Arc<dyn TaskLog>
    }

    fn turn_ended(&self, _: &UserId, _: &SessionId) {}

    fn publish_update(&self, _: &SessionId, _: &TurnId, _: &TurnUpdate) {}

    fn turn_continued<'a>(&'a self, _: &'a UserId, _: &'a TurnId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn notify(&self, notice: Notice<'_>) {
        if let Notice::Error(error) = notice {
            println!("error: {error}");
        }
    }
}

impl ApiContext for TestProgram {
    fn owner(&self) -> UserId {
        UserId::from(OWNER)
    }

    fn visible_users(&self, user: &UserId) -> Vec<UserId> {
        if *user == OWNER {
            vec![user.clone(), UserId::from("a2a")]
        } else {
            vec![user.clone()]
        }
    }

    fn folder(&self) -> String {
        String::new()
    }

    fn program(&self) -> Program {
        Program {
            version: "0.0.0".to_owned(),
            model: MODEL.to_owned(),
            is_demo: false,
            single_agent: false,
            has_memory: false,
            has_knowledge: false,
            store: "sqlite".to_owned(),
        }
    }

    fn describe<'a>(&'a self, _: Part, _: &'a UserId) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Ok(json!({}))))
    }

    fn search_knowledge<'a>(
        &'a self,
        _: &'a UserId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Ok(json!({}))))
    }

    fn grant_pattern(
        &self,
        waiting: &PendingApproval,
        given: Option<&str>,
    ) -> Result<Text, String> {
        let offered = waiting.request.pattern.clone();
        let pattern = given.map(Text::from).or(offered);
        pattern.ok_or_else(|| "every call of this tool is asked for".to_owned())
    }

    fn grant_problem(&self, _: &Grant) -> Option<String> {
        None
    }

    fn cancel_task<'a>(&'a self, _: &'a UserId, _: &'a TurnId) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    fn forget_session(&self, _session: &SessionId) -> Result<(), String> {
        Ok(())
    }

    fn export(&self, _: SessionId) -> BoxStream<'static, Result<Bytes, String>> {
        futures_util::stream::empty().boxed()
    }
}
