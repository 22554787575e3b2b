//! Trust labels after a crash, and in logs of an older lango.

use crate::bench::{Bench, local, log, turn};
use crate::resume::{bench_with_log, resume};
use crate::trust::{LabelRecorder, bench_with, save, untrusted_tool};
use lango_core::{Event, EventBody, Tool, Trust};
use lango_engine::Topology;
use lango_testkit::model::{ScriptedModel, calls, say};
use serde_json::json;
use std::sync::Arc;

/// The complete log of a turn that saves.
async fn whole_turn() -> Vec<Event> {
    let (bench, _) = bench_with(Vec::new());
    let mut conversation = bench.runner(ScriptedModel::replies(save())).start(local());
    turn(&mut conversation, "remember that I like tea").await;
    log(&bench, conversation.session()).await
}

fn position(events: &[Event], is_match: impl Fn(&EventBody) -> bool) -> usize {
    events
        .iter()
        .position(|event| is_match(&event.body))
        .unwrap()
}

/// Returns the numbers of events after which a process can end. A reply is stored together with what follows from its
/// calls.
fn ends(events: &[Event]) -> impl Iterator<Item = usize> {
    let is_reply = |event: &Event| matches!(event.body, EventBody::AgentMessage { .. });
    (1..=events.len()).filter(move |end| !is_reply(&events[end - 1]))
}

/// Resumes a turn from this log with additional tools, and returns the labels of the saved entries and the log.
async fn resumed(events: &[Event], more: Vec<Arc<dyn Tool>>) -> (Vec<Trust>, Vec<Event>) {
    let saving = LabelRecorder::new();
    let mut tools: Vec<Arc<dyn Tool>> = vec![saving.clone()];
    tools.extend(more);
    let (bench, session) = bench_with_log(tools, events).await;
    // The offered functions identify the agent that is called first.
    let model = ScriptedModel::from_fn(|request| {
        let [delegates, saves, says] = save();
        let has_result =
            |message: &lango_core::Message| matches!(message, lango_core::Message::Result { .. });
        let has_results = request.messages.iter().any(has_result);
        match request.functions.first().map(|function| &*function.name) {
            Some("delegate") if !has_results => delegates,
            Some("memory_save") if !has_results => saves,
            _ => says,
        }
    });
    let mut conversation = bench.runner(model).open(session.clone()).await.unwrap();
    resume(&mut conversation).await;
    (saving.labels(), log(&bench, &session).await)
}

#[tokio::test]
async fn a_turn_saves_with_the_same_label_wherever_its_process_ended() {
    let whole = whole_turn().await;
    let called = position(&whole, |body| matches!(body, EventBody::ToolCalled { .. }));
    for end in ends(&whole[..=called]) {
        let (labels, _) = resumed(&whole[..end], Vec::new()).await;
        assert_eq!(labels, [Trust::Trusted], "after {end} events");
    }
}

#[tokio::test]
async fn what_an_agent_sees_after_a_crash_lowers_its_label_for_the_rest_of_the_turn() {
    let whole = whole_turn().await;
    let delegated = position(&whole, |body| {
        matches!(body, EventBody::AgentDelegated { .. })
    });
    // The chronicler now gets a tool of an MCP server that it did not have before.
    let begun = &whole[..=delegated];
    let (labels, log) = resumed(begun, vec![untrusted_tool("memory_of_mcp")]).await;
    assert_eq!(labels, [Trust::Untrusted]);
    // It made the call when it had seen the tool; removing the tool later changes nothing.
    let called = position(&log, |body| matches!(body, EventBody::ToolCalled { .. }));
    let (labels, _) = resumed(&log[..=called], Vec::new()).await;
    assert_eq!(labels, [Trust::Untrusted]);
}

#[tokio::test]
async fn a_result_that_came_before_the_crash_does_not_lower_the_label_of_a_call_beside_it() {
    let (mut bench, saving) = bench_with(Vec::new());
    bench.topology = Topology::built_in("classic").unwrap();
    let both = calls([("fs_read", json!({})), ("memory_save", json!({}))]);
    let script = [both, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    turn(&mut conversation, "read, and remember tea").await;
    assert_eq!(saving.labels(), [Trust::Trusted]);
    let whole = log(&bench, conversation.session()).await;
    let returned = position(&whole, |body| {
        matches!(body, EventBody::ToolReturned { .. })
    });
    let is_read = |event: &Event| event.body.trust() == Trust::Untrusted;
    assert!(is_read(&whole[returned]), "the file is read first");
    let again = LabelRecorder::new();
    let (mut bench, session) = bench_with_log(
        vec![again.clone(), bench.tools[1].clone()],
        &whole[..=returned],
    )
    .await;
    bench.topology = Topology::built_in("classic").unwrap();
    let model = ScriptedModel::replies([say("Done.")]);
    let mut conversation = bench.runner(model).open(session).await.unwrap();
    resume(&mut conversation).await;
    assert_eq!(again.labels(), [Trust::Trusted]);
}

#[tokio::test]
async fn a_turn_of_an_older_lango_has_no_labels_and_saves_as_untrusted() {
    let whole = whole_turn().await;
    let called = position(&whole, |body| matches!(body, EventBody::ToolCalled { .. }));
    let old: Vec<Event> = whole.iter().map(without_labels).collect();
    for end in ends(&whole[..=called]) {
        let (labels, _) = resumed(&old[..end], Vec::new()).await;
        assert_eq!(labels, [Trust::Untrusted], "after {end} events");
    }
    // A new turn after a finished one sees it.
    let (bench, session) = bench_with_log(Bench::new(Vec::new()).tools, &old).await;
    let saving = LabelRecorder::new();
    let bench = Bench {
        tools: vec![saving.clone()],
        ..bench
    };
    let runner = bench.runner(ScriptedModel::replies(save()));
    let mut conversation = runner.open(session).await.unwrap();
    turn(&mut conversation, "remember that I like tea").await;
    assert_eq!(saving.labels(), [Trust::Untrusted]);
}

/// Returns an event as an older lango wrote it.
fn without_labels(event: &Event) -> Event {
    let mut json = serde_json::to_value(event).unwrap();
    let object = json.as_object_mut().unwrap();
    object.remove("trust");
    object.remove("origin");
    if let Some(settings) = object.get_mut("settings") {
        settings.as_object_mut().unwrap().remove("history_trust");
    }
    let old: Event = serde_json::from_value(json.clone()).unwrap();
    // It is written exactly as it was read, so hashes of old logs stay valid.
    assert_eq!(serde_json::to_value(&old).unwrap(), json);
    old
}
