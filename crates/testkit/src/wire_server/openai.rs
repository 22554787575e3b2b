//! Encodes replies for OpenAI's chat completions API.

use lango_core::{Call, ModelReply};
use serde_json::{Value, json};

pub(super) fn body(reply: &ModelReply, number: usize) -> Value {
    let mut message = json!({ "role": "assistant", "content": content(reply), "refusal": null });
    if !reply.calls.is_empty() {
        let call = |(at, call): (usize, &Call)| {
            json!({ "id": id(call, number, at), "type": "function",
                    "function": { "name": &*call.name, "arguments": &*call.arguments } })
        };
        message["tool_calls"] = reply.calls.iter().enumerate().map(call).collect();
    }
    add_opaque(&mut message, reply);
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason(reply) }],
        "usage": usage(reply),
    })
}

pub(super) fn stream(reply: &ModelReply, number: usize) -> Vec<String> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    add_opaque(&mut deltas[0], reply);
    deltas.extend(pieces(&reply.text).map(|text| json!({ "content": text })));
    for (at, call) in reply.calls.iter().enumerate() {
        deltas.push(
            json!({ "tool_calls": [{ "index": at, "id": id(call, number, at), "type": "function",
                            "function": { "name": &*call.name, "arguments": "" } }] }),
        );
        deltas.extend(pieces(&call.arguments).map(
            |text| json!({ "tool_calls": [{ "index": at, "function": { "arguments": text } }] }),
        ));
    }
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| chunk(delta, None)).collect();
    chunks.push(chunk(&json!({}), Some(finish_reason(reply))));
    // Usage comes last, in a chunk without choices.
    let mut last = chunk(&json!({}), None);
    last["choices"] = json!([]);
    last["usage"] = usage(reply);
    chunks.push(last);
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    frames.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// Returns a chunk with a piece of text.
pub(super) fn text_chunk(text: &str) -> Value {
    chunk(&json!({ "content": text }), None)
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }],
    })
}

fn content(reply: &ModelReply) -> Value {
    if reply.text.is_empty() && !reply.calls.is_empty() {
        return Value::Null;
    }
    Value::from(reply.text.as_str())
}

fn finish_reason(reply: &ModelReply) -> &'static str {
    if reply.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

fn usage(reply: &ModelReply) -> Value {
    json!({
        "prompt_tokens": reply.usage.input_tokens,
        "completion_tokens": reply.usage.output_tokens,
        "total_tokens": reply.usage.total(),
        "prompt_tokens_details": { "cached_tokens": reply.usage.cached_tokens },
        "completion_tokens_details": { "reasoning_tokens": reply.usage.reasoning_tokens },
    })
}

fn add_opaque(message: &mut Value, reply: &ModelReply) {
    let opaque = reply
        .opaque
        .as_ref()
        .filter(|opaque| &*opaque.kind == "openai");
    for (field, value) in opaque
        .and_then(|opaque| opaque.data.as_object())
        .into_iter()
        .flatten()
    {
        message[field] = value.clone();
    }
}

fn id(call: &Call, number: usize, at: usize) -> String {
    match call.id.as_str() {
        "" => format!("call_{number}_{at}"),
        id => id.to_owned(),
    }
}

/// Splits a text into pieces of 7 characters.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters
        .chunks(7)
        .map(|piece| piece.iter().collect())
        .collect();
    pieces.into_iter()
}
