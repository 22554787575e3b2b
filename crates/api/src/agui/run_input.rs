//! The input of a run.

use crate::problem::{Problem, Result};
use crate::protocol::{ClientMessage, ClientSession, Part, Role, data_url};
use serde::Deserialize;
use serde_json::Value;

/// The request of a client. Unknown fields are ignored.
#[derive(Debug)]
pub(super) struct RunInput {
    pub thread: String,
    pub run: String,
    /// Whether the client says that it speaks protocol 1.0. Clients of earlier versions refuse some of its forms.
    pub is_version_1: bool,
    pub messages: Vec<ClientMessage>,
    pub has_tools: bool,
    pub resume: Vec<ResumeEntry>,
}

/// The answer to one interrupt.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeEntry {
    pub interrupt_id: String,
    pub status: ResumeStatus,
    #[serde(default)]
    pub payload: Value,
}

/// Whether an interrupt was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResumeStatus {
    /// The payload is the answer.
    Resolved,
    /// The user closed the question.
    Cancelled,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireInput {
    thread_id: String,
    run_id: String,
    protocol_version: Option<String>,
    #[serde(default)]
    messages: Vec<Value>,
    tools: Option<Vec<Value>>,
    context: Option<Vec<WireContext>>,
    resume: Option<Vec<ResumeEntry>>,
}

#[derive(Deserialize)]
struct WireContext {
    description: String,
    value: String,
}

impl RunInput {
    /// The maximum length of a run's id, in bytes.
    const MAX_ID: usize = 200;

    /// Reads the body of a request.
    pub(super) fn read(body: Value) -> Result<Self> {
        let input: WireInput = serde_json::from_value(body).map_err(|error| {
            // The error repeats the value, however long it is.
            let error: String = error.to_string().chars().take(300).collect();
            Problem::unprocessable(format!("this is not a run: {error}"))
        })?;
        for (name, id, max) in [
            ("threadId", &input.thread_id, ClientSession::MAX_NAME),
            ("runId", &input.run_id, Self::MAX_ID),
        ] {
            if id.is_empty() || id.len() > max || id.contains(char::is_control) {
                return Err(Problem::unprocessable(format!(
                    "`{name}` must have 1 to {max} bytes and no control characters"
                )));
            }
        }
        let mut messages = Vec::with_capacity(input.messages.len());
        for context in input.context.into_iter().flatten() {
            let text = format!("{}: {}", context.description, context.value);
            messages.push(ClientMessage::text(Role::System, text));
        }
        for value in &input.messages {
            messages.extend(message(value)?);
        }
        let version = input.protocol_version.as_deref();
        Ok(Self {
            thread: input.thread_id,
            run: input.run_id,
            is_version_1: version.is_some_and(|version| version.starts_with("1.")),
            messages,
            has_tools: input.tools.is_some_and(|tools| !tools.is_empty()),
            resume: input.resume.unwrap_or_default(),
        })
    }
}

/// Reads a message. Skips tool results, activities and reasoning, because the log of the session has them.
fn message(message: &Value) -> Result<Option<ClientMessage>> {
    let role = match message["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "activity" | "reasoning") => return Ok(None),
        _ => {
            return Err(Problem::unprocessable(
                "the role of a message must be developer, system, assistant, user, tool, activity or reasoning",
            ));
        }
    };
    let parts = match &message["content"] {
        Value::Null => Vec::new(),
        Value::String(text) => vec![Part::Text(text.clone())],
        Value::Array(parts) => parts.iter().map(part).collect::<Result<_>>()?,
        _ => {
            return Err(Problem::unprocessable(
                "the content of a message must be a string or a list of parts",
            ));
        }
    };
    Ok(Some(ClientMessage { role, parts }))
}

fn part(part: &Value) -> Result<Part> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let not_bytes =
        || Problem::unprocessable("files must have their bytes in base64; URLs are not fetched");
    match part["type"].as_str() {
        Some("text") => text(&part["text"])
            .map(Part::Text)
            .ok_or_else(|| Problem::unprocessable("a part has no `text`")),
        Some("image" | "document") => {
            let source = &part["source"];
            match (source["type"].as_str(), text(&source["value"])) {
                (Some("data"), Some(base64)) => Ok(Part::File {
                    name: text(&part["metadata"]["filename"]),
                    media_type: text(&source["mimeType"]).unwrap_or_default(),
                    base64,
                }),
                (Some("url"), Some(url)) => data_url(&url, None),
                _ => Err(not_bytes()),
            }
        }
        // The form of versions before 1.0.
        Some("binary") => match (text(&part["data"]), text(&part["url"])) {
            (Some(base64), _) => Ok(Part::File {
                name: text(&part["filename"]),
                media_type: text(&part["mimeType"]).unwrap_or_default(),
                base64,
            }),
            (None, Some(url)) => data_url(&url, text(&part["filename"])),
            (None, None) => Err(not_bytes()),
        },
        _ => Err(Problem::unprocessable(
            "a part must be text, an image or a document; audio and video are not supported",
        )),
    }
}
