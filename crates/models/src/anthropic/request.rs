//! Builds a request for the Messages API. Cache marks tell the provider which prefixes to cache: the tools with the
//! instruction, and the conversation so far.

use super::KIND;
use super::settings::{add_settings, output_tokens};
use crate::attachments::{AttachmentPart, attachment_parts};
use crate::names::Names;
use crate::wire::{RequestBody, Target, object_schema, quoted};
use lango_core::{Attachment, Call, CallId, Function, Message, ModelRequest};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

pub(super) fn body(target: &Target<'_>, request: &ModelRequest) -> RequestBody {
    let names = Names::of(request);
    let mut messages = messages(target, request, &names);
    mark_last(&mut messages);
    let mut fields = json!({
        "model": target.model,
        "max_tokens": output_tokens(target, request),
        "system": [{ "type": "text", "text": &*request.instruction, "cache_control": { "type": "ephemeral" } }],
        "messages": messages,
        "stream": target.streaming,
    });
    add_settings(&mut fields, target, request);
    let mut body = RequestBody::from(fields);
    if !request.functions.is_empty() {
        let functions = request.functions.iter();
        body.declare(functions, |text, function| add_tool(text, function, &names));
        return body;
    }
    let called = called_before(request, &names);
    if !called.is_empty() {
        let tool = |name: &&str| json!({ "name": name, "input_schema": { "type": "object" } });
        body.fields["tools"] = called.iter().map(tool).collect();
        body.fields["tool_choice"] = json!({ "type": "none" });
    }
    body
}

fn messages(target: &Target<'_>, request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut messages = Vec::new();
    for message in &request.messages {
        match message {
            Message::User { text, attachments } => {
                let mut blocks = attached(target, request, attachments);
                blocks.push(json!({ "type": "text", "text": &**text }));
                push(&mut messages, "user", blocks);
            }
            Message::Notice { text } => {
                let block = json!({ "type": "text", "text": &**text });
                push(&mut messages, "user", vec![block]);
            }
            Message::Assistant {
                text,
                calls,
                opaque,
            } => {
                push(
                    &mut messages,
                    "assistant",
                    assistant(text, calls, target.own(opaque.as_ref(), KIND), names),
                );
            }
            Message::Result {
                call,
                text,
                failed,
                attachments,
                ..
            } => {
                let mut result = json!({
                    "type": "tool_result",
                    "tool_use_id": plain_id(call),
                    "content": &**text,
                    "is_error": failed,
                });
                if !attachments.is_empty() {
                    let mut blocks = vec![json!({ "type": "text", "text": &**text })];
                    blocks.extend(attached(target, request, attachments));
                    result["content"] = Value::from(blocks);
                }
                push(&mut messages, "user", vec![result]);
            }
        }
    }
    messages
}

fn attached(target: &Target<'_>, request: &ModelRequest, attachments: &[Attachment]) -> Vec<Value> {
    let parts = attachment_parts(attachments, &request.contents, target);
    let block = |part| match part {
        AttachmentPart::Text(text) => json!({ "type": "text", "text": text }),
        AttachmentPart::Image { media_type, data } => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": media_type, "data": data },
        }),
    };
    parts.into_iter().map(block).collect()
}

/// Adds blocks. Roles must alternate, so all results of a step, and a text after them, go into one message. Adds no
/// empty message.
fn push(messages: &mut Vec<Value>, role: &str, blocks: Vec<Value>) {
    if blocks.is_empty() {
        return;
    }
    if let Some(last) = messages.last_mut()
        && last["role"] == role
        && let Some(content) = last["content"].as_array_mut()
    {
        content.extend(blocks);
        return;
    }
    messages.push(json!({ "role": role, "content": blocks }));
}

fn assistant(text: &str, calls: &[Call], own: Option<&Value>, names: &Names) -> Vec<Value> {
    if let Some(blocks) = own.and_then(|own| as_received(own, calls)) {
        return blocks;
    }
    let text = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    let uses = calls.iter().map(|call| {
        let input: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        json!({ "type": "tool_use", "id": plain_id(&call.id), "name": names.sent(&call.name), "input": input })
    });
    text.into_iter().chain(uses).collect()
}

/// Returns the blocks exactly as the provider sent them, except for the calls' ids, which come from the log.
fn as_received(own: &Value, calls: &[Call]) -> Option<Vec<Value>> {
    let mut blocks = own.as_array()?.clone();
    let mut ids = calls.iter().map(|call| plain_id(&call.id));
    for block in blocks
        .iter_mut()
        .filter(|block| block["type"] == "tool_use")
    {
        block["id"] = Value::from(ids.next()?);
    }
    ids.next().is_none().then_some(blocks)
}

/// Replaces the characters of an id that the API refuses. It accepts letters, digits, `_` and `-`; an id may come from
/// another provider's reply.
fn plain_id(id: &CallId) -> String {
    id.as_str()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

fn add_tool(text: &mut String, function: &Function, names: &Names) {
    text.extend([r#"{"name":"#, &quoted(names.sent(&function.name))]);
    text.extend([r#","description":"#, &quoted(&function.description)]);
    let schema = object_schema(&function.parameters);
    text.extend([r#","input_schema":"#, &schema, "}"]);
}

/// Returns the functions called in the conversation. A conversation with calls must declare tools, even if the model
/// may not call any now.
fn called_before<'a>(request: &'a ModelRequest, names: &'a Names) -> BTreeSet<&'a str> {
    let calls = request.messages.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls.iter()),
        _ => None,
    });
    calls.flatten().map(|call| names.sent(&call.name)).collect()
}

fn mark_last(messages: &mut [Value]) {
    let last = messages
        .last_mut()
        .and_then(|message| message["content"].as_array_mut()?.last_mut());
    if let Some(block) = last
        && matches!(block["type"].as_str(), Some("text" | "tool_result"))
    {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}
