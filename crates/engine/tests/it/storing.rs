//! Which events are stored together, and what runs while they are stored.

use crate::bench::{Bench, finished, local, log, turn};
use crate::failpoints::points::{FailPointStore, FailPoints};
use lango_core::{
    AgentName, BoxFuture, CallStatus, Caller, Effect, Event, EventBody, EventRange, Outcome,
    SessionStore as _, Tool, ToolError, ToolOutput, ToolSpec,
};
use lango_engine::{CancelToken, TurnUpdate, turn_updates};
use lango_store::{PostgresOptions, Store};
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::postgres;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Returns the first batch that contains the call of this tool.
async fn stored_with_call(tool: CountingTool) -> Vec<Event> {
    let bench = Bench::new(vec![Arc::new(tool)]);
    let script = [
        delegate_and_finish("operator", "read a"),
        call("fs_read", json!({"path": "a"})),
        say("It says hi."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let (_, updates) = turn(&mut conversation, "read a").await;
    let is_call = |event: &Event| matches!(event.body, EventBody::ToolCalled { .. });
    let mut batches = updates.iter().filter_map(|item| match item {
        TurnUpdate::Stored(batch) if batch.iter().any(is_call) => Some(batch.to_vec()),
        _ => None,
    });
    batches.next().unwrap()
}

#[tokio::test]
async fn a_fast_pure_tool_is_stored_in_one_batch_with_its_result() {
    let is_result = |event: &Event| matches!(event.body, EventBody::ToolReturned { .. });
    let pure = CountingTool::new("fs_read").with_effect(Effect::Pure);
    assert!(stored_with_call(pure).await.iter().any(is_result));
    // The call of a tool with effects is stored before it runs.
    let writes = CountingTool::new("fs_read").with_effect(Effect::NonIdempotent);
    assert!(!stored_with_call(writes).await.iter().any(is_result));
}

#[tokio::test(start_paused = true)]
async fn the_call_of_a_slow_pure_tool_is_stored_before_its_result() {
    let slow = CountingTool::new("fs_read").with_effect(Effect::Pure);
    let batch = stored_with_call(slow.never_returning()).await;
    assert!(matches!(
        batch.last().unwrap().body,
        EventBody::ToolCalled { .. }
    ));
}

/// A tool that reads from the store several times.
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
                let page = EventRange { from: 1, limit: 1 };
                self.store.read(&caller.session, page).await.unwrap();
            }
            Ok(ToolOutput::from("read".to_owned()))
        })
    }
}

#[tokio::test]
async fn a_step_that_uses_the_last_store_connection_continues_while_the_turn_waits_for_it() {
    let options = PostgresOptions {
        connections: 1,
        ..PostgresOptions::default()
    };
    let address = postgres::fresh_schema();
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

/// Runs a turn with these calls, cancels it after an append with a matching event, and returns its log.
async fn stopped_turn(
    tools: Vec<Arc<dyn Tool>>,
    called: &[&str],
    last_event: &'static str,
) -> Vec<Event> {
    let stop = CancelToken::new();
    let stopper = stop.clone();
    let points = FailPoints::observed_by(move |place| {
        if place.starts_with("after append") && place.contains(last_event) {
            stopper.cancel();
        }
    });
    let store = FailPointStore {
        inner: Arc::new(Store::in_memory()),
        points,
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
    let (sender, _shown) = turn_updates();
    let report = finished(conversation.turn("x", &stop, &sender).await.unwrap());
    assert_eq!(report.outcome, Outcome::Cancelled);
    log(&bench, conversation.session()).await
}

#[tokio::test]
async fn a_call_that_was_stored_when_the_turn_was_cancelled_does_not_run() {
    let tool = Arc::new(CountingTool::new("fs_read").with_effect(Effect::Idempotent));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&tool) as _];
    stopped_turn(tools, &["fs_read"], "tool.called").await;
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn a_result_that_came_before_the_turn_was_cancelled_is_stored() {
    let first = CountingTool::new("fs_read").with_effect(Effect::Idempotent);
    let second = CountingTool::new("fs_search").with_effect(Effect::Idempotent);
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(first), Arc::new(second)];
    let log = stopped_turn(tools, &["fs_read", "fs_search"], "tool.returned").await;
    let results = log.iter().filter_map(|event| match &event.body {
        EventBody::ToolReturned { status, .. } => Some(*status),
        _ => None,
    });
    assert_eq!(
        results.collect::<Vec<_>>(),
        [CallStatus::Ok, CallStatus::Ok]
    );
}
