//! Refused requests, and how each binding reports them. The error codes are those of the A2A protocol. For errors that
//! it does not define (such as a body that is too large, or a full server) the codes of JSON-RPC and HTTP are used.

use super::slots::QueueFull;
use super::{ServerLimits, render};
use axum::http::StatusCode;
use lango_core::Timestamp;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalKind {
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
    Unavailable,
    Damaged,
    Internal,
}

/// The codes that report a kind of refusal.
struct ErrorCodes {
    /// The JSON-RPC error code.
    rpc: i32,
    http: StatusCode,
    /// The name of the status in Google's error model.
    status: &'static str,
    reason: &'static str,
}

impl RefusalKind {
    fn codes(self) -> ErrorCodes {
        let (rpc, http, status, reason) = match self {
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
            Self::Busy => (-32000, 429, "RESOURCE_EXHAUSTED", "SERVER_BUSY"),
            Self::Stopping => (-32000, 503, "UNAVAILABLE", "SERVER_STOPPING"),
            Self::Unavailable => (-32000, 503, "UNAVAILABLE", "STORE_UNAVAILABLE"),
            Self::Damaged | Self::Internal => (-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
        };
        ErrorCodes {
            rpc,
            http: StatusCode::from_u16(http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            status,
            reason,
        }
    }
}

/// A refused request, with a message for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub kind: RefusalKind,
    message: String,
    /// The invalid fields, each with its problem.
    fields: Vec<(String, String)>,
    metadata: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            fields: Vec::new(),
            metadata: Vec::new(),
        }
    }

    pub(super) fn no_task(id: &str) -> Self {
        let message = format!("task `{}` does not exist", excerpt(id));
        Self::new(RefusalKind::TaskNotFound, message).about("taskId", excerpt(id))
    }

    pub(super) fn busy_task(id: &str) -> Self {
        let message = "the task is still running; send the message when the task asks for input, or cancel the task";
        Self::new(RefusalKind::UnsupportedOperation, message).about("taskId", id)
    }

    pub(super) fn queue_full(full: QueueFull, limits: &ServerLimits) -> Self {
        let message = match full {
            QueueFull::Server => format!(
                "the server is at its limits of {} running and {} waiting tasks; retry in a moment",
                limits.running, limits.queue
            ),
            QueueFull::Conversation => {
                "this conversation has too many waiting messages; retry when some of them are answered"
                    .to_owned()
            }
        };
        Self::new(RefusalKind::Busy, message)
    }

    pub(super) fn queue_timeout(limits: &ServerLimits) -> Self {
        let message = format!(
            "no slot became free within {} s: the server is at its limit of {} running tasks; retry in a moment",
            limits.queue_timeout.as_secs(),
            limits.running
        );
        Self::new(RefusalKind::Busy, message)
    }

    pub(super) fn damaged(id: &str) -> Self {
        let message = format!(
            "the stored task `{id}` cannot be read; the operator must inspect the database"
        );
        Self::new(RefusalKind::Damaged, message)
    }

    pub(super) fn stopping() -> Self {
        let message = "the server is shutting down; retry when it is up again";
        Self::new(RefusalKind::Stopping, message)
    }

    /// Refuses a request because of one field. `problem` completes a sentence that starts with the field's name.
    pub(super) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        let message = format!("`{field}` {problem}");
        let mut refusal = Self::new(RefusalKind::InvalidParams, message);
        refusal.fields.push((field, problem));
        refusal
    }

    /// Refuses a request because the store failed. The message hides the cause, which only the operator may see.
    pub(super) fn store_failure() -> Self {
        let message = "the server cannot read or store tasks at the moment; retry later";
        Self::new(RefusalKind::Unavailable, message)
    }

    /// Adds a metadata entry.
    pub(super) fn about(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.metadata.push((key, value.into()));
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.kind.codes().http
    }

    /// Returns the HTTP status of a JSON-RPC response: 200 for errors of a call, or an error status if the server
    /// refused the request before it read a call, or cannot serve it now.
    pub(super) fn rpc_status(&self) -> StatusCode {
        match self.kind {
            RefusalKind::TooLarge
            | RefusalKind::TooSlow
            | RefusalKind::MethodNotAllowed
            | RefusalKind::Unauthenticated
            | RefusalKind::Busy
            | RefusalKind::Stopping
            | RefusalKind::Unavailable => self.status(),
            _ => StatusCode::OK,
        }
    }

    /// Builds the error object of a JSON-RPC response.
    pub(super) fn rpc_error(&self, now: Timestamp) -> Value {
        json!({
            "code": self.kind.codes().rpc,
            "message": self.message,
            "data": self.details(now),
        })
    }

    /// Builds the body of an HTTP+JSON response.
    pub(super) fn http_body(&self, now: Timestamp) -> Value {
        let codes = self.kind.codes();
        json!({ "error": {
            "code": codes.http.as_u16(),
            "status": codes.status,
            "message": self.message,
            "details": self.details(now),
        } })
    }

    fn details(&self, now: Timestamp) -> Vec<Value> {
        let codes = self.kind.codes();
        let is_protocol_error = (-32009..=-32001).contains(&codes.rpc);
        let mut metadata = Map::new();
        for (key, value) in &self.metadata {
            metadata.insert((*key).to_owned(), Value::String(value.clone()));
        }
        let time = render::time_text(&render::time(now));
        metadata.insert("timestamp".to_owned(), Value::String(time));
        let mut details = vec![json!({
            "@type": a2a::ERROR_INFO_TYPE,
            "reason": codes.reason,
            "domain": if is_protocol_error { a2a::PROTOCOL_DOMAIN } else { "lango" },
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

/// Returns the first characters of a client's text, for an error message.
pub(super) fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 100;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
