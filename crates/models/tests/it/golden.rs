//! Snapshots of the requests of each wire format: one history of three agents, streamed and not.

use crate::support::Wire;
use crate::support::{assistant, opaque, result, sent, user};
use lango_core::{Function, Message, ModelRequest};
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns functions as the runtime offers them: the control function, one with a schema, one without, and one with a
/// forbidden name.
fn functions() -> Arc<[Function]> {
    let function = |name: &str, description: &str, parameters: Value| Function {
        name: name.into(),
        description: description.into(),
        parameters: parameters.into(),
    };
    let delegate = json!({
        "type": "object", "required": ["agent", "task"],
        "properties": {
            "agent": { "type": "string", "enum": ["operator", "librarian", "translator"] },
            "task": { "type": "string" },
            "finish": { "type": "boolean" },
        },
    });
    let read = json!({ "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } });
    Arc::from([
        function("delegate", "Gives a task to an agent", delegate),
        function("fs.read", "Reads a file", read),
        function("time_now", "Tells the time", json!({})),
    ])
}

/// Returns a history: an earlier answer of a remote agent, shown as a delegation; then a step of two parallel calls,
/// one of them rejected, with the provider's opaque data; then a call with broken arguments; then a notice of the
/// runner.
fn history(kind: Wire) -> ModelRequest {
    let delegation = |agent: &str, task: &str| json!({ "agent": agent, "task": task }).to_string();
    let (first, second) = (
        delegation("operator", "List the files"),
        delegation("librarian", "Find the book"),
    );
    let past = delegation("translator", "Translate `hello`");
    let messages = vec![
        user("Say hello in French."),
        assistant("", &[("call_0", "delegate", &past)], None),
        result("call_0", "delegate", "bonjour"),
        user("List my files and find the book."),
        assistant(
            "Both at once.",
            &[
                ("call_1", "delegate", &first),
                ("call_2", "delegate", &second),
            ],
            Some(opaque(kind, blob(kind))),
        ),
        result("call_1", "delegate", "a.txt\nb.txt"),
        Message::Result {
            call: "call_2".into(),
            name: "delegate".into(),
            text: "`librarian` rejected the task: it is not about knowledge".into(),
            failed: true,
            attachments: Vec::new(),
        },
        assistant("", &[("call_3", "fs.read", "{\"path\": \"a.t")], None),
        Message::Result {
            call: "call_3".into(),
            name: "fs.read".into(),
            text: "the arguments do not parse: EOF at line 1 column 13".into(),
            failed: true,
            attachments: Vec::new(),
        },
        crate::support::notice("Answer now with what you have."),
    ];
    ModelRequest {
        instruction: "Route each task to the agent that owns it.".into(),
        messages,
        functions: functions(),
        ..ModelRequest::default()
    }
}

/// Returns the opaque data that each provider requires back with a step of two calls.
fn blob(kind: Wire) -> Value {
    let (first, second) = (
        json!({ "agent": "operator", "task": "List the files" }),
        json!({ "agent": "librarian", "task": "Find the book" }),
    );
    match kind {
        Wire::OpenAi => {
            json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "ZW5j" }] })
        }
        Wire::Responses => json!([
            { "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ZW5j" },
            {
                "id": "msg_1_r", "type": "message", "status": "completed", "role": "assistant", "phase": "commentary",
                "content": [{ "type": "output_text", "annotations": [], "logprobs": [], "text": "Both at once." }],
            },
            {
                "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1",
                "name": "delegate", "arguments": first.to_string(),
            },
            {
                "id": "fc_2", "type": "function_call", "status": "completed", "call_id": "call_2",
                "name": "delegate", "arguments": second.to_string(),
            },
        ]),
        Wire::Anthropic => json!([
            { "type": "thinking", "thinking": "Two tasks.", "signature": "c2ln" },
            { "type": "text", "text": "Both at once." },
            { "type": "tool_use", "id": "toolu_1", "name": "delegate", "input": first },
            { "type": "tool_use", "id": "toolu_2", "name": "delegate", "input": second },
        ]),
        Wire::Gemini => json!([
            { "text": "Both at once." },
            { "functionCall": { "name": "delegate", "args": first }, "thoughtSignature": "c2ln" },
            { "functionCall": { "name": "delegate", "args": second } },
        ]),
    }
}

async fn request_text(kind: Wire, streaming: bool) -> String {
    request_text_of(kind, history(kind), streaming).await
}

/// Formats a request as text: its path, its headers without those of the connection, and its body.
pub(crate) async fn request_text_of(kind: Wire, request: ModelRequest, streaming: bool) -> String {
    let recorded = sent(kind, request, streaming).await;
    let is_ours = |name: &str| !matches!(name, "host" | "content-length" | "accept" | "user-agent");
    let headers = recorded.headers.iter().filter(|(name, _)| is_ours(name));
    let mut headers: Vec<String> = headers
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    headers.sort();
    let body = serde_json::to_string_pretty(&sorted(&recorded.body)).unwrap();
    format!(
        "{} {}\n{}\n\n{body}",
        recorded.method,
        recorded.path,
        headers.join("\n")
    )
}

/// Sorts the keys, because their order depends on the build.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn requests_to_openai() {
    insta::assert_snapshot!("openai", request_text(Wire::OpenAi, true).await);
    insta::assert_snapshot!("openai_whole", request_text(Wire::OpenAi, false).await);
}

#[tokio::test]
async fn requests_to_responses() {
    insta::assert_snapshot!("responses", request_text(Wire::Responses, true).await);
    insta::assert_snapshot!(
        "responses_whole",
        request_text(Wire::Responses, false).await
    );
}

#[tokio::test]
async fn requests_to_anthropic() {
    insta::assert_snapshot!("anthropic", request_text(Wire::Anthropic, true).await);
    insta::assert_snapshot!(
        "anthropic_whole",
        request_text(Wire::Anthropic, false).await
    );
}

#[tokio::test]
async fn requests_to_gemini() {
    insta::assert_snapshot!("gemini", request_text(Wire::Gemini, true).await);
    insta::assert_snapshot!("gemini_whole", request_text(Wire::Gemini, false).await);
}
