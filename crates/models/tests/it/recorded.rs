//! Replies and requests as current providers send and require them: one case for each difference found in public
//! recordings.

use crate::provider_forms::body_for_model;
use crate::support::Wire::{self, Anthropic, Gemini, OpenAi, Responses};
use crate::support::{
    assistant, body, calls_of, fault, opaque, reply, result, user, with_messages,
};
use lango_core::{Message, ModelFault, ModelReply, OpaqueData, StopReason};
use lango_testkit::wire_server::{Fault, ScriptedAnswer};
use serde_json::{Value, json};

fn chat(message: Value, finish_reason: &str) -> ScriptedAnswer {
    ScriptedAnswer::json(&json!({
        "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason }],
    }))
}

fn chat_usage(usage: Value) -> ScriptedAnswer {
    ScriptedAnswer::json(&json!({
        "choices": [{ "index": 0, "message": { "content": "x" }, "finish_reason": "stop" }],
        "usage": usage,
    }))
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn piece_of_call() -> Value {
    json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": { "name": "fs_read", "arguments": "{}" } }] })
}

/// Converts a reply to the history of the next request.
fn as_history(reply: &ModelReply) -> Vec<Message> {
    vec![
        user("hello"),
        Message::Assistant {
            text: reply.text.as_str().into(),
            calls: reply.calls.clone().into(),
            opaque: reply.opaque.clone(),
        },
        result(reply.calls[0].id.as_str(), &reply.calls[0].name, "ok"),
    ]
}

#[tokio::test]
async fn reasoning_content_is_sent_back_with_its_calls() {
    let frames = [
        delta(json!({ "reasoning_content": "Let me " })),
        delta(json!({ "reasoning_content": "look." })),
        delta(piece_of_call()),
        end("tool_calls"),
    ];
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    let body = body(OpenAi, with_messages(as_history(&reply))).await;
    assert_eq!(body["messages"][2]["reasoning_content"], "Let me look.");
}

#[tokio::test]
async fn streamed_reasoning_details_are_merged_by_index() {
    let detail = |fields: Value| delta(json!({ "reasoning_details": [fields] }));
    let frames = [
        detail(json!({ "type": "reasoning.text", "index": 0, "text": "Let ", "format": "f" })),
        detail(json!({ "type": "reasoning.text", "index": 0, "text": "me.", "signature": null })),
        detail(json!({ "type": "reasoning.text", "index": 0, "signature": "s1" })),
        detail(json!({ "type": "reasoning.encrypted", "index": 1, "data": "abc" })),
        delta(piece_of_call()),
        end("tool_calls"),
    ];
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    let body = body(OpenAi, with_messages(as_history(&reply))).await;
    let expected = json!([
        { "type": "reasoning.text", "index": 0, "text": "Let me.", "format": "f", "signature": "s1" },
        { "type": "reasoning.encrypted", "index": 1, "data": "abc" },
    ]);
    assert_eq!(body["messages"][2]["reasoning_details"], expected);
    assert!(body["messages"][2].get("reasoning_content").is_none());
}

#[tokio::test]
async fn opaque_parts_are_sent_only_to_the_model_that_produced_them() {
    let data = |kind| match kind {
        OpenAi => json!({ "reasoning_content": "secret" }),
        Anthropic => json!([
            { "type": "thinking", "thinking": "secret", "signature": "s" },
            { "type": "tool_use", "id": "c1", "name": "fs_read", "input": {} },
        ]),
        Responses => json!([
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret" },
            { "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "fs_read", "arguments": "{}" },
        ]),
        Gemini => {
            json!([{ "functionCall": { "name": "fs_read", "args": {} }, "thoughtSignature": "secret" }])
        }
    };
    for kind in Wire::ALL {
        for (owner, is_sent) in [("m", true), ("other", false)] {
            let opaque = OpaqueData {
                model: Some(format!("{}/{owner}", kind.name()).into()),
                ..opaque(kind, data(kind))
            };
            let messages = vec![
                user("hello"),
                assistant("", &[("c1", "fs_read", "{}")], Some(opaque)),
                result("c1", "fs_read", "ok"),
            ];
            let body = body(kind, with_messages(messages)).await.to_string();
            assert_eq!(body.contains("secret"), is_sent, "{kind:?} of {owner}");
        }
    }
}

#[tokio::test]
async fn a_reply_names_the_model_that_its_opaque_parts_belong_to() {
    let message = json!({ "content": "x", "reasoning_content": "hm" });
    let reply = reply(OpenAi, chat(message, "stop")).await;
    assert_eq!(reply.opaque.unwrap().model.as_deref(), Some("openai/m"));
}

#[tokio::test]
async fn mistral_gets_call_ids_of_nine_letters_and_digits() {
    let messages = vec![
        user("hello"),
        assistant(
            "",
            &[
                ("toolu_01ABC", "fs_read", "{}"),
                ("Ab3dEf6h9", "fs_read", "{}"),
            ],
            None,
        ),
        result("toolu_01ABC", "fs_read", "one"),
        result("Ab3dEf6h9", "fs_read", "two"),
    ];
    let body = body_for_model(OpenAi, "mistral-large-latest", with_messages(messages)).await;
    assert!(
        body.get("stream_options").is_some(),
        "only Mistral's own service refuses it"
    );
    let called = |at: usize| {
        body["messages"][2]["tool_calls"][at]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(called(0).len(), 9);
    assert!(called(0).bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(called(1), "Ab3dEf6h9");
    assert_eq!(body["messages"][3]["tool_call_id"], called(0).as_str());
    assert_eq!(body["messages"][4]["tool_call_id"], "Ab3dEf6h9");
}

#[tokio::test]
async fn null_arguments_are_an_empty_object() {
    for arguments in [json!(null), json!("null"), json!("")] {
        let calls =
            json!([{ "id": "c", "function": { "name": "fs_list", "arguments": arguments } }]);
        let message = json!({ "content": null, "tool_calls": calls });
        let reply = reply(OpenAi, chat(message, "tool_calls")).await;
        assert_eq!(calls_of(&reply), [("fs_list", "{}")]);
    }
}

#[tokio::test]
async fn a_reply_without_text_that_reached_the_limit_reports_it_on_every_wire() {
    let anthropic = json!({ "type": "message", "content": [], "stop_reason": "max_tokens" });
    let gemini = json!({ "candidates": [{ "finishReason": "MAX_TOKENS" }] });
    let responses = json!({
        "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" }, "output": [],
    });
    for (kind, answer) in [
        (OpenAi, chat(json!({ "content": "" }), "length")),
        (Responses, ScriptedAnswer::json(&responses)),
        (Anthropic, ScriptedAnswer::json(&anthropic)),
        (Gemini, ScriptedAnswer::json(&gemini)),
    ] {
        assert_eq!(
            reply(kind, answer).await.stop,
            StopReason::OutputLimit,
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn gemini_is_read_beyond_the_finish_reason() {
    let text = |text: &str| json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" }] });
    let usage = json!({ "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": 7 } });
    let reply = reply(
        Gemini,
        ScriptedAnswer::frames([text("one "), text("two"), usage]),
    )
    .await;
    assert_eq!(
        (reply.text.as_str(), reply.usage.output_tokens),
        ("one two", 7)
    );
    let filtered = json!({ "candidates": [{ "finishReason": "RECITATION", "finishMessage": "It is quoted." }] });
    let reply =
        crate::support::reply(Gemini, ScriptedAnswer::frames([text("It was"), filtered])).await;
    let detail = "it ended with RECITATION: It is quoted".into();
    assert_eq!(reply.stop, StopReason::Filtered { detail });
}

#[tokio::test]
async fn an_error_without_data_prefix_in_a_stream_is_reported() {
    let stream = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n\
                  {\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"overloaded\"\n  }\n}\n";
    let fault = fault(Gemini, ScriptedAnswer::bytes("text/event-stream", stream)).await;
    assert!(matches!(fault, ModelFault::Overloaded { .. }), "{fault:?}");
}

#[tokio::test]
async fn refusals_contain_the_providers_message() {
    let anthropic = json!({
        "type": "message", "content": [], "stop_reason": "refusal",
        "stop_details": { "type": "refusal", "explanation": "This may help to build a weapon." },
    });
    let gemini = json!({ "promptFeedback": { "blockReason": "MODEL_ARMOR", "blockReasonMessage": "A template matched." } });
    let azure = json!({ "choices": [{
        "index": 0, "finish_reason": "content_filter",
        "content_filter_results": { "violence": { "filtered": true }, "hate": { "filtered": false } },
    }] });
    for (kind, answer, says) in [
        (
            Anthropic,
            ScriptedAnswer::json(&anthropic),
            "build a weapon",
        ),
        (Gemini, ScriptedAnswer::json(&gemini), "A template matched"),
        (
            OpenAi,
            ScriptedAnswer::json(&azure),
            "content filter stopped it (violence)",
        ),
        (
            OpenAi,
            chat(json!({ "content": null, "refusal": "I cannot." }), "stop"),
            "I cannot.",
        ),
    ] {
        match fault(kind, answer).await {
            ModelFault::Refused { detail } => assert!(detail.contains(says), "{detail}"),
            other => panic!("{other:?} is no refusal"),
        }
    }
}

#[tokio::test]
async fn error_details_of_gateways_reach_the_user() {
    let upstream = json!({ "error": {
        "code": 400, "message": "Provider returned error",
        "metadata": { "provider_name": "Anthropic", "raw": "{\"error\":{\"message\":\"temperature is too high\"}}" },
    } });
    let azure = json!({ "error": {
        "code": "content_filter", "message": "The prompt was filtered.",
        "innererror": { "content_filter_result": { "jailbreak": { "filtered": true } } },
    } });
    for (error, says) in [
        (
            upstream,
            "Provider returned error: Anthropic: temperature is too high",
        ),
        (azure, "The prompt was filtered (filtered: jailbreak)"),
    ] {
        let fault = fault(OpenAi, Fault::status(400, "").body(&error)).await;
        assert!(fault.to_string().contains(says), "{fault}");
    }
}

#[tokio::test]
async fn an_invalid_model_id_is_an_unknown_model() {
    for error in [
        json!({ "error": { "code": 400, "message": "foo/bar is not a valid model ID" } }),
        json!({ "code": "invalid-argument", "error": "Model not found: foo" }),
        json!({ "object": "error", "type": "invalid_model", "message": "Invalid model: foo", "code": "1500" }),
    ] {
        let fault = fault(OpenAi, Fault::status(400, "").body(&error)).await;
        assert!(
            matches!(fault, ModelFault::UnknownModel { .. }),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn a_too_long_context_reports_the_limit_if_the_provider_does() {
    for (message, expected) in [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 10,240 tokens.",
            Some(8192),
        ),
        (
            "prompt too long; exceeded max context length by 12 tokens",
            None,
        ),
    ] {
        let body = json!({ "error": { "message": message } }).to_string();
        match fault(OpenAi, Fault::status(400, "").body(body)).await {
            ModelFault::ContextTooLong { limit_tokens, .. } => assert_eq!(limit_tokens, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn token_usage_is_read_under_every_known_name() {
    let beside = json!({
        "prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 239,
        "completion_tokens_details": { "reasoning_tokens": 228 },
    });
    let usage = reply(OpenAi, chat_usage(beside)).await.usage;
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (229, 228));
    for name in [
        "num_cached_tokens",
        "cached_tokens",
        "prompt_cache_hit_tokens",
    ] {
        let usage = reply(OpenAi, chat_usage(json!({ "prompt_tokens": 40, name: 32 })))
            .await
            .usage;
        assert_eq!(usage.cached_tokens, 32, "{name}");
    }
    let groq = [
        delta(json!({ "content": "x" })),
        json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }], "x_groq": { "usage": { "prompt_tokens": 9 } } }),
    ];
    assert_eq!(
        reply(OpenAi, ScriptedAnswer::frames(groq))
            .await
            .usage
            .input_tokens,
        9
    );
    let anthropic = json!({
        "type": "message", "content": [{ "type": "text", "text": "x" }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 5, "output_tokens": 20, "output_tokens_details": { "thinking_tokens": 7 } },
    });
    assert_eq!(
        reply(Anthropic, ScriptedAnswer::json(&anthropic))
            .await
            .usage
            .reasoning_tokens,
        7
    );
}

#[tokio::test]
async fn only_the_first_of_several_choices_is_read() {
    let other = json!({ "choices": [{ "index": 1, "delta": { "content": "other" }, "finish_reason": "length" }] });
    let frames = [delta(json!({ "content": "mine" })), other, end("stop")];
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    assert_eq!(
        (reply.text.as_str(), reply.stop),
        ("mine", StopReason::Finished)
    );
}
