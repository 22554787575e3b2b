//! Requests that are recomputed from the log equal the original ones.

use crate::bench::{Bench, Shared, local, log, turn};
use lango_core::{Event, EventBody, TurnId};
use lango_engine::{RecomputeError, Runner};
use lango_testkit::model::{ScriptedModel, call, calls, delegate, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

/// Recomputes all requests and compares them, except for the bytes of files, which are loaded when a request is sent.
pub(crate) async fn recompute_all(
    events: &[Event],
    runner: &Runner,
    model: &ScriptedModel,
) -> usize {
    let mut asked = model.requests();
    let mut compared = 0;
    for event in events {
        if !matches!(&event.body, EventBody::AgentMessage { model: Some(_), .. }) {
            continue;
        }
        let found = runner
            .model_call(&event.session, &event.turn, event.seq)
            .await;
        let found = found.unwrap().expect("the reply of a model");
        let request = found
            .request
            .unwrap_or_else(|problem| panic!("{}: {problem}", event.seq));
        let at = asked.iter().position(|sent| *sent == request);
        let at = at.unwrap_or_else(|| panic!("event {} was not sent {request:#?}", event.seq));
        asked.remove(at);
        compared += 1;
    }
    compared
}

#[tokio::test]
async fn every_request_of_serial_and_parallel_turns_can_be_recomputed() {
    let bench = Bench::new(vec![
        Arc::new(CountingTool::new("fs_read")),
        Arc::new(CountingTool::new("search_web")),
    ]);
    let model = Arc::new(ScriptedModel::from_fn(|request| {
        let text = format!("{:?}", request.messages);
        let is_root = request
            .functions
            .iter()
            .any(|function| &*function.name == "delegate");
        let has_result = text.contains("Result {");
        match (is_root, has_result) {
            (true, false) if text.contains("both") => calls([
                ("delegate", json!({"agent": "operator", "task": "read"})),
                ("delegate", json!({"agent": "librarian", "task": "search"})),
            ]),
            (true, false) if text.contains("finish") => delegate_and_finish("operator", "read"),
            (true, false) => delegate("operator", "read"),
            (false, false) if text.contains("search") => call("search_web", json!({"query": "x"})),
            (false, false) => call("fs_read", json!({"path": "a"})),
            (_, true) => say("done"),
        }
    }));
    let runner = bench.runner(Shared(Arc::clone(&model)));
    let mut conversation = runner.start(local());
    for question in ["one", "both", "finish it", "both again"] {
        turn(&mut conversation, question).await;
    }
    let events = log(&bench, conversation.session()).await;
    let compared = recompute_all(&events, &runner, &model).await;
    assert!(compared >= 15, "{compared}");
}

#[tokio::test]
async fn with_other_agents_a_request_cannot_be_recomputed() {
    let bench = Bench::new(vec![Arc::new(CountingTool::new("fs_read"))]);
    let runner = bench.runner(ScriptedModel::replies([say("hi")]));
    let mut conversation = runner.start(local());
    let (report, _) = turn(&mut conversation, "hello").await;
    let mut other = Bench::new(vec![Arc::new(CountingTool::new("fs_write"))]);
    other.store = Arc::clone(&bench.store);
    let other = other.runner(ScriptedModel::replies([]));
    let call = other.model_call(&report.session, &report.turn, 2).await;
    let call = call.unwrap().unwrap();
    assert_eq!(call.request.unwrap_err(), RecomputeError::AgentsChanged);
    let none = runner
        .model_call(&report.session, &TurnId::from("t_none"), 2)
        .await;
    assert!(none.unwrap().is_none());
    let question = runner.model_call(&report.session, &report.turn, 1).await;
    assert!(question.unwrap().is_none(), "event 1 is the question");
}
