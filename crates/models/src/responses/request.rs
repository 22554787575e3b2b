//! Builds a request for the Responses API: the instruction, then the conversation as items.

use super::{KIND, replay};
use crate::attachments::{AttachmentPart, attachment_parts};
use crate::names::Names;
use crate::schema::is_strict;
use crate::wire::{RequestBody, Target, add_function_members, valid_arguments};
use lango_core::{Attachment, Call, CallId, Function, Message, ModelRequest};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

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
        body["reasoning"] = json!({ "effort": effort.name() });
    }
    // The API has always supported schemas, so models that are not in the table accept them too.
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

/// Adds parts with the role `user`. Merges them into a preceding user message: some chat templates refuse two in a row.
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

/// Returns the items of a reply that another model wrote, or that consists only of text and calls. They have no item
/// ids, because those are valid only for the model that assigned them.
fn assistant(text: &str, calls: &[Call], names: &Names) -> Vec<Value> {
    let message = || json!({ "type": "message", "role": "assistant", "content": text });
    let message = (!text.trim().is_empty()).then(message);
    let calls = calls.iter().map(|call| {
        json!({
            "type": "function_call",
            "call_id": call_id(&call.id),
            "name": names.sent(&call.name),
            "arguments": valid_arguments(&call.arguments),
        })
    });
    message.into_iter().chain(calls).collect()
}

/// Returns the id of a call within the API's limit of 64 characters. An id from another provider's reply may be longer;
/// it is replaced by its beginning and its digest, which are the same in every request.
pub(super) fn call_id(id: &CallId) -> String {
    const MAX_CHARACTERS: usize = 64;
    const DIGEST_BYTES: usize = 16;
    let id = id.as_str();
    if id.chars().count() <= MAX_CHARACTERS {
        return id.to_owned();
    }
    let prefix = id.chars().take(MAX_CHARACTERS - 1 - 2 * DIGEST_BYTES);
    let short: String = prefix.chain(['_']).collect();
    short + &base16ct::lower::encode_string(&Sha256::digest(id)[..DIGEST_BYTES])
}

/// Adds a function declaration. It sets `strict` to false, because otherwise the API makes every argument required.
/// lango validates the arguments when the call runs.
fn add_tool(text: &mut String, function: &Function, names: &Names) {
    text.push_str(r#"{"type":"function","#);
    add_function_members(text, function, names);
    text.push_str(r#","strict":false}"#);
}
