//! What is sent: the stable part first, so that caches can keep it.

use super::KIND;
use crate::names::Names;
use crate::wire::object_schema;
use lango_core::{Call, CallId, Function, Message, ModelRequest, Opaque};
use serde_json::{Map, Value, json};

pub(super) fn body(model: &str, request: &ModelRequest, streaming: bool) -> Value {
    let names = Names::of(request);
    let mut body =
        json!({ "model": model, "messages": messages(request, &names), "stream": streaming });
    if streaming {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if !request.functions.is_empty() {
        body["tools"] = request
            .functions
            .iter()
            .map(|function| tool(function, &names))
            .collect();
    }
    body
}

fn messages(request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut messages = vec![json!({ "role": "system", "content": &*request.instruction })];
    for message in &request.messages {
        match message {
            Message::User { text } | Message::Notice { text } => push_user(&mut messages, text),
            Message::Assistant {
                text,
                calls,
                opaque,
            } => messages.push(assistant(text, calls, opaque.as_ref(), names)),
            Message::Result { call, text, .. } => {
                messages.push(
                    json!({ "role": "tool", "tool_call_id": short_id(call), "content": &**text }),
                );
            }
        }
    }
    messages
}

/// Neighbouring messages of the user's side become one: many chat templates refuse two in a row.
fn push_user(messages: &mut Vec<Value>, text: &str) {
    if let Some(last) = messages.last_mut()
        && last["role"] == "user"
        && let Some(before) = last["content"].as_str()
    {
        last["content"] = Value::from(format!("{before}\n\n{text}"));
        return;
    }
    messages.push(json!({ "role": "user", "content": text }));
}

fn assistant(text: &str, calls: &[Call], opaque: Option<&Opaque>, names: &Names) -> Value {
    let mut message = json!({ "role": "assistant" });
    message["content"] = if text.is_empty() && !calls.is_empty() {
        Value::Null
    } else {
        Value::from(text)
    };
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(|call| tool_call(call, names)).collect();
    }
    // What the provider gave us to bring back goes back under the fields it came in.
    let fields = opaque
        .filter(|opaque| *opaque.kind == *KIND)
        .and_then(|opaque| opaque.data.as_object());
    for (field, value) in fields.into_iter().flatten() {
        message[field] = value.clone();
    }
    message
}

fn tool_call(call: &Call, names: &Names) -> Value {
    // Servers parse what they once sent; arguments that were broken would make them refuse the whole request.
    let is_whole = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
    let arguments = if is_whole { &*call.arguments } else { "{}" };
    json!({
        "id": short_id(&call.id),
        "type": "function",
        "function": { "name": names.sent(&call.name), "arguments": arguments },
    })
}

/// Ids may come from another provider's reply; this one takes 40 characters.
fn short_id(id: &CallId) -> String {
    const HALF: usize = 20;
    let characters: Vec<char> = id.as_str().chars().collect();
    if characters.len() <= 2 * HALF {
        return id.as_str().to_owned();
    }
    let end = characters.len() - HALF;
    characters[..HALF]
        .iter()
        .chain(&characters[end..])
        .collect()
}

fn tool(function: &Function, names: &Names) -> Value {
    let mut parameters = object_schema(&function.parameters);
    if parameters.get("properties").is_none() {
        parameters["properties"] = json!({});
    }
    json!({
        "type": "function",
        "function": {
            "name": names.sent(&function.name),
            "description": &*function.description,
            "parameters": parameters,
        },
    })
}
