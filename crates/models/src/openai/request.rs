//! Builds a request for the chat completions API. The stable part comes first, so that providers can cache it.

use super::call_id::call_id;
use super::{KIND, is_mistral};
use crate::attachments::{AttachmentPart, attachment_parts};
use crate::names::Names;
use crate::schema::is_strict;
use crate::wire::{RequestBody, Target, add_function_members, valid_arguments};
use lango_core::{Attachment, Call, Function, Message, ModelRequest};
use serde_json::{Value, json};

pub(super) fn body(target: &Target<'_>, request: &ModelRequest) -> RequestBody {
    let names = Names::of(request);
    let mut fields = json!({ "model": target.model, "messages": messages(target, request, &names), "stream": target.streaming });
    // Mistral refuses this field and reports usage anyway.
    if target.streaming && !is_mistral(target) {
        fields["stream_options"] = json!({ "include_usage": true });
    }
    add_settings(&mut fields, target, request);
    let mut body = RequestBody::from(fields);
    if !request.functions.is_empty() {
        let functions = request.functions.iter();
        body.declare(functions, |text, function| add_tool(text, function, &names));
    }
    body
}

fn add_settings(body: &mut Value, target: &Target<'_>, request: &ModelRequest) {
    let is_openai = is_openai(target.host);
    if let Some(tokens) = target.output_limit(request) {
        // OpenAI's reasoning models refuse the old name; most other servers know only that one.
        let name = if is_openai {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[name] = Value::from(tokens);
    }
    if let Some(temperature) = request
        .settings
        .temperature
        .filter(|_| target.takes_temperature)
    {
        body["temperature"] = Value::from(temperature);
    }
    if let Some(effort) = request
        .settings
        .reasoning_effort
        .filter(|_| target.takes_effort)
    {
        body["reasoning_effort"] = Value::from(effort.name());
    }
    // Some servers refuse a schema together with tools.
    let has_tools = !request.functions.is_empty();
    if let Some(schema) = target
        .native_schema(request)
        .filter(|_| is_openai || !has_tools)
    {
        let format = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
        body["response_format"] = json!({ "type": "json_schema", "json_schema": format });
    }
}

/// Returns whether a host belongs to OpenAI or to Azure, which behaves the same.
fn is_openai(host: &str) -> bool {
    host == "api.openai.com" || host.ends_with(".api.openai.com") || host.ends_with(".azure.com")
}

fn messages(target: &Target<'_>, request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut messages = vec![json!({ "role": "system", "content": &*request.instruction })];
    // The results of one step must stay together, so their images follow the last result.
    let mut result_parts = Vec::new();
    for message in &request.messages {
        if !matches!(message, Message::Result { .. }) {
            push_parts(&mut messages, std::mem::take(&mut result_parts));
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
                messages.push(assistant(target, text, calls, own, names));
            }
            Message::Result {
                call,
                text,
                attachments,
                ..
            } => {
                messages.push(
                    json!({ "role": "tool", "tool_call_id": call_id(target, call), "content": &**text }),
                );
                result_parts.extend(attached(target, request, attachments));
            }
        }
    }
    push_parts(&mut messages, result_parts);
    messages
}

/// Adds text with the role `user`. Merges it into a preceding user message: many chat templates refuse two in a row.
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

/// Adds parts with the role `user`. Text alone stays a string, because servers without image support accept nothing
/// else.
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

fn assistant(
    target: &Target<'_>,
    text: &str,
    calls: &[Call],
    own: Option<&Value>,
    names: &Names,
) -> Value {
    let mut message = json!({ "role": "assistant" });
    message["content"] = if text.is_empty() && !calls.is_empty() {
        Value::Null
    } else {
        Value::from(text)
    };
    if !calls.is_empty() {
        message["tool_calls"] = calls
            .iter()
            .map(|call| tool_call(target, call, names))
            .collect();
    }
    // Reasoning goes back in the fields it came in, but only with calls: servers require it only there.
    let fields = own.filter(|_| !calls.is_empty()).and_then(Value::as_object);
    for (field, value) in fields.into_iter().flatten() {
        message[field] = value.clone();
    }
    message
}

fn tool_call(target: &Target<'_>, call: &Call, names: &Names) -> Value {
    let arguments = valid_arguments(&call.arguments);
    json!({
        "id": call_id(target, &call.id),
        "type": "function",
        "function": { "name": names.sent(&call.name), "arguments": arguments },
    })
}

fn add_tool(text: &mut String, function: &Function, names: &Names) {
    text.push_str(r#"{"type":"function","function":{"#);
    add_function_members(text, function, names);
    text.push_str("}}");
}
