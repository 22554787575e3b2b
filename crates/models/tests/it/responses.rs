//! Replies of OpenAI's Responses API and of servers that speak it.

use crate::support::Wire::Responses;
use crate::support::{calls_of, fault, read, read_for, reply, request, shown};
use lango_core::{ModelFault, ModelReply, ModelRequest, StopReason};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::{Value, json};
use std::sync::Arc;

fn message(id: &str, text: &str) -> Value {
    let part = json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
    json!({ "id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part] })
}

fn function_call(id: &str, arguments: &str) -> Value {
    json!({
        "id": format!("fc_{id}"), "type": "function_call", "status": "completed",
        "call_id": format!("call_{id}"), "name": "read", "arguments": arguments,
    })
}

fn reasoning(id: &str, encrypted: Value) -> Value {
    json!({ "id": id, "type": "reasoning", "summary": [], "encrypted_content": encrypted })
}

fn response(status: &str, output: Value) -> Value {
    json!({ "id": "resp_1", "object": "response", "status": status, "error": null, "output": output })
}

fn ended(status: &str, output: Value) -> Value {
    json!({ "type": format!("response.{status}"), "response": response(status, output) })
}

fn done(index: u64, item: &Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

fn text_delta(index: u64, id: &str, text: &str) -> Value {
    json!({ "type": "response.output_text.delta", "output_index": index, "item_id": id, "delta": text })
}

fn data(reply: &ModelReply) -> Value {
    let opaque = reply.opaque.as_ref().unwrap();
    assert_eq!(&*opaque.kind, "responses");
    (*opaque.data).clone()
}

#[tokio::test]
async fn a_stream_without_pieces_is_read_from_its_last_event() {
    let output = json!([
        message("msg_1", "All at once."),
        function_call("1", "{\"path\":\"a\"}")
    ]);
    let frames = [
        json!({ "type": "response.created", "response": response("in_progress", json!([])) }),
        ended("completed", output),
    ];
    let (events, end) = read(Responses, ScriptedAnswer::frames(frames)).await;
    let reply = end.unwrap();
    assert_eq!(shown(&events), "All at once.");
    assert_eq!(reply.text, "All at once.");
    assert_eq!(calls_of(&reply), [("read", "{\"path\":\"a\"}")]);
    assert_eq!(reply.calls[0].id.as_str(), "call_1");
}

#[tokio::test]
async fn a_stream_that_ends_with_an_empty_output_is_read_from_its_pieces() {
    let call = json!({ "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read", "arguments": "" });
    let arguments = |text: &str| json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": text });
    let frames = [
        text_delta(0, "msg_1", "In "),
        text_delta(0, "msg_1", "pieces."),
        json!({ "type": "response.output_item.added", "output_index": 1, "item": call }),
        arguments("{\"path\""),
        arguments(":\"a\"}"),
        ended("completed", json!([])),
    ];
    let (events, end) = read(Responses, ScriptedAnswer::frames(frames)).await;
    let reply = end.unwrap();
    assert_eq!(
        (shown(&events), &*reply.text),
        ("In pieces.".to_owned(), "In pieces.")
    );
    assert_eq!(calls_of(&reply), [("read", "{\"path\":\"a\"}")]);
}

#[tokio::test]
async fn parallel_calls_stay_distinct_if_indexes_or_ids_are_wrong() {
    let started = |id: &str, index: u64| {
        let item = json!({ "id": id, "type": "function_call", "call_id": id, "name": "read", "arguments": "" });
        json!({ "type": "response.output_item.added", "output_index": index, "item": item })
    };
    let piece = |id: &str, index: u64, text: &str| json!({ "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": text });
    let numbered_zero = [
        started("a", 0),
        started("b", 0),
        piece("a", 0, "{\"n\":"),
        piece("b", 0, "{\"n\":"),
        piece("a", 0, "1}"),
        piece("b", 0, "2}"),
    ];
    let other_ids = [
        started("a", 0),
        started("b", 1),
        piece("x1", 0, "{\"n\":"),
        piece("x2", 1, "{\"n\":"),
        piece("x3", 0, "1}"),
        piece("x4", 1, "2}"),
    ];
    for frames in [numbered_zero, other_ids] {
        let frames = frames.into_iter().chain([ended("completed", json!([]))]);
        let reply = reply(Responses, ScriptedAnswer::frames(frames)).await;
        assert_eq!(
            calls_of(&reply),
            [("read", "{\"n\":1}"), ("read", "{\"n\":2}")]
        );
    }
}

#[tokio::test]
async fn a_complete_item_is_not_added_again_at_the_end() {
    let (text, call) = (message("msg_1", "Once."), function_call("1", "{}"));
    let mut renamed = text.clone();
    renamed["id"] = json!("msg_other");
    let frames = [
        text_delta(0, "msg_1", "Once."),
        done(0, &text),
        done(1, &call),
        ended("completed", json!([renamed, call])),
    ];
    let (events, end) = read(Responses, ScriptedAnswer::frames(frames)).await;
    let reply = end.unwrap();
    assert_eq!((shown(&events), reply.calls.len()), ("Once.".to_owned(), 1));
}

#[tokio::test]
async fn complete_reasoning_is_stored_unchanged() {
    let (thought, text) = (
        reasoning("rs_1", json!("d2hvbGU=")),
        message("msg_1", "Yes."),
    );
    let frames = [
        json!({ "type": "response.output_item.added", "output_index": 0, "item": reasoning("rs_1", json!("YmVndW4=")) }),
        done(0, &thought),
        done(1, &text),
        ended("completed", json!([reasoning("rs_1", Value::Null), text])),
    ];
    let reply = reply(Responses, ScriptedAnswer::frames(frames)).await;
    assert_eq!(data(&reply), json!([thought, text]));
}

#[tokio::test]
async fn reasoning_without_content_is_left_out_with_the_ids_of_the_other_items() {
    let output = json!([
        reasoning("rs_1", Value::Null),
        { "id": "msg_1", "type": "message", "role": "assistant", "phase": "commentary", "content": [] },
        function_call("1", "{}"),
    ]);
    let reply = reply(
        Responses,
        ScriptedAnswer::json(&response("completed", output)),
    )
    .await;
    let stored = data(&reply);
    assert_eq!(stored.as_array().unwrap().len(), 2, "{stored}");
    assert!(
        !stored.to_string().contains("msg_1") && !stored.to_string().contains("fc_1"),
        "{stored}"
    );
    assert_eq!(stored[0]["phase"], "commentary");
}

#[tokio::test]
async fn reasoning_without_a_following_item_is_not_stored() {
    let output = json!([message("msg_1", "Half"), reasoning("rs_1", json!("ZW5j"))]);
    let mut body = response("incomplete", output);
    body["incomplete_details"] = json!({ "reason": "max_output_tokens" });
    let reply = reply(Responses, ScriptedAnswer::json(&body)).await;
    assert_eq!(
        (&reply.stop, &reply.opaque),
        (&StopReason::OutputLimit, &None)
    );
}

#[tokio::test]
async fn reasoning_of_open_models_is_stored_and_plain_replies_store_nothing() {
    let open = json!({ "id": "rs_1", "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "Hm." }] });
    let output = json!([open, message("msg_1", "Yes.")]);
    let thinking = reply(
        Responses,
        ScriptedAnswer::json(&response("completed", output.clone())),
    )
    .await;
    assert_eq!((data(&thinking), &*thinking.text), (output, "Yes."));
    let output = json!([
        message("msg_1", "Yes."),
        function_call("1", "{}"),
        function_call("2", "{}")
    ]);
    let plain = reply(
        Responses,
        ScriptedAnswer::json(&response("completed", output)),
    )
    .await;
    assert_eq!((plain.opaque, plain.calls.len()), (None, 2));
}

#[tokio::test]
async fn items_of_unknown_types_are_stored() {
    let output = json!([{ "id": "ws_1", "type": "web_search_call", "status": "completed" }, message("msg_1", "Found.")]);
    let reply = reply(
        Responses,
        ScriptedAnswer::json(&response("completed", output.clone())),
    )
    .await;
    assert_eq!((data(&reply), &*reply.text), (output, "Found."));
}

#[tokio::test]
async fn messages_are_separated_and_commentary_is_left_out_of_structured_answers() {
    let phased = |id: &str, phase: &str, text: &str| {
        let mut message = message(id, text);
        message["phase"] = json!(phase);
        message
    };
    let output = json!([
        phased("msg_1", "commentary", "Let me see."),
        phased("msg_2", "final_answer", "{\"n\":1}")
    ]);
    let frames = || ScriptedAnswer::frames([ended("completed", output.clone())]);
    let (events, end) = read(Responses, frames()).await;
    assert_eq!(end.unwrap().text, "Let me see.\n\n{\"n\":1}");
    assert_eq!(shown(&events), "Let me see.\n\n{\"n\":1}");
    let by_schema = ModelRequest {
        answer_schema: Some(Arc::new(json!({ "type": "object" }))),
        ..request()
    };
    let (events, end) = read_for(Responses, frames(), by_schema).await;
    assert_eq!(
        (shown(&events), end.unwrap().text),
        ("{\"n\":1}".to_owned(), "{\"n\":1}".to_owned())
    );
}

#[tokio::test]
async fn usage_counts_the_cache_and_the_reasoning() {
    let mut body = response("completed", json!([message("msg_1", "Yes.")]));
    body["usage"] = json!({
        "input_tokens": 100, "input_tokens_details": { "cached_tokens": 64, "cache_write_tokens": 0 },
        "output_tokens": 30, "output_tokens_details": { "reasoning_tokens": 20 }, "total_tokens": 130,
    });
    for answer in [
        ScriptedAnswer::json(&body),
        ScriptedAnswer::frames([json!({ "type": "response.completed", "response": body })]),
    ] {
        let usage = reply(Responses, answer).await.usage;
        assert_eq!((usage.input_tokens, usage.cached_tokens), (100, 64));
        assert_eq!((usage.output_tokens, usage.reasoning_tokens), (30, 20));
    }
}

#[tokio::test]
async fn an_incomplete_response_reports_its_stop_reason() {
    let filtered = |detail: &str| StopReason::Filtered {
        detail: detail.into(),
    };
    for (reason, expected) in [
        (json!("max_output_tokens"), StopReason::OutputLimit),
        (Value::Null, StopReason::OutputLimit),
        (
            json!("content_filter"),
            filtered("the provider's content filter stopped it"),
        ),
        (
            json!("steered"),
            filtered("the provider stopped it (steered)"),
        ),
    ] {
        let mut event = ended("incomplete", json!([message("msg_1", "Half of")]));
        event["response"]["incomplete_details"] = json!({ "reason": reason });
        let reply = reply(Responses, ScriptedAnswer::frames([&event])).await;
        assert_eq!((&*reply.text, reply.stop), ("Half of", expected));
    }
}

#[tokio::test]
async fn a_refusal_without_text_contains_its_message() {
    let mut refused = message("msg_1", "");
    refused["content"] = json!([{ "type": "refusal", "refusal": "I cannot help with that." }]);
    let delta = json!({ "type": "response.refusal.delta", "output_index": 0, "item_id": "msg_1", "delta": "I cannot help with that." });
    for answer in [
        ScriptedAnswer::json(&response("completed", json!([refused]))),
        ScriptedAnswer::frames([delta, ended("completed", json!([]))]),
    ] {
        let fault = fault(Responses, answer).await;
        let detail = "I cannot help with that.".to_owned();
        assert_eq!(fault, ModelFault::Refused { detail });
    }
}

#[tokio::test]
async fn a_failed_response_is_classified_by_its_error() {
    let failed = |code: &str| {
        let mut event = ended("failed", json!([]));
        event["response"]["error"] = json!({ "code": code, "message": "No." });
        fault(Responses, ScriptedAnswer::frames([event]))
    };
    assert!(matches!(
        failed("server_error").await,
        ModelFault::Overloaded { .. }
    ));
    assert!(matches!(
        failed("rate_limit_exceeded").await,
        ModelFault::RateLimited { .. }
    ));
    assert!(matches!(
        failed("invalid_prompt").await,
        ModelFault::Refused { .. }
    ));
    assert!(matches!(
        failed("image_too_large").await,
        ModelFault::Refused { .. }
    ));
    assert!(matches!(
        failed("context_length_exceeded").await,
        ModelFault::ContextTooLong { .. }
    ));
    let nested = json!({ "type": "error", "error": { "type": "invalid_request_error", "code": "context_length_exceeded", "message": "Too long." } });
    let flat =
        json!({ "type": "error", "code": "server_error", "message": "Sorry.", "param": null });
    assert!(matches!(
        fault(Responses, ScriptedAnswer::frames([nested])).await,
        ModelFault::ContextTooLong { .. }
    ));
    let ModelFault::Overloaded { detail, .. } =
        fault(Responses, ScriptedAnswer::frames([flat])).await
    else {
        panic!("a server error passes");
    };
    assert_eq!(detail, "Sorry.");
}

#[tokio::test]
async fn a_stream_is_complete_only_with_done_or_a_final_response() {
    let text = || text_delta(0, "msg_1", "Half");
    let cut = fault(Responses, ScriptedAnswer::frames([text()])).await;
    assert_eq!(cut, ModelFault::Incomplete);
    let frames = [text().to_string(), "[DONE]".to_owned()];
    assert_eq!(
        reply(Responses, ScriptedAnswer::frames(frames)).await.text,
        "Half"
    );
}
