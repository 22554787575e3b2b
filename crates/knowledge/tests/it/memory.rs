//! Tests of memory with a real database: its steps, its tools, its owners, and crashes.

mod crash;
mod forgetting;
mod managing;
mod owners;
mod races;
mod steps;
mod tools;

use super::KIND;
use crate::database::TestDatabase;
use futures_util::StreamExt as _;
use futures_util::stream;
use lango_core::{
    BoxStream, Caller, Message, Model, ModelError, ModelEvent, ModelInfo, ModelReply, ModelRequest,
    NewSession, SessionId, SessionStore, Timestamp, ToolError, ToolOutput, Trust, UserId,
};
use lango_knowledge::{Memory, MemorySettings, memory_tools};
use lango_store::{Generation, MemoryOrder, MemoryOwner, MemoryRecord, Store};
use lango_testkit::clock_and_ids::ManualClock;
use lango_testkit::model::{failure, say};
use lango_testkit::session_store_contract::LogBuilder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// 2026-03-01.
const NOW: Timestamp = Timestamp(1_772_323_200_000);

/// A database in its own folder.
struct TestEnvironment {
    place: TestDatabase,
    store: Arc<Store>,
}

impl TestEnvironment {
    fn new() -> Self {
        let place = TestDatabase::new(KIND);
        Self {
            store: place.open(),
            place,
        }
    }

    async fn session(&self, user: &str, id: &str) -> MemoryOwner {
        create(&self.store, user, id).await
    }

    /// Appends complete turns to a session.
    async fn talk(&self, owner: &MemoryOwner, turns: &[(&str, &str)]) {
        let mut builder = end_of(&self.store, owner).await;
        for (question, answer) in turns {
            builder = builder.exchange(question, answer);
        }
        self.store.append(builder.batch()).await.unwrap();
    }

    fn memory(&self, model: Option<Arc<dyn Model>>, settings: MemorySettings) -> Memory {
        memory(&self.store, model, settings)
    }

    /// Returns all memories of one generation, the oldest first.
    async fn all(&self, owner: &MemoryOwner, generation: Generation) -> Vec<MemoryRecord> {
        all(&self.store, owner, generation).await
    }
}

fn memory(store: &Arc<Store>, model: Option<Arc<dyn Model>>, settings: MemorySettings) -> Memory {
    let clock = ManualClock::default();
    clock.set(NOW);
    Memory::new(store.clone(), model, Arc::new(clock), settings)
}

async fn create(store: &Arc<Store>, user: &str, id: &str) -> MemoryOwner {
    let new = NewSession {
        id: SessionId::from(id),
        user: UserId::from(user),
        created: NOW,
    };
    store.create(new).await.unwrap();
    MemoryOwner {
        user: user.into(),
        session: id.into(),
    }
}

async fn end_of(store: &Arc<Store>, owner: &MemoryOwner) -> LogBuilder {
    let head = store.read_head(&owner.session).await.unwrap();
    LogBuilder::new(&owner.session).at(head.next_seq)
}

async fn all(store: &Arc<Store>, owner: &MemoryOwner, generation: Generation) -> Vec<MemoryRecord> {
    let mut found = store
        .recollections(owner, generation, MemoryOrder::Newest, 10_000)
        .await
        .unwrap();
    found.reverse();
    found
}

/// Returns settings with thresholds that a few short turns exceed.
fn eager() -> MemorySettings {
    MemorySettings {
        message_token_threshold: 20,
        observation_token_threshold: 40,
        reflection_token_threshold: 80,
        context_tokens: 600,
        attempts: 3,
    }
}

/// Runs a tool for an owner in the last turn of the session.
async fn run(
    memory: &Memory,
    owner: &MemoryOwner,
    name: &str,
    arguments: Value,
) -> Result<String, ToolError> {
    run_in(memory, owner, "t_1", name, arguments).await
}

/// Runs a tool like [`run`], for an agent that has read untrusted data.
async fn run_untrusted(
    memory: &Memory,
    owner: &MemoryOwner,
    name: &str,
    arguments: Value,
) -> Result<String, ToolError> {
    let caller = Caller {
        trust: Trust::Untrusted,
        ..caller(owner, "t_1")
    };
    let output = run_as(memory, &caller, name, arguments).await;
    output.map(|output| output.text)
}

async fn run_in(
    memory: &Memory,
    owner: &MemoryOwner,
    turn: &str,
    name: &str,
    arguments: Value,
) -> Result<String, ToolError> {
    let output = run_as(memory, &caller(owner, turn), name, arguments).await;
    output.map(|output| output.text)
}

fn caller(owner: &MemoryOwner, turn: &str) -> Caller {
    Caller {
        user: owner.user.clone(),
        session: owner.session.clone(),
        turn: turn.into(),
        agent: "chronicler".into(),
        call: "call_1".into(),
        trust: Trust::Trusted,
        inspection: Default::default(),
        output: Default::default(),
    }
}

async fn run_as(
    memory: &Memory,
    caller: &Caller,
    name: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    let tools = memory_tools(memory.clone());
    let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
    let arguments = Arc::new(arguments);
    let inspection = tool.inspect(caller, arguments.clone()).await;
    let caller = Caller {
        inspection,
        ..caller.clone()
    };
    tool.run(&caller, arguments).await
}

/// Returns the data in a model request.
fn data(request: &ModelRequest) -> String {
    match request.messages.as_slice() {
        [Message::User { text, .. }] => text.as_ref().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// Counts the marks `#1`, `#2`, … in a text.
fn marks(text: &str) -> BTreeMap<u64, usize> {
    let mut found = BTreeMap::new();
    for part in text.split('#').skip(1) {
        let digits = part.find(|letter: char| !letter.is_ascii_digit());
        if let Ok(mark) = part[..digits.unwrap_or(part.len())].parse() {
            *found.entry(mark).or_default() += 1;
        }
    }
    found
}

/// Returns the reply of an echoing model: the marks in its request.
fn echo(request: &ModelRequest) -> String {
    let marks: Vec<String> = marks(&data(request))
        .keys()
        .map(|mark| format!("#{mark}"))
        .collect();
    format!("- seen {}", marks.join(" "))
}

/// A model that repeats the marks in its request. It yields before and after its answer, and runs a function in
/// between.
struct Echo<F>(F);

impl<F, R> Model for Echo<F>
where
    F: Fn() -> R + Send + Sync,
    R: Future<Output = ()> + Send + 'static,
{
    fn name(&self) -> &str {
        "test/echo"
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let answer = async move {
            tokio::task::yield_now().await;
            (self.0)().await;
            tokio::task::yield_now().await;
            Ok(ModelEvent::Reply(say(&echo(&request))))
        };
        stream::once(answer).boxed()
    }
}

fn echoing() -> Arc<dyn Model> {
    Arc::new(Echo(|| std::future::ready(())))
}

/// Returns the failure of a model.
fn failing() -> Result<ModelReply, ModelError> {
    Err(failure(lango_core::ModelFault::Incomplete))
}
