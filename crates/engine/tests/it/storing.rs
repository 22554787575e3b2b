//! What is stored together, and what goes on meanwhile.

use crate::bench::{Bench, local, turn};
use lango_core::{
    AgentName, BoxFuture, Caller, Effect, Event, EventBody, Page, SessionStore as _, Tool,
    ToolError, ToolOutput, ToolSpec,
};
use lango_engine::Shown;
use lango_store::{PostgresOptions, Store};
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::postgres;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

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
