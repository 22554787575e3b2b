//! What is sent: the instruction, then the conversation as items.

use super::{KIND, replay};
use crate::attachments::{AttachmentPart, attachment_parts};
use crate::names::Names;
use crate::schema::is_strict;
use crate::wire::{RequestBody, Target, add_function_members, whole_arguments};
use lango_core::{Attachment, Call, CallId, Function, Message, ModelRequest};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;

pub(super) fn body(target: &Target<'_>, request: &ModelRequest) -> RequestBody {
    let names = Names::of(request);
    let mut fields = json!({
        "model": target.model,
        "input": input(target, request, &names),
        "store": false,
        "stream": target.streaming,
    });
    if !request.instruction.is_empty() {
        fields["instructions"] = Value::from(&*request.instruction);
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
    let settings = &request.settings;
    if let Some(tokens) = target.output_limit(request) {
        body["max_output_tokens"] = Value::from(tokens);
    }
    if let Some(temperature) = settings.temperature.filter(|_| target.takes_temperature) {
        body["temperature"] = Value::from(temperature);
    }
    if let Some(effort) = settings.reasoning_effort.filter(|_| target.takes_effort) {
        body["reasoning"] = json!({ "effort": effort.word() });
    }
    // The API has had schemas from its first day, so an unknown model takes them too.
    let schema = request.answer_schema.as_deref();
    if let Some(schema) = schema.filter(|schema| schema["type"] == "object") {
        body["text"] = json!({ "format": {
            "type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema),
        } });
    }
}

fn input(target: &Target<'_>, request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut items = Vec::new();
    for message in &request.messages {
        match message {
            Message::User { text, attachments } => {
                let mut parts = attached(target, request, attachments);
                parts.push(input_text(text));
                push_user(&mut items, parts);
            }
            Message::Notice { text } => push_user(&mut items, vec![input_text(text)]),
            Message::Assistant {
                text,
                calls,
                opaque,
            } => {
                let own = target.own(opaque.as_ref(), KIND);
                let as_received = own.and_then(|own| replay::as_received(own, calls, names));
                items.extend(as_received.unwrap_or_else(|| assistant(text, calls, names)));
            }
            Message::Result {
                call,
                text,
                attachments,
                ..
            } => {
                let mut output = Value::from(&**text);
                if !attachments.is_empty() {
                    let mut parts = vec![input_text(text)];
                    parts.extend(attached(target, request, attachments));
                    output = Value::from(parts);
                }
                items.push(json!({
                    "type": "function_call_output", "call_id": call_id(call), "output": output,
                }));
            }
        }
    }
    items
}

/// Neighbouring messages of the user's side become one: chat templates of some servers refuse two in a row.
fn push_user(items: &mut Vec<Value>, parts: Vec<Value>) {
    if let Some(last) = items.last_mut()
        && last["role"] == "user"
        && let Some(content) = last["content"].as_array_mut()
    {
        content.extend(parts);
        return;
    }
    items.push(json!({ "type": "message", "role": "user", "content": parts }));
}

fn input_text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn attached(target: &Target<'_>, request: &ModelRequest, attachments: &[Attachment]) -> Vec<Value> {
    let parts = attachment_parts(attachments, &request.contents, target);
    let part = |part| match part {
        AttachmentPart::Text(text) => input_text(&text),
        AttachmentPart::Image { media_type, data } => {
            let url = AttachmentPart::data_url(media_type, &data);
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        }
    };
    parts.into_iter().map(part).collect()
}

/// A reply of another model, or one that needs nothing but its text and calls. It has no item ids: those are only for
/// the model that gave them.
fn assistant(text: &str, calls: &[Call], names: &Names) -> Vec<Value> {
    let message = || json!({ "type": "message", "role": "assistant", "content": text });
    let message = (!text.trim().is_empty()).then(message);
    let calls = calls.iter().map(|call| {
        json!({
            "type": "function_call",
            "call_id": call_id(&call.id),
            "name": names.sent(&call.name),
            "arguments": whole_arguments(&call.arguments),
        })
    });
    message.into_iter().chain(calls).collect()
}

/// The id of a call, which may come from another provider's reply. The API takes 64 characters; a longer id becomes its
/// beginning with a digest of the whole, the same in every request.
pub(super) fn call_id(id: &CallId) -> String {
    const MOST: usize = 64;
    const DIGEST_BYTES: usize = 16;
    let id = id.as_str();
    if id.chars().count() <= MOST {
        return id.to_owned();
    }
    let beginning = id.chars().take(MOST - 1 - 2 * DIGEST_BYTES);
    let mut short: String = beginning.chain(['_']).collect();
    for byte in Sha256::digest(id.as_bytes()).iter().take(DIGEST_BYTES) {
        let _ = write!(short, "{byte:02x}");
    }
    short
}

/// A function in the API's flat form. Without `strict` the API changes schemas to fit its strict mode, in which every
/// argument is required; arguments are checked where the call runs.
fn add_tool(text: &mut String, function: &Function, names: &Names) {
    text.push_str(r#"{"type":"function","#);
    add_function_members(text, function, names);
    text.push_str(r#","strict":false}"#);
}
