//! What is sent: the stable part first, so that caches can keep it.

use super::KIND;
use crate::attachments::{AttachmentPart, attachment_parts};
use crate::names::Names;
use crate::wire::{Target, object_schema};
use lango_core::{Attachment, Call, CallId, Function, Message, ModelRequest};
use serde_json::{Map, Value, json};

pub(super) fn body(target: &Target<'_>, request: &ModelRequest) -> Value {
    let names = Names::of(request);
    let mut body = json!({ "model": target.model, "messages": messages(target, request, &names), "stream": target.streaming });
    if target.streaming {
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

fn messages(target: &Target<'_>, request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut messages = vec![json!({ "role": "system", "content": &*request.instruction })];
    // The results of a step stay together, so their images follow the last of them.
    let mut of_results = Vec::new();
    for message in &request.messages {
        if !matches!(message, Message::Result { .. }) {
            push_parts(&mut messages, std::mem::take(&mut of_results));
        }
        match message {
            Message::User { text, attachments } => {
                push_parts(&mut messages, attached(target, request, attachments));
                push_text(&mut messages, text);
            }
            Message::Notice { text } => push_text(&mut messages, text),
            Message::Assistant {
                text,
                calls,
                opaque,
            } => {
                let own = target.own(opaque.as_ref(), KIND);
                messages.push(assistant(text, calls, own, names));
            }
            Message::Result {
                call,
                text,
                attachments,
                ..
            } => {
                messages.push(
                    json!({ "role": "tool", "tool_call_id": short_id(call), "content": &**text }),
                );
                of_results.extend(attached(target, request, attachments));
            }
        }
    }
    push_parts(&mut messages, of_results);
    messages
}

/// Neighbouring messages of the user's side become one: many chat templates refuse two in a row.
fn push_text(messages: &mut Vec<Value>, text: &str) {
    if let Some(last) = messages.last_mut()
        && last["role"] == "user"
    {
        match &mut last["content"] {
            Value::String(before) => {
                before.push_str("\n\n");
                before.push_str(text);
            }
            Value::Array(parts) => parts.push(json!({ "type": "text", "text": text })),
            _ => {}
        }
        return;
    }
    messages.push(json!({ "role": "user", "content": text }));
}

/// Adds parts to the user's side. Servers without images take only a string as content, so text alone stays one.
fn push_parts(messages: &mut Vec<Value>, parts: Vec<Value>) {
    for part in parts {
        if let Some(text) = part["text"].as_str() {
            push_text(messages, text);
            continue;
        }
        match messages.last_mut() {
            Some(last) if last["role"] == "user" => {
                if let Some(text) = last["content"].as_str() {
                    last["content"] = json!([{ "type": "text", "text": text }]);
                }
                if let Some(content) = last["content"].as_array_mut() {
                    content.push(part);
                }
            }
            _ => messages.push(json!({ "role": "user", "content": [part] })),
        }
    }
}

fn attached(target: &Target<'_>, request: &ModelRequest, attachments: &[Attachment]) -> Vec<Value> {
    let parts = attachment_parts(attachments, &request.contents, target);
    let part = |part| match part {
        AttachmentPart::Text(text) => json!({ "type": "text", "text": text }),
        AttachmentPart::Image { media_type, data } => {
            let url = AttachmentPart::data_url(media_type, &data);
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
    };
    parts.into_iter().map(part).collect()
}

fn assistant(text: &str, calls: &[Call], own: Option<&Value>, names: &Names) -> Value {
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
    let fields = own.and_then(Value::as_object);
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
