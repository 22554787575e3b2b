//! A model that reasons or writes arguments for a while reports how much it has produced.

use crate::support::Wire;
use crate::support::{model, request};
use futures_util::StreamExt;
use lango_core::{Model, ModelEvent};
use lango_testkit::wire_server::{Fault, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::time::Duration;

const REASONING: [&str; 2] = ["Let me think ", "about it: é."];
const ARGUMENTS: [&str; 2] = ["{\"path\":", "\"a.txt\"}"];

/// Returns the frames of a reply that has reasoning and a call, but no text and no end, and the bytes of its output.
fn frames(kind: Wire) -> (Vec<Value>, usize) {
    let frames = match kind {
        Wire::OpenAi => openai_frames(),
        Wire::Responses => responses_frames(),
        Wire::Anthropic => anthropic_frames(),
        Wire::Gemini => {
            let parts = |parts: Value| json!({ "candidates": [{ "content": { "parts": parts } }] });
            let arguments: Value = serde_json::from_str(&ARGUMENTS.concat()).unwrap();
            let thoughts = REASONING.map(|text| parts(json!([{ "text": text, "thought": true }])));
            let call = json!([{ "functionCall": { "name": "read", "args": arguments } }]);
            thoughts.into_iter().chain([parts(call)]).collect()
        }
    };
    let output = REASONING.concat().len() + ARGUMENTS.concat().len();
    // The chat completions API has the call's id and name in the same pieces.
    let names = if kind == Wire::OpenAi {
        "c1read".len()
    } else {
        0
    };
    (frames, output + names)
}

fn openai_frames() -> Vec<Value> {
    let chunk = |delta: Value| json!({ "choices": [{ "delta": delta }] });
    let call = |piece: &str| json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": { "name": "read", "arguments": piece } }] });
    let thoughts = REASONING.map(|text| chunk(json!({ "reasoning_content": text })));
    thoughts
        .into_iter()
        .chain(ARGUMENTS.map(|piece| chunk(call(piece))))
        .collect()
}

fn responses_frames() -> Vec<Value> {
    let delta = |kind: &str, index: u64, text: &str| json!({ "type": kind, "output_index": index, "delta": text });
    let call = json!({ "id": "fc", "type": "function_call", "call_id": "c1", "name": "read", "arguments": "" });
    let added = json!({ "type": "response.output_item.added", "output_index": 1, "item": call });
    let thoughts = REASONING.map(|text| delta("response.reasoning_text.delta", 0, text));
    let pieces = ARGUMENTS.map(|text| delta("response.function_call_arguments.delta", 1, text));
    thoughts.into_iter().chain([added]).chain(pieces).collect()
}

fn anthropic_frames() -> Vec<Value> {
    let begin = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let mut frames = vec![begin(0, json!({ "type": "thinking", "thinking": "" }))];
    frames.extend(
        REASONING.map(|text| delta(0, json!({ "type": "thinking_delta", "thinking": text }))),
    );
    let call = json!({ "type": "tool_use", "id": "c1", "name": "read", "input": {} });
    frames.push(begin(1, call));
    frames.extend(ARGUMENTS.map(|text| {
        delta(
            1,
            json!({ "type": "input_json_delta", "partial_json": text }),
        )
    }));
    frames
}

/// Reads progress until it has reached this many bytes. Returns the number of reports.
async fn read_progress(model: &dyn Model, bytes: usize) -> usize {
    let mut stream = model.call(request());
    let (mut reports, mut sum) = (0, 0);
    while sum < bytes {
        match stream.next().await {
            Some(Ok(ModelEvent::Progress { bytes })) => sum += bytes,
            other => panic!("{other:?} after {sum} bytes"),
        }
        reports += 1;
    }
    assert_eq!(sum, bytes);
    reports
}

#[tokio::test]
async fn reasoning_and_arguments_are_reported_while_they_arrive() {
    for kind in Wire::ALL {
        let (frames, bytes) = frames(kind);
        let all = frames.len();
        // The reply never ends, so what arrived is reported without waiting for more.
        let answer = ScriptedAnswer::frames(frames).with(Fault::SilentAfter(usize::MAX));
        let server = WireServer::scripted([answer]).await;
        let model = model(kind, server.url(), true);
        let reading = read_progress(&model, bytes);
        let reports = tokio::time::timeout(Duration::from_secs(10), reading).await;
        let reports = reports.unwrap_or_else(|_| panic!("{kind:?} does not report its output"));
        assert!(reports <= all, "{kind:?} reports {reports} times");
    }
}

#[tokio::test]
async fn frames_that_arrive_together_are_reported_once() {
    let frames =
        (0..1000).map(|_| json!({ "choices": [{ "delta": { "reasoning": "0123456789" } }] }));
    let frames: Vec<String> = frames.map(|frame| format!("data: {frame}\n\n")).collect();
    let answer = ScriptedAnswer::bytes("text/event-stream", frames.concat());
    let server = WireServer::scripted([answer]).await;
    let model = model(Wire::OpenAi, server.url(), true);
    let reports = read_progress(&model, 10_000).await;
    assert!(
        reports < 100,
        "1000 frames in one body took {reports} reports"
    );
}
