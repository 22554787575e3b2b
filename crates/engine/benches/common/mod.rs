//! Shared code of the benchmarks: a runner with a scripted model, and sessions with a history of any length.

use futures_util::future::join_all;
use lango_core::{
    AgentName, Event, EventBatch, EventBody, FrameId, Message, ModelReply, ModelRequest,
    NewSession, Outcome, SessionCatalog, SessionId, SessionStore, Timestamp, Tool, TurnId, Usage,
    UserId,
};
use lango_engine::{
    CancelToken, Conversation, Gate, Runner, RunnerParts, Topology, Tree, TreeSettings,
    UpdateReceiver, UpdateSender, turn_updates,
};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The store of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BenchStore<'a> {
    Memory,
    Sqlite,
    /// The database at this address.
    Postgres(&'a str),
}

/// A store of sessions with its catalog.
pub(crate) trait Sessions: SessionStore + SessionCatalog {}

impl<S: SessionStore + SessionCatalog> Sessions for S {}

/// The number of sessions to fill concurrently.
const CONCURRENT_SESSIONS: usize = 200;

/// An open session to run turns in.
pub(crate) struct Bench {
    runtime: Runtime,
    store: Arc<dyn Sessions>,
    runner: Runner,
    conversation: Conversation,
    sender: UpdateSender,
    shown: UpdateReceiver,
    _folder: Option<tempfile::TempDir>,
}

impl Bench {
    /// Creates a session with this many events of earlier turns.
    pub(crate) fn with_history(place: BenchStore<'_>, events: usize) -> Self {
        Self::with_other_sessions(place, events, 0)
    }

    /// Creates a session next to this many other sessions with one turn each.
    pub(crate) fn with_other_sessions(place: BenchStore<'_>, events: usize, others: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let root = AgentName::from("lango-orchestrator");
        let (store, folder): (Arc<dyn Sessions>, _) = match place {
            BenchStore::Memory => (Arc::new(Store::in_memory()), None),
            BenchStore::Sqlite => {
                let folder = tempfile::tempdir().expect("a folder");
                let store = Store::open_sqlite(folder.path().join("bench.db"), root);
                (Arc::new(store.expect("a database")), Some(folder))
            }
            BenchStore::Postgres(address) => {
                let store = Store::at(address, root);
                (Arc::new(store.expect("an address")), None)
            }
        };
        let session = SessionId::from("s_bench");
        runtime.block_on(fill_many(&*store, others));
        runtime.block_on(fill(&*store, &session, events));
        let runner = runner(Arc::<dyn Sessions>::clone(&store));
        let conversation = runtime
            .block_on(runner.open(session))
            .expect("the session opens");
        let (sender, shown) = turn_updates();
        Self {
            runtime,
            store,
            runner,
            conversation,
            sender,
            shown,
            _folder: folder,
        }
    }

    /// Opens the session again.
    pub(crate) fn open(&mut self) {
        let session = self.conversation.session().clone();
        let opened = self.runtime.block_on(self.runner.open(session));
        assert!(!opened.expect("the session opens").is_interrupted());
    }

    /// Lists the most recently used sessions.
    pub(crate) fn list(&mut self) {
        let listed = self.store.list(
            self.conversation.user(),
            lango_core::SessionQuery::recent(20),
        );
        let listed = self.runtime.block_on(listed).expect("a list");
        assert!(!listed.is_empty());
    }

    /// Lists unfinished turns.
    pub(crate) fn list_unfinished(&mut self) {
        let unfinished = self.store.unfinished(None, 100);
        let unfinished = self.runtime.block_on(unfinished).expect("a list");
        assert!(unfinished.is_empty());
    }

    /// Runs one turn to its end.
    pub(crate) fn turn(&mut self, question: &str) {
        let stop = CancelToken::new();
        let turn = self.conversation.turn(question, &stop, &self.sender);
        let report = self.runtime.block_on(turn).expect("the turn runs");
        let report = report.finished().expect("no call needs approval");
        assert!(matches!(report.outcome, Outcome::Answered { .. }));
        while self.shown.try_recv().is_some() {}
    }
}

/// Replies to `hello` directly. Everything else becomes one tool call of a sub-agent, whose answer goes to the user.
fn script(request: &ModelRequest) -> ModelReply {
    let last = request.messages.last();
    match last {
        Some(Message::User { text, .. }) if **text == *"hello" => say("Hello! What can I do?"),
        Some(Message::User { text, .. }) if text.contains("## Task") => {
            call("fs_read", json!({ "path": "a.txt" }))
        }
        Some(Message::User { .. }) => delegate_and_finish("operator", "read a.txt"),
        _ => say("It says: the quick brown fox jumps over the lazy dog."),
    }
}

fn runner(store: Arc<dyn SessionStore>) -> Runner {
    let names = [
        "exec_shell",
        "fs_read",
        "browser_open",
        "crypto_sign",
        "search_web",
        "memory_store",
    ];
    let tools: Vec<Arc<dyn Tool>> = names
        .iter()
        .map(|name| Arc::new(CountingTool::new(name)) as Arc<dyn Tool>)
        .collect();
    let specs = tools
        .iter()
        .map(|tool| Arc::new(tool.spec().clone()))
        .collect();
    let topology = Topology::built_in("specialists").expect("built in");
    let tree = Arc::new(
        Tree::multi(&topology, specs, Vec::new(), &TreeSettings::default()).expect("a tree"),
    );
    let gate = Gate::new(&tree, tools).expect("a gate");
    let model = Arc::new(ScriptedModel::from_fn(script).without_recording());
    Runner::new(RunnerParts::new(tree, gate, model, store))
}

/// Creates this many sessions with one turn each.
async fn fill_many(store: &dyn Sessions, sessions: usize) {
    let session = |number: usize| async move {
        let session = SessionId::new(format!("s_{number:06}"));
        fill(store, &session, 3).await;
    };
    for first in (0..sessions).step_by(CONCURRENT_SESSIONS) {
        let some = first..sessions.min(first + CONCURRENT_SESSIONS);
        join_all(some.map(session)).await;
    }
}

/// Stores earlier turns of three events each.
async fn fill(store: &dyn Sessions, session: &SessionId, events: usize) {
    let new = NewSession {
        id: session.clone(),
        user: UserId::from("local"),
        created: Timestamp(0),
    };
    store.create(new).await.expect("a new session");
    let mut seq = 1;
    while seq <= events as u64 {
        let mut batch = Vec::new();
        while batch.len() < 900 && seq <= events as u64 {
            batch.extend(hello(session, seq));
            seq += 3;
        }
        store
            .append(EventBatch::from(batch))
            .await
            .expect("history is stored");
    }
}

fn hello(session: &SessionId, seq: u64) -> [Event; 3] {
    let root = AgentName::from("lango-orchestrator");
    let event = |at: u64, author: AgentName, body| Event {
        seq: seq + at,
        session: session.clone(),
        turn: TurnId::new(format!("t_{seq}")),
        frame: FrameId::root(),
        author,
        time: Timestamp(seq),
        body,
    };
    let answer = EventBody::AgentMessage {
        text: "Hello! What can I do?".into(),
        calls: Vec::new(),
        is_final: true,
        model: Some("test/scripted".into()),
        usage: Usage::default(),
        cost_micros: None,
        opaque: None,
        stop: lango_core::StopReason::Finished,
        trust: lango_core::Trust::Trusted,
    };
    let end = EventBody::TurnFinished {
        outcome: Outcome::Answered { limit: None },
        answer: Some(seq + 1),
        usage: Usage::default(),
        cost_micros: None,
        model_calls: 1,
        tool_calls: 0,
        rounds: 0,
    };
    [
        event(
            0,
            AgentName::user(),
            EventBody::UserMessage {
                text: "hello".into(),
                origin: Some(lango_core::MessageOrigin::Person),
                settings: None,
                attachments: Vec::new(),
            },
        ),
        event(1, root.clone(), answer),
        event(2, root, end),
    ]
}
