//! Encodes replies for Anthropic's Messages API.

use super::openai::pieces;
use lango_core::{Call, ModelReply};
use serde_json::{Map, Value, json};

pub(super) fn body(reply: &ModelReply, number: usize) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": blocks(reply, number),
        "stop_reason": stop_reason(reply), "stop_sequence": null,
        "usage": usage(reply),
    })
}

pub(super) fn stream(reply: &ModelReply, number: usize) -> Vec<String> {
    let mut start = usage(reply);
    start["output_tokens"] = json!(1);
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": start,
    });
    let mut events = vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "ping" }),
    ];
    for (index, block) in blocks(reply, number).into_iter().enumerate() {
        let raw = match block["type"].as_str() {
            Some("tool_use") => reply
                .calls
                .iter()
                .find(|call| call.id == *block["id"].as_str().unwrap_or_default()),
            _ => None,
        };
        let (started, deltas) = in_pieces(block, raw);
        events.push(
            json!({ "type": "content_block_start", "index": index, "content_block": started }),
        );
        let delta =
            |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason(reply), "stop_sequence": null },
        "usage": { "output_tokens": reply.usage.output_tokens },
    }));
    events.push(json!({ "type": "message_stop" }));
    let frame = |event: &Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap_or_default()
        )
    };
    events.iter().map(frame).collect()
}

/// Returns an event with a piece of text for the first block.
pub(super) fn text_chunk(text: &str) -> Value {
    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } })
}

/// Splits a block into its start and the deltas that complete it.
fn in_pieces(mut block: Value, raw: Option<&Call>) -> (Value, Vec<Value>) {
    let mut take = |field: &str, empty: Value| {
        let before = block.get(field).cloned().unwrap_or_default();
        block[field] = empty;
        before
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = take("type", Value::Null);
    let deltas = match kind.as_str() {
        Some("text") => pieces(&text(&take("text", json!(""))))
            .map(|text| json!({ "type": "text_delta", "text": text }))
            .collect(),
        Some("thinking") => {
            let thinking = text(&take("thinking", json!("")));
            let signature = text(&take("signature", json!("")));
            let signature = json!({ "type": "signature_delta", "signature": signature });
            pieces(&thinking)
                .map(|text| json!({ "type": "thinking_delta", "thinking": text }))
                .chain([signature])
                .collect()
        }
        Some("tool_use") => {
            let input = take("input", json!({})).to_string();
            let input = raw.map_or(input, |call| call.arguments.to_string());
            pieces(&input)
                .map(|text| json!({ "type": "input_json_delta", "partial_json": text }))
                .collect()
        }
        _ => Vec::new(),
    };
    block["type"] = kind;
    (block, deltas)
}

/// Returns the blocks of a reply: its opaque data if that is for this API, else a text and the calls.
fn blocks(reply: &ModelReply, number: usize) -> Vec<Value> {
    let opaque = reply
        .opaque
        .as_ref()
        .filter(|opaque| &*opaque.kind == "anthropic");
    if let Some(blocks) = opaque.and_then(|opaque| opaque.data.as_array()) {
        return blocks.clone();
    }
    let text = (!reply.text.is_empty()).then(|| json!({ "type": "text", "text": reply.text }));
    let call = |(at, call): (usize, &Call)| {
        let id = match call.id.as_str() {
            "" => format!("toolu_{number}_{at}"),
            id => id.to_owned(),
        };
        // Arguments that are not an object are sent as a string. Anthropic never does so, but compatible providers
        // might.
        let input = serde_json::from_str::<Map<String, Value>>(&call.arguments);
        let input = input.map_or_else(|_| json!(&*call.arguments), Value::Object);
        json!({ "type": "tool_use", "id": id, "name": &*call.name, "input": input })
    };
    let calls = reply.calls.iter().enumerate().map(call);
    text.into_iter().chain(calls).collect()
}

fn stop_reason(reply: &ModelReply) -> &'static str {
    if reply.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    }
}

fn usage(reply: &ModelReply) -> Value {
    let usage = reply.usage;
    json!({
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    })
}
