//! Why a request is refused, and how each binding says so. The table is the protocol's; what it has no word for (a body too
//! long, a full server) is said in the words of JSON-RPC and HTTP.

use super::render;
use axum::http::StatusCode;
use lango_core::Timestamp;
use serde_json::{Map, Value, json};

/// The kinds of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    VersionNotSupported,
    ParseError,
    InvalidRequest,
    InvalidParams,
    NoSuchMethod,
    NoSuchPath,
    MethodNotAllowed,
    TooLarge,
    TooSlow,
    Unauthenticated,
    Busy,
    Stopping,
    Damaged,
    Internal,
}

struct Terms {
    code: i32,
    status: StatusCode,
    word: &'static str,
    reason: &'static str,
    is_of_protocol: bool,
}

impl Kind {
    fn terms(self) -> Terms {
        let (code, status, word, reason) = match self {
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            Self::PushNotSupported => (
                -32003,
                400,
                "FAILED_PRECONDITION",
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
            Self::UnsupportedOperation => {
                (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION")
            }
            Self::ContentTypeNotSupported => (
                -32005,
                400,
                "INVALID_ARGUMENT",
                "CONTENT_TYPE_NOT_SUPPORTED",
            ),
            Self::VersionNotSupported => {
                (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")
            }
            Self::ParseError => (-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"),
            Self::InvalidRequest => (-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::InvalidParams => (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            Self::NoSuchMethod => (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
            Self::NoSuchPath => (-32601, 404, "NOT_FOUND", "NO_SUCH_PATH"),
            Self::MethodNotAllowed => (-32600, 405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED"),
            Self::TooLarge => (-32600, 413, "INVALID_ARGUMENT", "REQUEST_TOO_LARGE"),
            Self::TooSlow => (-32600, 408, "DEADLINE_EXCEEDED", "REQUEST_TOO_SLOW"),
            Self::Unauthenticated => (-32000, 401, "UNAUTHENTICATED", "UNAUTHENTICATED"),
            Self::Busy => (-32000, 429, "RESOURCE_EXHAUSTED", "TOO_MUCH_AT_WORK"),
            Self::Stopping => (-32000, 503, "UNAVAILABLE", "SERVER_STOPS"),
            Self::Damaged | Self::Internal => (-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
        };
        Terms {
            code,
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            word,
            reason,
            is_of_protocol: (-32009..=-32001).contains(&code),
        }
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub kind: Kind,
    message: String,
    /// The fields that are wrong, each with what is wrong.
    fields: Vec<(String, String)>,
    metadata: Vec<(&'static str, String)>,
}

impl Refusal {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            fields: Vec::new(),
            metadata: Vec::new(),
        }
    }

    pub fn no_task(id: &str) -> Self {
        let message = format!("there is no task `{}`", beginning(id));
        Self::new(Kind::TaskNotFound, message).about("taskId", beginning(id))
    }

    pub fn busy_task(id: &str) -> Self {
        let message = "the agent is at work on the task; send the message when the task asks for input, or cancel it";
        Self::new(Kind::UnsupportedOperation, message).about("taskId", id)
    }

    pub fn no_slot(limit: usize) -> Self {
        let message =
            format!("the server is at its limit of {limit} running tasks; retry in a moment");
        Self::new(Kind::Busy, message)
    }

    pub fn damaged(id: &str) -> Self {
        Self::new(Kind::Damaged, format!("task `{id}` is damaged"))
    }

    pub fn stopping() -> Self {
        let message = "the server stops and takes no new work";
        Self::new(Kind::Stopping, message)
    }

    /// A field that is wrong, and what is wrong with it.
    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        let message = format!("`{field}` {problem}");
        let mut refusal = Self::new(Kind::InvalidParams, message);
        refusal.fields.push((field, problem));
        refusal
    }

    /// The store failed. What it said is for the operator, not for the client.
    pub fn store_failure() -> Self {
        Self::new(
            Kind::Internal,
            "tasks cannot be read or kept at the moment; try again later",
        )
    }

    pub fn about(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.metadata.push((key, value.into()));
        self
    }

    pub fn status(&self) -> StatusCode {
        self.kind.terms().status
    }

    /// The status of an answer over JSON-RPC: 200 where the error itself is the answer, HTTP's own where a request did
    /// not come as far as being one.
    pub fn rpc_status(&self) -> StatusCode {
        match self.kind {
            Kind::TooLarge
            | Kind::TooSlow
            | Kind::MethodNotAllowed
            | Kind::Unauthenticated
            | Kind::Busy
            | Kind::Stopping => self.status(),
            _ => StatusCode::OK,
        }
    }

    /// The error object of JSON-RPC.
    pub fn rpc_error(&self, now: Timestamp) -> Value {
        json!({
            "code": self.kind.terms().code,
            "message": self.message,
            "data": self.details(now),
        })
    }

    /// The body over HTTP+JSON.
    pub fn http_body(&self, now: Timestamp) -> Value {
        let terms = self.kind.terms();
        json!({ "error": {
            "code": terms.status.as_u16(),
            "status": terms.word,
            "message": self.message,
            "details": self.details(now),
        } })
    }

    fn details(&self, now: Timestamp) -> Vec<Value> {
        let terms = self.kind.terms();
        let mut metadata = Map::new();
        for (key, value) in &self.metadata {
            metadata.insert((*key).to_owned(), Value::String(value.clone()));
        }
        let time = render::written(&render::moment(now));
        metadata.insert("timestamp".to_owned(), Value::String(time));
        let mut details = vec![json!({
            "@type": a2a::ERROR_INFO_TYPE,
            "reason": terms.reason,
            "domain": if terms.is_of_protocol { a2a::PROTOCOL_DOMAIN } else { "lango" },
            "metadata": metadata,
        })];
        if !self.fields.is_empty() {
            let violations: Vec<Value> = self
                .fields
                .iter()
                .map(|(field, problem)| json!({ "field": field, "description": problem }))
                .collect();
            details.push(json!({
                "@type": a2a::BAD_REQUEST_TYPE,
                "fieldViolations": violations,
            }));
        }
        details
    }
}

/// The beginning of what a client sent, for saying it back: enough to recognise it.
pub(super) fn beginning(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
