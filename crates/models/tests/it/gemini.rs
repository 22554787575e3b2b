//! Replies of the Gemini API.

use crate::support::Wire::Gemini;
use crate::support::{calls_of, fault, read, reply, shown};
use lango_core::{ModelFault, Usage};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::{Value, json};

fn chunk(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }] })
}

fn last(parts: Value, reason: &str) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": reason }] })
}

#[tokio::test]
async fn thoughts_are_not_shown_as_text() {
    let frames = [
        chunk(json!([{ "text": "Hmm.", "thought": true }, { "text": "For" }])),
        last(
            json!([{ "text": "ty-two", "thoughtSignature": "sig" }]),
            "STOP",
        ),
    ];
    let (events, end) = read(Gemini, ScriptedAnswer::frames(frames)).await;
    assert_eq!(
        (shown(&events).as_str(), end.unwrap().text.as_str()),
        ("Forty-two", "Forty-two")
    );
}

#[tokio::test]
async fn all_parts_are_stored_unchanged_if_one_of_them_is_signed() {
    let first = json!({ "functionCall": { "name": "read", "args": { "path": "1" } }, "thoughtSignature": "sig" });
    let second = json!({ "functionCall": { "name": "read", "args": { "path": "2" } } });
    let thought = json!({ "text": "Hmm.", "thought": true });
    let empty = json!({ "text": "", "thoughtSignature": "end" });
    let frames = [
        chunk(json!([thought])),
        chunk(json!([first])),
        chunk(json!([second])),
        last(json!([empty]), "STOP"),
    ];
    let reply = reply(Gemini, ScriptedAnswer::frames(frames)).await;
    assert_eq!(
        calls_of(&reply),
        [("read", r#"{"path":"1"}"#), ("read", r#"{"path":"2"}"#)]
    );
    assert_eq!(
        *reply.opaque.unwrap().data,
        json!([thought, first, second, empty])
    );
}

#[tokio::test]
async fn a_stream_sent_as_a_json_list_is_read() {
    let list = json!([
        chunk(json!([{ "text": "For" }])),
        last(json!([{ "text": "ty" }]), "STOP")
    ]);
    assert_eq!(
        reply(Gemini, ScriptedAnswer::json(&list)).await.text,
        "Forty"
    );
    let error =
        json!([{ "error": { "code": 503, "message": "overloaded", "status": "UNAVAILABLE" } }]);
    let fault = fault(Gemini, ScriptedAnswer::json(&error)).await;
    assert!(matches!(fault, ModelFault::Overloaded { .. }), "{fault:?}");
}

#[tokio::test]
async fn thinking_counts_as_output_and_absurd_counts_do_not_overflow() {
    let counts = |output: u64| {
        let mut frame = last(json!([{ "text": "x" }]), "STOP");
        frame["usageMetadata"] = json!({ "promptTokenCount": 100, "cachedContentTokenCount": 60,
                                         "candidatesTokenCount": output, "thoughtsTokenCount": 5 });
        ScriptedAnswer::frames([frame])
    };
    let expected = Usage {
        input_tokens: 100,
        cached_tokens: 60,
        output_tokens: 12,
        reasoning_tokens: 5,
        ..Usage::default()
    };
    assert_eq!(reply(Gemini, counts(7)).await.usage, expected);
    assert_eq!(
        reply(Gemini, counts(u64::MAX)).await.usage.output_tokens,
        u64::MAX
    );
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    let frames = [last(json!([{ "functionCall": { "name": "now" } }]), "STOP")];
    assert_eq!(
        calls_of(&reply(Gemini, ScriptedAnswer::frames(frames)).await),
        [("now", "{}")]
    );
}

#[tokio::test]
async fn calls_are_read_whatever_the_finish_reason_is() {
    for reason in [
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "MALFORMED_FUNCTION_CALL",
        "BRAND_NEW",
    ] {
        let frames = [last(
            json!([{ "functionCall": { "name": "now", "args": {} } }]),
            reason,
        )];
        assert_eq!(
            calls_of(&reply(Gemini, ScriptedAnswer::frames(frames)).await),
            [("now", "{}")],
            "{reason}"
        );
    }
}

#[tokio::test]
async fn a_stream_without_a_finish_reason_is_incomplete() {
    let frames = [chunk(json!([{ "text": "Hi" }]))];
    assert_eq!(
        fault(Gemini, ScriptedAnswer::frames(frames)).await,
        ModelFault::Incomplete
    );
}

#[tokio::test]
async fn a_blocked_request_is_refused_and_a_malformed_call_is_transient() {
    for reason in [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
    ] {
        let fault = fault(Gemini, ScriptedAnswer::frames([last(json!([]), reason)])).await;
        assert!(
            matches!(fault, ModelFault::Refused { .. }),
            "{reason}: {fault:?}"
        );
    }
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    for answer in [
        ScriptedAnswer::frames([&blocked]),
        ScriptedAnswer::json(&blocked),
    ] {
        let fault = fault(Gemini, answer).await;
        assert!(matches!(fault, ModelFault::Refused { .. }), "{fault:?}");
    }
    let fault = fault(
        Gemini,
        ScriptedAnswer::frames([last(json!([]), "MALFORMED_FUNCTION_CALL")]),
    )
    .await;
    assert!(fault.is_transient(), "{fault:?}");
    let partly = last(json!([{ "text": "The first half" }]), "SAFETY");
    assert_eq!(
        reply(Gemini, ScriptedAnswer::frames([partly])).await.text,
        "The first half"
    );
}

#[tokio::test]
async fn a_null_error_and_unknown_parts_are_ignored() {
    let mut frame = last(
        json!([{ "executableCode": { "code": "1" } }, { "text": "Hi" }]),
        "STOP",
    );
    frame["error"] = Value::Null;
    assert_eq!(
        reply(
            Gemini,
            ScriptedAnswer::frames([json!({ "news": 1 }), frame])
        )
        .await
        .text,
        "Hi"
    );
}

#[tokio::test]
async fn errors_in_the_stream_are_classified() {
    let table = [
        (429, "slow down", "RateLimited"),
        (500, "oops", "Overloaded"),
        (503, "overloaded", "Overloaded"),
        (
            400,
            "The input token count (2) exceeds the maximum number of tokens allowed (1).",
            "ContextTooLong",
        ),
        (
            400,
            "API key not valid. Please pass a valid API key.",
            "BadKey",
        ),
        (403, "not you", "BadKey"),
        (404, "models/m is not found", "UnknownModel"),
        (400, "Invalid value", "Refused"),
    ];
    for (code, message, expected) in table {
        let error = json!({ "error": { "code": code, "message": message, "status": "X" } });
        let fault = fault(
            Gemini,
            ScriptedAnswer::frames([chunk(json!([{ "text": "Hi" }])), error]),
        )
        .await;
        assert!(
            format!("{fault:?}").starts_with(expected),
            "{code} {message}: {fault:?}"
        );
    }
}
