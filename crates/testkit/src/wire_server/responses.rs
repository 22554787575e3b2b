//! Encodes replies for OpenAI's Responses API.

use super::openai::pieces;
use lango_core::{Call, ModelReply, StopReason};
use serde_json::{Value, json};

pub(super) fn body(reply: &ModelReply, number: usize) -> Value {
    response(reply, &items(reply, number), number)
}

pub(super) fn stream(reply: &ModelReply, number: usize) -> Vec<String> {
    let items = items(reply, number);
    let mut started = response(reply, &[], number);
    started["status"] = json!("in_progress");
    started["usage"] = Value::Null;
    let mut events = vec![
        json!({ "type": "response.created", "response": started }),
        json!({ "type": "response.in_progress", "response": started }),
    ];
    for (index, item) in items.iter().enumerate() {
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": announced_item(item) }));
        events.extend(deltas(item, index));
        events.push(
            json!({ "type": "response.output_item.done", "output_index": index, "item": item }),
        );
    }
    let end = response(reply, &items, number);
    let kind = match end["status"].as_str() {
        Some("incomplete") => "response.incomplete",
        _ => "response.completed",
    };
    events.push(json!({ "type": kind, "response": end }));
    let numbered = events.into_iter().enumerate().map(|(sequence, mut event)| {
        event["sequence_number"] = json!(sequence);
        event
    });
    numbered.map(|event| frame(&event)).collect()
}

/// Encodes an event of a stream, named by its type.
pub(super) fn frame(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

/// Returns an event with a piece of text for the first item.
pub(super) fn text_chunk(text: &str) -> Value {
    json!({
        "type": "response.output_text.delta", "item_id": "msg_0", "output_index": 0,
        "content_index": 0, "delta": text,
    })
}

fn response(reply: &ModelReply, items: &[Value], number: usize) -> Value {
    let (status, reason) = match &reply.stop {
        StopReason::Finished => ("completed", None),
        StopReason::OutputLimit => ("incomplete", Some("max_output_tokens")),
        StopReason::Filtered { .. } => ("incomplete", Some("content_filter")),
        StopReason::Cancelled => ("cancelled", None),
    };
    json!({
        "id": format!("resp_{number}"), "object": "response", "created_at": 1, "model": "m",
        "status": status, "error": null, "output": items, "store": false,
        "incomplete_details": reason.map(|reason| json!({ "reason": reason })),
        "usage": {
            "input_tokens": reply.usage.input_tokens,
            "input_tokens_details": { "cached_tokens": reply.usage.cached_tokens },
            "output_tokens": reply.usage.output_tokens,
            "output_tokens_details": { "reasoning_tokens": reply.usage.reasoning_tokens },
            "total_tokens": reply.usage.total(),
        },
    })
}

/// Returns the items of a reply: its opaque data if that is for this API, else a message and the calls.
fn items(reply: &ModelReply, number: usize) -> Vec<Value> {
    let own = reply
        .opaque
        .as_ref()
        .filter(|opaque| &*opaque.kind == "responses");
    if let Some(items) = own.and_then(|own| own.data.as_array()) {
        return items.clone();
    }
    let message = (!reply.text.is_empty()).then(|| {
        let part = json!({ "type": "output_text", "text": reply.text, "annotations": [], "logprobs": [] });
        json!({
            "id": format!("msg_{number}"), "type": "message", "status": "completed", "role": "assistant",
            "content": [part],
        })
    });
    let call = |(at, call): (usize, &Call)| {
        let call_id = match call.id.as_str() {
            "" => format!("call_{number}_{at}"),
            id => id.to_owned(),
        };
        json!({
            "id": format!("fc_{number}_{at}"), "type": "function_call", "status": "completed",
            "call_id": call_id, "name": &*call.name, "arguments": &*call.arguments,
        })
    };
    let calls = reply.calls.iter().enumerate().map(call);
    message.into_iter().chain(calls).collect()
}

/// Returns an item as the stream announces it: without the fields that follow in pieces.
fn announced_item(item: &Value) -> Value {
    let mut started = item.clone();
    for (field, empty) in [("content", json!([])), ("arguments", json!(""))] {
        if started.get(field).is_some() {
            started[field] = empty;
        }
    }
    started["status"] = json!("in_progress");
    // The announcement has only a placeholder for the encrypted reasoning.
    if item["encrypted_content"].is_string() {
        started["encrypted_content"] = json!("YmVndW4=");
    }
    started
}

fn deltas(item: &Value, index: usize) -> Vec<Value> {
    let event = |kind: &str, field: &str, text: &str| {
        let mut event = json!({
            "type": format!("response.{kind}"), "item_id": item["id"], "output_index": index,
        });
        event[field] = json!(text);
        event
    };
    if item["type"] == "function_call" {
        let arguments = item["arguments"].as_str().unwrap_or_default();
        let deltas =
            pieces(arguments).map(|text| event("function_call_arguments.delta", "delta", &text));
        let done = event("function_call_arguments.done", "arguments", arguments);
        return deltas.chain([done]).collect();
    }
    let parts = item["content"].as_array().into_iter().flatten();
    let parts = parts.filter(|part| part["type"] == "output_text");
    let of_part = |(at, part): (usize, &Value)| {
        let text = part["text"].as_str().unwrap_or_default();
        let deltas = pieces(text).map(|text| event("output_text.delta", "delta", &text));
        let mut events: Vec<Value> = deltas.collect();
        events.push(event("output_text.done", "text", text));
        for event in &mut events {
            event["content_index"] = json!(at);
        }
        events
    };
    parts.enumerate().flat_map(of_part).collect()
}
