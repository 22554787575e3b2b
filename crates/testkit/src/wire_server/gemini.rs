//! Encodes replies for Gemini's API.

use super::openai::pieces;
use lango_core::ModelReply;
use serde_json::{Map, Value, json};

pub(super) fn body(reply: &ModelReply) -> Value {
    let mut chunk = chunk(&parts(reply, |text| vec![text.to_owned()]));
    end(&mut chunk, reply);
    chunk
}

pub(super) fn stream(reply: &ModelReply) -> Vec<String> {
    let parts = parts(reply, |text| pieces(text).collect());
    let mut chunks: Vec<Value> = parts.into_iter().map(|part| chunk(&[part])).collect();
    if chunks.is_empty() {
        chunks.push(chunk(&[]));
    }
    if let Some(last) = chunks.last_mut() {
        end(last, reply);
    }
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n"));
    frames.collect()
}

/// Returns a chunk with a piece of text.
pub(super) fn text_chunk(text: &str) -> Value {
    chunk(&[json!({ "text": text })])
}

fn chunk(parts: &[Value]) -> Value {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }],
        "modelVersion": "m",
        "responseId": "r",
    })
}

fn end(chunk: &mut Value, reply: &ModelReply) {
    chunk["candidates"][0]["finishReason"] = json!("STOP");
    let usage = reply.usage;
    chunk["usageMetadata"] = json!({
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "totalTokenCount": usage.total(),
    });
}

/// Returns the parts of a reply: its opaque data if that is for this API, else its text and calls. Gemini sends
/// arguments as an object; arguments that do not parse as one are sent as a string.
fn parts(reply: &ModelReply, split: impl Fn(&str) -> Vec<String>) -> Vec<Value> {
    let opaque = reply
        .opaque
        .as_ref()
        .filter(|opaque| &*opaque.kind == "gemini");
    if let Some(parts) = opaque.and_then(|opaque| opaque.data.as_array()) {
        return parts.clone();
    }
    let text = split(&reply.text)
        .into_iter()
        .filter(|text| !text.is_empty());
    let text = text.map(|text| json!({ "text": text }));
    let call = |call: &lango_core::Call| {
        let arguments = serde_json::from_str::<Map<String, Value>>(&call.arguments);
        let arguments = arguments.map_or_else(|_| json!(&*call.arguments), Value::Object);
        let mut function = json!({ "name": &*call.name, "args": arguments });
        if !call.id.as_str().is_empty() {
            function["id"] = json!(call.id.as_str());
        }
        json!({ "functionCall": function })
    };
    text.chain(reply.calls.iter().map(call)).collect()
}
