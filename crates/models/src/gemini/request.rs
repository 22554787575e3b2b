//! Builds a request for the Gemini API.

use super::settings::generation_config;
use super::{KIND, generation};
use crate::attachments::{AttachmentPart, attachment_parts};
use crate::names::Names;
use crate::wire::{RequestBody, Target, quoted};
use lango_core::{Attachment, Call, CallId, Function, Message, ModelRequest};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A placeholder for a missing signature. Other projects report that Gemini accepts it; lango has not tested that.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn body(target: &Target<'_>, request: &ModelRequest) -> RequestBody {
    let names = Names::of(request);
    let mut fields = json!({
        "systemInstruction": { "parts": [{ "text": &*request.instruction }] },
        "contents": contents(target, request, &names),
    });
    if let Some(config) = generation_config(target, request) {
        fields["generationConfig"] = config;
    }
    let mut body = RequestBody::from(fields);
    if !request.functions.is_empty() {
        let functions = request.functions.iter();
        let declarations: Vec<String> = functions
            .map(|function| declaration(function, &names))
            .collect();
        let declarations = declarations.join(",");
        body.declare([declarations].iter(), |text, declarations| {
            text.extend([r#"{"functionDeclarations":["#, declarations, "]}"]);
        });
    }
    body
}

fn contents(target: &Target<'_>, request: &ModelRequest, names: &Names) -> Vec<Value> {
    // From the third generation on, calls of the current turn must be signed.
    let signed = generation(target.model) >= 3;
    let mut contents = Vec::new();
    let mut ids = BTreeMap::new();
    let is_user = |message: &Message| matches!(message, Message::User { .. });
    let turn = request.messages.iter().rposition(is_user).unwrap_or(0);
    for (at, message) in request.messages.iter().enumerate() {
        match message {
            Message::User { text, attachments } => {
                let mut parts = attached(target, request, attachments);
                parts.push(json!({ "text": &**text }));
                push(&mut contents, "user", parts);
            }
            Message::Notice { text } => {
                push(&mut contents, "user", vec![json!({ "text": &**text })]);
            }
            Message::Assistant {
                text,
                calls,
                opaque,
            } => {
                let mut parts = model_parts(text, calls, target.own(opaque.as_ref(), KIND), names);
                if signed && at > turn {
                    sign(&mut parts);
                }
                ids.extend(ids_of(calls, &parts));
                push(&mut contents, "model", parts);
            }
            Message::Result {
                call,
                name,
                text,
                failed,
                attachments,
            } => {
                let id = ids.get(call).map(String::as_str);
                let response = response(names.sent(name), id, text, *failed);
                push(&mut contents, "user", vec![response]);
                push(
                    &mut contents,
                    "user",
                    attached(target, request, attachments),
                );
            }
        }
    }
    contents
}

fn attached(target: &Target<'_>, request: &ModelRequest, attachments: &[Attachment]) -> Vec<Value> {
    let parts = attachment_parts(attachments, &request.contents, target);
    let part = |part| match part {
        AttachmentPart::Text(text) => json!({ "text": text }),
        AttachmentPart::Image { media_type, data } => {
            json!({ "inlineData": { "mimeType": media_type, "data": data } })
        }
    };
    parts.into_iter().map(part).collect()
}

fn response(name: &str, id: Option<&str>, text: &str, failed: bool) -> Value {
    let outcome = if failed { "error" } else { "result" };
    let mut response = json!({ "name": name, "response": { outcome: text } });
    if let Some(id) = id {
        response["id"] = Value::from(id);
    }
    json!({ "functionResponse": response })
}

/// Adds the placeholder to the first call of a step if the step has no signature. Gemini refuses unsigned calls, such
/// as those of another model.
fn sign(parts: &mut [Value]) {
    let is_signed = parts
        .iter()
        .any(|part| part.get("thoughtSignature").is_some());
    let first = parts
        .iter_mut()
        .find(|part| part.get("functionCall").is_some());
    if let Some(call) = first.filter(|_| !is_signed) {
        call["thoughtSignature"] = Value::from(NO_SIGNATURE);
    }
}

/// Returns the provider's ids of these calls, under which the results must be sent. The log has its own ids.
fn ids_of(calls: &[Call], parts: &[Value]) -> Vec<(CallId, String)> {
    let sent = parts.iter().filter_map(|part| part.get("functionCall"));
    calls
        .iter()
        .zip(sent)
        .filter_map(|(call, sent)| Some((call.id.clone(), sent["id"].as_str()?.to_owned())))
        .collect()
}

/// Adds parts. Roles must alternate, so the results of a step go into one content. Adds no empty content.
fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    if let Some(last) = contents.last_mut()
        && last["role"] == role
        && let Some(before) = last["parts"].as_array_mut()
    {
        before.extend(parts);
        return;
    }
    contents.push(json!({ "role": role, "parts": parts }));
}

fn model_parts(text: &str, calls: &[Call], own: Option<&Value>, names: &Names) -> Vec<Value> {
    // Signatures are valid only for unchanged parts.
    let original = own.and_then(Value::as_array);
    let calls_in = |parts: &[Value]| {
        parts
            .iter()
            .filter(|part| part.get("functionCall").is_some())
            .count()
    };
    if let Some(parts) = original.filter(|parts| calls_in(parts) == calls.len()) {
        return parts.clone();
    }
    let text = (!text.trim().is_empty()).then(|| json!({ "text": text }));
    let calls = calls.iter().map(|call| {
        let args: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        json!({ "functionCall": { "name": names.sent(&call.name), "args": args } })
    });
    text.into_iter().chain(calls).collect()
}

fn declaration(function: &Function, names: &Names) -> String {
    let name = quoted(names.sent(&function.name));
    let description = quoted(&function.description);
    // Gemini refuses an object schema without properties; a function without a schema takes no arguments.
    let properties = function
        .parameters
        .get("properties")
        .and_then(Value::as_object);
    let has_properties = properties.is_some_and(|properties| !properties.is_empty());
    let parameters = if has_properties {
        format!(r#","parametersJsonSchema":{}"#, function.parameters.text())
    } else {
        String::new()
    };
    format!(r#"{{"name":{name},"description":{description}{parameters}}}"#)
}
