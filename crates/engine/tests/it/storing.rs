//! What is stored together, and what goes on meanwhile.

use crate::bench::{Bench, finished, local, log, turn};
use lango_core::{
    AgentName, Batch, BoxFuture, BoxLease, BusyPolicy, CallStatus, Caller, Effect, Event,
    EventBody, Grant, NewSession, Outcome, Page, RemoteThread, SessionHead, SessionId,
    SessionStore, StoreError, Tool, ToolError, ToolOutput, ToolSpec, TurnId,
};
use lango_engine::{Shown, Stop};
use lango_store::{PostgresOptions, Store};
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::postgres;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The events that were stored with the call of a tool, whose results may be missing.
async fn stored_with_call(tool: CountingTool) -> Vec<Event> {
    let bench = Bench::new(vec![Arc::new(tool)]);
    let script = [
        delegate_and_finish("operator", "read a"),
        call("fs_read", json!({"path": "a"})),
        say("It says hi."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let (_, shown) = turn(&mut conversation, "read a").await;
    let is_call = |event: &Event| matches!(event.body, EventBody::ToolCalled { .. });
    let mut batches = shown.iter().filter_map(|item| match item {
        Shown::Stored(batch) if batch.iter().any(is_call) => Some(batch.to_vec()),
        _ => None,
    });
    batches.next().unwrap()
}

#[tokio::test]
async fn a_pure_tool_that_returns_at_once_is_stored_in_one_batch_with_its_result() {
    let is_result = |event: &Event| matches!(event.body, EventBody::ToolReturned { .. });
    let pure = CountingTool::new("fs_read").with_effect(Effect::Pure);
    assert!(stored_with_call(pure).await.iter().any(is_result));
    // What it does must not be lost, so its call is stored before.
    let writes = CountingTool::new("fs_read").with_effect(Effect::Effect);
    assert!(!stored_with_call(writes).await.iter().any(is_result));
}

#[tokio::test(start_paused = true)]
async fn a_pure_tool_that_takes_long_is_stored_before_its_result() {
    let slow = CountingTool::new("fs_read").with_effect(Effect::Pure);
    let batch = stored_with_call(slow.never_returning()).await;
    assert!(matches!(
        batch.last().unwrap().body,
        EventBody::ToolCalled { .. }
    ));
}

/// A tool that reads from the store until it has read often enough.
struct ReadingTool {
    spec: ToolSpec,
    store: Arc<Store>,
}

impl Tool for ReadingTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        _: Arc<serde_json::Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            for _ in 0..20 {
                let page = Page { from: 1, limit: 1 };
                self.store.read(&caller.session, page).await.unwrap();
            }
            Ok(ToolOutput::from("read".to_owned()))
        })
    }
}

#[tokio::test]
async fn a_step_that_uses_the_last_connection_of_the_store_goes_on_while_the_turn_waits_for_it() {
    let options = PostgresOptions {
        connections: 1,
        ..PostgresOptions::default()
    };
    let address = postgres::empty();
    let root = AgentName::new("lango-orchestrator");
    let store = Arc::new(Store::postgres_with(&address, root, options).unwrap());
    let slow = ReadingTool {
        spec: CountingTool::new("fs_search").spec().clone(),
        store: Arc::clone(&store),
    };
    let bench = Bench {
        store,
        ..Bench::new(vec![Arc::new(slow), Arc::new(CountingTool::new("fs_read"))])
    };
    let both = [("fs_search", json!({})), ("fs_read", json!({"path": "a"}))];
    let script = [
        delegate_and_finish("operator", "both"),
        calls(both),
        say("done"),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let turn = turn(&mut conversation, "both");
    let (report, _) = tokio::time::timeout(Duration::from_secs(10), turn)
        .await
        .expect("the turn does not wait for itself");
    assert_eq!(report.answer.as_deref(), Some("done"));
}

/// A store that takes a moment for each append, and stops the turn with the first one that has such an event.
struct StoppingStore {
    inner: Store,
    stop: Stop,
    stops_after: fn(&EventBody) -> bool,
}

impl SessionStore for StoppingStore {
    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let is_last = events.iter().any(|event| (self.stops_after)(&event.body));
            self.inner.append(events).await?;
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            if is_last {
                self.stop.stop();
            }
            Ok(())
        })
    }

    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.create(session)
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        self.inner.open(session)
    }

    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>> {
        self.inner.acquire(session, busy_policy)
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.inner.read(session, page)
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.inner.turn_events(session, turn)
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        self.inner.grants(session, folder)
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        self.inner.remote_thread(session, agent)
    }
}

/// Runs a turn with these calls that is stopped after such an event, and returns its log.
async fn stopped_turn(
    tools: Vec<Arc<dyn Tool>>,
    called: &[&str],
    stops_after: fn(&EventBody) -> bool,
) -> Vec<Event> {
    let stop = Stop::new();
    let store = StoppingStore {
        inner: Store::in_memory(),
        stop: stop.clone(),
        stops_after,
    };
    let bench = Bench {
        store: Arc::new(store),
        ..Bench::new(tools)
    };
    let script = [
        delegate_and_finish("operator", "x"),
        calls(called.iter().map(|name| (*name, json!({})))),
        say("never"),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let (sender, _shown) = mpsc::channel(1000);
    let report = finished(conversation.turn("x", &stop, &sender).await.unwrap());
    assert_eq!(report.outcome, Outcome::Cancelled);
    log(&bench, conversation.session()).await
}

#[tokio::test]
async fn a_call_that_was_stored_when_the_turn_was_stopped_does_not_run() {
    let tool = Arc::new(CountingTool::new("fs_read").with_effect(Effect::Idempotent));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&tool) as _];
    stopped_turn(tools, &["fs_read"], |body| {
        matches!(body, EventBody::ToolCalled { .. })
    })
    .await;
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn a_result_that_came_before_the_turn_was_stopped_is_stored() {
    let first = CountingTool::new("fs_read").with_effect(Effect::Idempotent);
    let second = CountingTool::new("fs_search").with_effect(Effect::Idempotent);
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(first), Arc::new(second)];
    let log = stopped_turn(tools, &["fs_read", "fs_search"], |body| {
        matches!(body, EventBody::ToolReturned { .. })
    })
    .await;
    let results = log.iter().filter_map(|event| match &event.body {
        EventBody::ToolReturned { status, .. } => Some(*status),
        _ => None,
    });
    assert_eq!(
        results.collect::<Vec<_>>(),
        [CallStatus::Ok, CallStatus::Ok]
    );
}
