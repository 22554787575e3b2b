//! Replies of OpenAI's chat completions API and of servers that only partly follow it.

use crate::support::Wire::OpenAi;
use crate::support::{calls_of, fault, read, reply, shown};
use lango_core::{ModelEvent, ModelFault, ModelReply, Usage};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::{Value, json};

pub(crate) fn chunk(delta: Value) -> String {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }).to_string()
}

pub(crate) fn end(reason: &str) -> String {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }).to_string()
}

pub(crate) fn done() -> String {
    "[DONE]".to_owned()
}

#[tokio::test]
async fn usage_is_read_from_a_last_chunk_without_choices() {
    let usage = json!({
        "choices": [],
        "usage": {
            "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
            "prompt_tokens_details": { "cached_tokens": 64 },
            "completion_tokens_details": { "reasoning_tokens": 8 },
        },
    });
    let frames = [
        chunk(json!({ "content": "Hi" })),
        end("stop"),
        usage.to_string(),
        done(),
    ];
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    let expected = Usage {
        input_tokens: 100,
        cached_tokens: 64,
        output_tokens: 20,
        reasoning_tokens: 8,
        ..Usage::default()
    };
    assert_eq!((reply.text.as_str(), reply.usage), ("Hi", expected));
}

#[tokio::test]
async fn a_null_usage_does_not_overwrite_an_earlier_one() {
    let frames = [
        json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3 } }),
        json!({ "choices": [{ "delta": { "content": "x" }, "finish_reason": "stop" }], "usage": null }),
    ];
    assert_eq!(
        reply(OpenAi, ScriptedAnswer::frames(frames))
            .await
            .usage
            .total(),
        10
    );
}

#[tokio::test]
async fn thinking_is_not_shown_as_text() {
    for field in ["reasoning", "reasoning_content"] {
        let frames = [
            chunk(json!({ field: "Let me think", "content": "" })),
            chunk(json!({ "content": "42" })),
            end("stop"),
            done(),
        ];
        let (events, end) = read(OpenAi, ScriptedAnswer::frames(frames)).await;
        assert_eq!(
            (shown(&events).as_str(), end.unwrap().text.as_str()),
            ("42", "42")
        );
    }
}

#[tokio::test]
async fn a_list_of_parts_is_read_for_its_text() {
    let parts = json!([{ "type": "thinking", "thinking": [] }, { "type": "text", "text": "Hi" }]);
    let frames = [chunk(json!({ "content": parts })), end("stop")];
    let (events, end) = read(OpenAi, ScriptedAnswer::frames(frames)).await;
    assert_eq!(
        (shown(&events).as_str(), end.unwrap().text.as_str()),
        ("Hi", "Hi")
    );
}

#[tokio::test]
async fn a_finish_reason_without_done_ends_the_reply() {
    let frames = [chunk(json!({ "content": "Hi" })), end("stop")];
    assert_eq!(
        reply(OpenAi, ScriptedAnswer::frames(frames)).await.text,
        "Hi"
    );
}

#[tokio::test]
async fn done_without_a_finish_reason_ends_the_reply() {
    let frames = [chunk(json!({ "content": "Hi" })), done()];
    assert_eq!(
        reply(OpenAi, ScriptedAnswer::frames(frames)).await.text,
        "Hi"
    );
}

#[tokio::test]
async fn a_stream_without_done_and_finish_reason_is_incomplete() {
    let frames = [chunk(json!({ "content": "Hi" }))];
    let (events, end) = read(OpenAi, ScriptedAnswer::frames(frames)).await;
    assert_eq!(events, [ModelEvent::Text("Hi".to_owned())]);
    assert_eq!(end, Err(ModelFault::Incomplete));
}

#[tokio::test]
async fn a_last_frame_without_an_empty_line_after_it_is_read() {
    let body = format!(
        "data: {}\n\ndata: {}",
        chunk(json!({ "content": "Hi" })),
        end("stop")
    );
    let reply = reply(OpenAi, ScriptedAnswer::bytes("text/event-stream", body)).await;
    assert_eq!(reply.text, "Hi");
}

#[tokio::test]
async fn an_error_at_the_end_of_a_stream_is_reported() {
    let error = json!({ "error": { "message": "no more", "code": "insufficient_quota" } });
    let body = format!(
        "data: {}\n\ndata: {error}",
        chunk(json!({ "content": "Hi" }))
    );
    let fault = fault(OpenAi, ScriptedAnswer::bytes("text/event-stream", body)).await;
    assert!(matches!(fault, ModelFault::NoCredit { .. }), "{fault:?}");
}

#[tokio::test]
async fn a_stream_with_another_content_type_is_read() {
    let body = format!(
        "data: {}\n\ndata: {}\n\n",
        chunk(json!({ "content": "Hi" })),
        end("stop")
    );
    let reply = reply(OpenAi, ScriptedAnswer::bytes("text/plain", body)).await;
    assert_eq!(reply.text, "Hi");
}

#[tokio::test]
async fn a_reply_that_is_not_streamed_is_accepted_in_place_of_a_stream() {
    let body = json!({ "choices": [{ "message": { "content": "Hi" }, "finish_reason": "stop" }] });
    assert_eq!(reply(OpenAi, ScriptedAnswer::json(&body)).await.text, "Hi");
}

#[tokio::test]
async fn a_refusal_without_text_is_a_refusal() {
    let spoken = [
        chunk(json!({ "refusal": "I can" })),
        chunk(json!({ "refusal": "not." })),
        end("stop"),
    ];
    let filtered = [
        chunk(json!({ "content": "" })),
        end("content_filter"),
        done(),
    ];
    for frames in [spoken, filtered] {
        let fault = fault(OpenAi, ScriptedAnswer::frames(frames)).await;
        assert!(matches!(fault, ModelFault::Refused { .. }), "{fault:?}");
    }
    let partly = [
        chunk(json!({ "content": "The first half" })),
        end("content_filter"),
    ];
    assert_eq!(
        reply(OpenAi, ScriptedAnswer::frames(partly)).await.text,
        "The first half"
    );
}

#[tokio::test]
async fn comments_unknown_fields_and_frames_of_other_kinds_are_ignored() {
    let body = format!(
        ": OPENROUTER PROCESSING\n\nevent: x\nid: 1\nretry: 5\ndata: {}\n\ndata: {}\n\ndata: 5\n\ndata: {}\n\n",
        json!({ "object": "something.new", "payload": [1, 2] }),
        chunk(json!({ "content": "Hi", "audio": {} })),
        end("stop"),
    );
    let reply = reply(OpenAi, ScriptedAnswer::bytes("text/event-stream", body)).await;
    assert_eq!(
        reply,
        ModelReply {
            text: "Hi".to_owned(),
            ..ModelReply::default()
        }
    );
}

#[tokio::test]
async fn signed_reasoning_in_pieces_keeps_its_order() {
    let frames = [
        chunk(json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "a" }] })),
        chunk(json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "xyz" }] })),
        chunk(
            json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "f", "arguments": "{}" } }] }),
        ),
        end("tool_calls"),
    ];
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    let expected = json!({ "reasoning_details": [
        { "type": "reasoning.text", "text": "a" }, { "type": "reasoning.encrypted", "data": "xyz" },
    ] });
    assert_eq!(*reply.opaque.as_ref().unwrap().data, expected);
    assert_eq!(calls_of(&reply), [("f", "{}")]);
}

#[tokio::test]
async fn characters_that_are_split_between_chunks_are_reassembled() {
    use lango_testkit::wire_server::Fault;
    use std::time::Duration;
    let text = "Grüße, 世界 🦀";
    let frames = [chunk(json!({ "content": text })), end("stop"), done()];
    let (events, end) = read(
        OpenAi,
        ScriptedAnswer::frames(frames).with(Fault::Drip(Duration::ZERO)),
    )
    .await;
    assert_eq!(
        (shown(&events).as_str(), end.unwrap().text.as_str()),
        (text, text)
    );
}

#[tokio::test]
async fn a_reply_is_read_with_any_content_type_and_any_trailing_data() {
    let done = json!({ "choices": [{ "delta": { "content": "hi" }, "finish_reason": "stop" }] });
    let stream = format!("\u{feff}data: {done}\n\ndata: [DONE]\n\ndata: rubbish\n\n");
    let whole = json!({ "choices": [{ "message": { "content": "hi" }, "finish_reason": "stop" }] })
        .to_string();
    for (content_type, body) in [
        ("text/event-stream", stream.clone()),
        ("application/json", stream.clone()),
        ("text/plain", stream),
        ("text/event-stream", whole.clone()),
        ("text/plain", whole),
    ] {
        let reply = reply(OpenAi, ScriptedAnswer::bytes(content_type, body)).await;
        assert_eq!(reply.text, "hi", "{content_type}");
    }
}
