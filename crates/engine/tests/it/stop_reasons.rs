//! Why a reply ended is reported to the user, and a remedy is tried once.

use crate::support::{Play, Shape, tree};
use lango_core::{
    CallStatus, Event, EventBody, Message, ModelError, ModelFault, ModelReply, Outcome, StopReason,
    Timestamp, TurnFault,
};
use lango_engine::{ModelStep, Turn, TurnInput, TurnStep};
use lango_testkit::model::{call, say};
use serde_json::json;
use std::sync::Arc;

fn stopped(reply: ModelReply, stop: StopReason) -> ModelReply {
    ModelReply { stop, ..reply }
}

#[test]
fn a_reply_at_the_output_limit_without_text_is_retried_once_with_a_higher_limit() {
    let script = vec![
        stopped(say(""), StopReason::OutputLimit),
        say("Here it is."),
    ];
    let played = Play::scripted(tree(Shape::Single), script).run("x");
    assert_eq!(played.faults(), [TurnFault::OutputLimit]);
    let raised: Vec<bool> = played
        .requests
        .iter()
        .map(|(_, request)| request.raise_output_limit)
        .collect();
    assert_eq!(raised, [false, true]);
    let (first, second) = (&played.requests[0].1, &played.requests[1].1);
    assert_eq!(first.messages, second.messages, "the retry adds no message");
    assert_eq!(played.answer().1, "Here it is.");
}

#[test]
fn a_second_reply_at_the_output_limit_fails_the_turn_and_says_what_to_change() {
    let cut = || stopped(say(" "), StopReason::OutputLimit);
    let played = Play::scripted(tree(Shape::Single), vec![cut(), cut()]).run("x");
    let Outcome::Failed { error, .. } = played.outcome() else {
        panic!("{:?}", played.outcome());
    };
    assert!(error.contains("output limit"), "{error}");
    assert!(error.contains("agent.maxOutputTokens"), "{error}");
}

#[test]
fn an_answer_that_a_filter_cut_off_says_why() {
    let detail = "it ended with RECITATION: the text was in a book".into();
    let cut = stopped(say("It was the best"), StopReason::Filtered { detail });
    let played = Play::scripted(tree(Shape::Single), vec![cut]).run("x");
    assert_eq!(
        played.answer().1,
        "It was the best\n\n[the answer was cut off here: it ended with RECITATION: the text was in a book]"
    );
}

#[test]
fn calls_without_an_id_get_one_that_the_strictest_provider_accepts() {
    let reply = ModelReply {
        calls: vec![lango_testkit::model::raw_call(
            "",
            "fs_read",
            r#"{"path":"a"}"#,
        )],
        ..say("")
    };
    let played = Play::scripted(tree(Shape::Single), vec![reply, say("done")]).run("x");
    let id = played.tools_run[0].call.as_str().to_owned();
    assert_eq!(id.len(), 9);
    assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
}

/// Starts a turn in which a tool returned a long text.
fn turn_with_a_long_result() -> (Turn, Vec<Event>) {
    let play = Play::scripted(tree(Shape::Single), Vec::new());
    let (mut turn, mut events) = play.begin("x");
    events.extend(reply(&mut turn, call("fs_read", json!({"path": "a"}))));
    let Some(TurnStep::CallTool(step)) = turn.ready().into_iter().next() else {
        panic!("a tool was called");
    };
    let input = TurnInput::ToolReturned {
        step,
        status: CallStatus::Ok,
        output: "x".repeat(90_000).into(),
        attachments: Vec::new(),
        trust: lango_core::Trust::Untrusted,
    };
    events.extend(turn.accept(input, Timestamp(2)));
    (turn, events)
}

fn model_step(turn: &Turn) -> ModelStep {
    match turn.ready().into_iter().next() {
        Some(TurnStep::CallModel(step)) => step,
        other => panic!("{other:?} is not a model call"),
    }
}

fn reply(turn: &mut Turn, reply: ModelReply) -> Vec<Event> {
    let input = TurnInput::ModelReplied {
        step: model_step(turn),
        reply,
        model: "test/scripted".into(),
        inspections: Vec::new(),
    };
    turn.accept(input, Timestamp(2))
}

fn too_long(turn: &mut Turn, limit_tokens: Option<u64>) -> Vec<Event> {
    let fault = ModelFault::ContextTooLong {
        detail: "no room".to_owned(),
        limit_tokens,
    };
    let error = ModelError {
        model: "test/scripted".into(),
        fault,
        address: None,
    };
    let step = model_step(turn);
    turn.accept(TurnInput::ModelFailed { step, error }, Timestamp(2))
}

fn request_bytes(turn: &Turn) -> usize {
    let request = turn.request(&model_step(turn));
    let text = |message: &Message| match message {
        Message::Result { text, .. } => text.len(),
        _ => 0,
    };
    request.messages.iter().map(text).sum()
}

#[test]
fn a_request_that_cannot_be_shortened_fails_immediately() {
    let play = Play::scripted(tree(Shape::Single), Vec::new());
    let (mut turn, _) = play.begin("x");
    too_long(&mut turn, Some(10));
    assert!(matches!(turn.outcome(), Some(Outcome::Failed { .. })));
}

#[test]
fn a_request_that_is_too_long_is_shortened_once_and_replays_the_same() {
    for (limit, most) in [(None, 50_000), (Some(4_000), 10_000)] {
        let (mut turn, mut events) = turn_with_a_long_result();
        assert!(request_bytes(&turn) >= 90_000);
        events.extend(too_long(&mut turn, limit));
        assert!(turn.outcome().is_none());
        assert!(request_bytes(&turn) <= most, "{}", request_bytes(&turn));

        let play = Play::scripted(tree(Shape::Single), Vec::new());
        let replayed = Turn::replay(
            Arc::clone(&play.tree),
            crate::support::start(Vec::new()),
            &events,
        );
        assert_eq!(request_bytes(&replayed), request_bytes(&turn));

        let last = too_long(&mut turn, limit);
        assert!(matches!(turn.outcome(), Some(Outcome::Failed { .. })));
        let failed = |event: &Event| {
            matches!(
                event.body,
                EventBody::TurnCorrected {
                    fault: TurnFault::ModelFailed,
                    ..
                }
            )
        };
        assert!(last.iter().any(failed));
    }
}
