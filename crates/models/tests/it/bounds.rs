//! Everything that is buffered of a reply is bounded, whatever a server sends.

use crate::support::Wire;
use crate::support::{BOTH, call, fault, model, request};
use lango_core::ModelFault;
use lango_testkit::wire_server::{Fault, ScriptedAnswer, WireServer};
use serde_json::{Value, json};
use std::time::Duration;

async fn is_malformed(kind: Wire, answer: impl Into<ScriptedAnswer>) {
    let reading = fault(kind, answer);
    let fault = tokio::time::timeout(Duration::from_secs(30), reading)
        .await
        .expect("it is given up");
    assert!(
        matches!(fault, ModelFault::Malformed { .. }),
        "{kind:?}: {fault:?}"
    );
    assert!(fault.to_string().len() < 500, "an error text stays short");
}

#[tokio::test]
async fn endless_text_is_rejected() {
    for kind in Wire::ALL {
        is_malformed(kind, Fault::Endless).await;
    }
}

#[tokio::test]
async fn an_endless_frame_is_rejected() {
    for kind in Wire::ALL {
        is_malformed(kind, Fault::HugeFrame).await;
    }
}

#[tokio::test]
async fn an_endless_body_is_rejected() {
    for kind in Wire::ALL {
        let mut body = b"{\"x\": \"".to_vec();
        body.resize(17 * 1024 * 1024, b'x');
        is_malformed(kind, ScriptedAnswer::bytes("application/json", body)).await;
    }
}

#[tokio::test]
async fn endless_comments_keep_the_call_waiting() {
    let server = WireServer::scripted([Fault::EndlessComments]).await;
    let model = model(Wire::OpenAi, server.url(), true);
    let waited = tokio::time::timeout(Duration::from_millis(300), call(&model, request())).await;
    assert!(
        waited.is_err(),
        "the turn's time limit ends the call, not the wire"
    );
}

/// Returns frames of about one mebibyte each.
fn mebibytes(count: usize, frame: impl Fn(usize, &str) -> Value) -> ScriptedAnswer {
    let much = "x".repeat(1024 * 1024);
    ScriptedAnswer::frames((0..count).map(|at| frame(at, &much)))
}

#[tokio::test]
async fn the_limit_applies_to_all_calls_together() {
    let openai = mebibytes(6, |at, much| {
        let call = json!({ "index": at, "id": format!("c{at}"), "function": { "name": "f", "arguments": much } });
        json!({ "choices": [{ "delta": { "tool_calls": [call] } }] })
    });
    is_malformed(Wire::OpenAi, openai).await;
    let responses = mebibytes(
        6,
        |at, much| json!({ "type": "response.function_call_arguments.delta", "output_index": at, "delta": much }),
    );
    is_malformed(Wire::Responses, responses).await;
    let anthropic = mebibytes(6, |at, much| {
        let block = json!({ "type": "tool_use", "id": at.to_string(), "name": "f", "input": { "x": much } });
        json!({ "type": "content_block_start", "index": at, "content_block": block })
    });
    is_malformed(Wire::Anthropic, anthropic).await;
    let gemini = mebibytes(6, |_, much| {
        let call = json!({ "functionCall": { "name": "f", "args": { "x": much } } });
        json!({ "candidates": [{ "content": { "parts": [call] } }] })
    });
    is_malformed(Wire::Gemini, gemini).await;
}

#[tokio::test]
async fn the_limit_applies_to_reasoning_too() {
    let openai = mebibytes(
        6,
        |_, much| json!({ "choices": [{ "delta": { "reasoning_details": [{ "data": much }] } }] }),
    );
    is_malformed(Wire::OpenAi, openai).await;
    let responses = mebibytes(6, |at, much| {
        let item =
            json!({ "id": format!("rs_{at}"), "type": "reasoning", "encrypted_content": much });
        json!({ "type": "response.output_item.done", "output_index": at, "item": item })
    });
    is_malformed(Wire::Responses, responses).await;
    let anthropic = mebibytes(6, |at, much| match at {
        0 => {
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking" } })
        }
        _ => {
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": much } })
        }
    });
    is_malformed(Wire::Anthropic, anthropic).await;
    let gemini = mebibytes(
        6,
        |_, much| json!({ "candidates": [{ "content": { "parts": [{ "text": much, "thought": true }] } }] }),
    );
    is_malformed(Wire::Gemini, gemini).await;
}

#[tokio::test]
async fn too_many_calls_are_rejected() {
    let openai = (0..300).map(|at| {
        let call = json!({ "index": at, "id": format!("c{at}"), "function": { "name": "f", "arguments": "{}" } });
        json!({ "choices": [{ "delta": { "tool_calls": [call] } }] })
    });
    is_malformed(Wire::OpenAi, ScriptedAnswer::frames(openai)).await;
    for kind in ["function_call", "message"] {
        let responses = (0..1100).map(|at| {
            let item = json!({ "id": format!("i_{at}"), "type": kind, "name": "f" });
            json!({ "type": "response.output_item.added", "output_index": at, "item": item })
        });
        is_malformed(Wire::Responses, ScriptedAnswer::frames(responses)).await;
    }
    let anthropic = (0..1100).map(|at| {
        json!({ "type": "content_block_start", "index": at, "content_block": { "type": "tool_use", "name": "f" } })
    });
    is_malformed(Wire::Anthropic, ScriptedAnswer::frames(anthropic)).await;
    let call = json!({ "functionCall": { "name": "f" } });
    let gemini = (0..300).map(|_| json!({ "candidates": [{ "content": { "parts": [call] } }] }));
    is_malformed(Wire::Gemini, ScriptedAnswer::frames(gemini)).await;
}

#[tokio::test]
async fn a_long_reply_within_the_limit_is_accepted() {
    let text = "word ".repeat(20_000);
    for kind in Wire::ALL {
        for streaming in BOTH {
            let body = lango_testkit::model::say(&text);
            let server = WireServer::scripted([body]).await;
            let (_, end) = call(&model(kind, server.url(), streaming), request()).await;
            assert_eq!(end.unwrap().text.len(), text.len());
        }
    }
}

#[tokio::test]
async fn deeply_nested_json_is_malformed_and_does_not_crash() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for kind in Wire::ALL {
        is_malformed(kind, ScriptedAnswer::frames([&deep])).await;
        is_malformed(
            kind,
            ScriptedAnswer::bytes("application/json", deep.clone()),
        )
        .await;
    }
}
