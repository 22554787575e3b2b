//! What is sent.

use super::KIND;
use crate::names::Names;
use lango_core::{Call, Function, Message, ModelRequest, Opaque};
use serde_json::{Map, Value, json};

pub(super) fn body(request: &ModelRequest) -> Value {
    let names = Names::of(&request.functions);
    let mut body = json!({
        "systemInstruction": { "parts": [{ "text": &*request.instruction }] },
        "contents": contents(request, &names),
    });
    if !request.functions.is_empty() {
        let declarations: Vec<Value> = request
            .functions
            .iter()
            .map(|function| declaration(function, &names))
            .collect();
        body["tools"] = json!([{ "functionDeclarations": declarations }]);
    }
    body
}

fn contents(request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut contents = Vec::new();
    for message in &request.messages {
        match message {
            Message::User { text } | Message::Notice { text } => {
                push(&mut contents, "user", vec![json!({ "text": &**text })]);
            }
            Message::Assistant {
                text,
                calls,
                opaque,
            } => {
                push(
                    &mut contents,
                    "model",
                    model_parts(text, calls, opaque.as_ref(), names),
                );
            }
            Message::Result {
                name, text, failed, ..
            } => {
                let outcome = if *failed { "error" } else { "result" };
                let response =
                    json!({ "name": names.sent(name), "response": { outcome: &**text } });
                push(
                    &mut contents,
                    "user",
                    vec![json!({ "functionResponse": response })],
                );
            }
        }
    }
    contents
}

/// Roles take turns: the results of a step go into one content.
fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if let Some(last) = contents.last_mut()
        && last["role"] == role
        && let Some(before) = last["parts"].as_array_mut()
    {
        before.extend(parts);
        return;
    }
    contents.push(json!({ "role": role, "parts": parts }));
}

fn model_parts(text: &str, calls: &[Call], opaque: Option<&Opaque>, names: &Names) -> Vec<Value> {
    // Signatures hold only for the parts exactly as they came.
    let kept = opaque
        .filter(|opaque| *opaque.kind == *KIND)
        .and_then(|opaque| opaque.data.as_array());
    let calls_in = |parts: &[Value]| {
        parts
            .iter()
            .filter(|part| part.get("functionCall").is_some())
            .count()
    };
    if let Some(parts) = kept.filter(|parts| calls_in(parts) == calls.len()) {
        return parts.clone();
    }
    let text = (!text.trim().is_empty()).then(|| json!({ "text": text }));
    let calls = calls.iter().map(|call| {
        let args: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        json!({ "functionCall": { "name": names.sent(&call.name), "args": args } })
    });
    text.into_iter().chain(calls).collect()
}

fn declaration(function: &Function, names: &Names) -> Value {
    let mut declaration =
        json!({ "name": names.sent(&function.name), "description": &*function.description });
    // An object without properties is no schema to this provider; a function without one takes nothing.
    let properties = function
        .parameters
        .get("properties")
        .and_then(Value::as_object);
    if properties.is_some_and(|properties| !properties.is_empty()) {
        declaration["parametersJsonSchema"] = (*function.parameters).clone();
    }
    declaration
}
