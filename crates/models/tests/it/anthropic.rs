//! Replies of Anthropic's Messages API.

use crate::support::Wire::Anthropic;
use crate::support::{calls_of, fault, read, reply, shown};
use lango_core::{ModelFault, Usage};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::{Value, json};

fn start(usage: Value) -> Value {
    json!({ "type": "message_start", "message": { "id": "msg_1", "content": [], "usage": usage } })
}

fn begin(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn text(index: u64, text: &str) -> Value {
    delta(index, json!({ "type": "text_delta", "text": text }))
}

fn end(reason: &str, usage: Value) -> Value {
    json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage })
}

fn tool_use(index: u64, id: &str, pieces: &[&str]) -> Vec<Value> {
    let begin = begin(
        index,
        json!({ "type": "tool_use", "id": id, "name": "read", "input": {} }),
    );
    let piece = |piece: &&str| {
        delta(
            index,
            json!({ "type": "input_json_delta", "partial_json": piece }),
        )
    };
    [begin]
        .into_iter()
        .chain(pieces.iter().map(piece))
        .collect()
}

#[tokio::test]
async fn usage_is_cumulative_and_counts_the_cache() {
    let first = json!({
        "input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 1,
    });
    let frames = [
        start(first),
        begin(0, json!({ "type": "text", "text": "" })),
        text(0, "Hi"),
        end("end_turn", json!({ "output_tokens": 12 })),
        end("end_turn", json!({ "output_tokens": 15 })),
        json!({ "type": "message_stop" }),
    ];
    let expected = Usage {
        input_tokens: 240,
        cached_tokens: 200,
        cache_write_tokens: 30,
        output_tokens: 15,
        reasoning_tokens: 0,
    };
    assert_eq!(
        reply(Anthropic, ScriptedAnswer::frames(frames)).await.usage,
        expected
    );
}

#[tokio::test]
async fn absurd_token_counts_do_not_overflow() {
    let max = u64::MAX;
    let usage = json!({ "input_tokens": max, "cache_read_input_tokens": max, "cache_creation_input_tokens": max,
                        "output_tokens": max });
    let frames = [start(usage.clone()), end("end_turn", usage)];
    assert_eq!(
        reply(Anthropic, ScriptedAnswer::frames(frames))
            .await
            .usage
            .input_tokens,
        max
    );
}

#[tokio::test]
async fn thinking_is_hidden_and_text_between_calls_is_shown() {
    let mut frames = vec![
        start(json!({})),
        begin(
            0,
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
        ),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Hmm." })),
        delta(0, json!({ "type": "signature_delta", "signature": "sig" })),
        json!({ "type": "ping" }),
        begin(1, json!({ "type": "text", "text": "" })),
        text(1, "I look."),
    ];
    frames.extend(tool_use(2, "toolu_1", &["", "{\"pa", "th\":\"é\"}"]));
    frames.push(end("tool_use", json!({})));
    let (events, end) = read(Anthropic, ScriptedAnswer::frames(frames)).await;
    let reply = end.unwrap();
    assert_eq!(
        (shown(&events).as_str(), reply.text.as_str()),
        ("I look.", "I look.")
    );
    assert_eq!(calls_of(&reply), [("read", r#"{"path":"é"}"#)]);
    assert_eq!(reply.calls[0].id, "toolu_1");
    let expected_blocks = json!([
        { "type": "thinking", "thinking": "Hmm.", "signature": "sig" },
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": "toolu_1", "name": "read", "input": { "path": "é" } },
    ]);
    assert_eq!(*reply.opaque.unwrap().data, expected_blocks);
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    let mut frames = vec![start(json!({}))];
    frames.extend(tool_use(0, "toolu_1", &[""]));
    frames.push(end("tool_use", json!({})));
    assert_eq!(
        calls_of(&reply(Anthropic, ScriptedAnswer::frames(frames)).await),
        [("read", "{}")]
    );
}

#[tokio::test]
async fn calls_are_read_whatever_the_stop_reason_is() {
    for reason in ["end_turn", "max_tokens", "refusal", "brand_new"] {
        let mut frames = vec![start(json!({}))];
        frames.extend(tool_use(0, "toolu_1", &["{\"path\":"]));
        frames.push(end(reason, json!({})));
        let reply = reply(Anthropic, ScriptedAnswer::frames(frames)).await;
        assert_eq!(
            calls_of(&reply),
            [("read", "{\"path\":")],
            "{reason}: broken, and not mended"
        );
    }
}

#[tokio::test]
async fn a_stream_without_a_stop_reason_is_incomplete() {
    let frames = [
        start(json!({})),
        begin(0, json!({ "type": "text", "text": "" })),
        text(0, "Hi"),
    ];
    assert_eq!(
        fault(Anthropic, ScriptedAnswer::frames(frames)).await,
        ModelFault::Incomplete
    );
}

#[tokio::test]
async fn a_refusal_without_text_is_a_refusal() {
    let streamed = ScriptedAnswer::frames([start(json!({})), end("refusal", json!({}))]);
    let whole = ScriptedAnswer::json(
        &json!({ "type": "message", "content": [], "stop_reason": "refusal" }),
    );
    for answer in [streamed, whole] {
        let fault = fault(Anthropic, answer).await;
        assert!(matches!(fault, ModelFault::Refused { .. }), "{fault:?}");
    }
}

#[tokio::test]
async fn unknown_events_blocks_and_deltas_are_ignored() {
    let frames = [
        start(json!({})),
        json!({ "type": "brand_new", "index": 77 }),
        begin(0, json!({ "type": "server_news", "x": 1 })),
        delta(0, json!({ "type": "news_delta", "x": 2 })),
        begin(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "citations_delta", "citation": {} })),
        text(1, "Hi"),
        end("end_turn", json!({})),
    ];
    assert_eq!(
        reply(Anthropic, ScriptedAnswer::frames(frames)).await.text,
        "Hi"
    );
}

#[tokio::test]
async fn a_huge_block_index_costs_nothing() {
    let frames = [
        start(json!({})),
        begin(1_000_000_000_000, json!({ "type": "text", "text": "" })),
        text(1_000_000_000_000, "Hi"),
        end("end_turn", json!({})),
    ];
    assert_eq!(
        reply(Anthropic, ScriptedAnswer::frames(frames)).await.text,
        "Hi"
    );
}

#[tokio::test]
async fn a_delta_for_an_unknown_block_is_malformed() {
    let fault = fault(
        Anthropic,
        ScriptedAnswer::frames([start(json!({})), text(5, "Hi")]),
    )
    .await;
    assert!(matches!(fault, ModelFault::Malformed { .. }), "{fault:?}");
}

#[tokio::test]
async fn errors_in_the_stream_are_classified() {
    let table = [
        ("overloaded_error", "Overloaded", "Overloaded"),
        ("api_error", "oops", "Overloaded"),
        ("brand_new_error", "oops", "Overloaded"),
        ("rate_limit_error", "slow down", "RateLimited"),
        ("authentication_error", "who are you", "BadKey"),
        ("permission_error", "not you", "BadKey"),
        ("billing_error", "pay", "NoCredit"),
        ("not_found_error", "model: m", "UnknownModel"),
        (
            "invalid_request_error",
            "prompt is too long: 2 tokens > 1 maximum",
            "ContextTooLong",
        ),
        ("request_too_large", "too large", "ContextTooLong"),
        ("invalid_request_error", "messages: no", "Refused"),
    ];
    for (kind, message, expected) in table {
        let error = json!({ "type": "error", "error": { "type": kind, "message": message } });
        for answer in [
            ScriptedAnswer::frames([start(json!({})), error.clone()]),
            ScriptedAnswer::json(&error),
        ] {
            let fault = fault(Anthropic, answer).await;
            assert!(
                format!("{fault:?}").starts_with(expected),
                "{kind}: {fault:?}"
            );
        }
    }
}
