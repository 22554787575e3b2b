//! The ways in which a provider can fail.

use super::request::Dialect;
use serde_json::{Value, json};
use std::time::Duration;

/// A way to fail. Counts of bytes refer to the body, without its chunked encoding.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// An HTTP status with an error in the provider's format, or with a literal body.
    Status {
        status: u16,
        /// The message inside the provider's error format.
        message: String,
        /// Additional headers.
        headers: Vec<(String, String)>,
        /// A literal body in place of the provider's error format.
        body: Option<String>,
    },
    /// Status 400 with the provider's own message for a conversation that is too long.
    ContextTooLong,
    /// Status 400 or 401 with the provider's own message for a wrong key.
    BadKey,
    /// Status 404 with the provider's own message for an unknown model.
    UnknownModel,
    /// Closes the connection before the response head.
    HangUp,
    /// Closes the connection after this many bytes of the body.
    CutAfter(usize),
    /// Never sends anything.
    SilentBeforeHead,
    /// Sends the head and nothing more.
    SilentBeforeBody,
    /// Sends nothing more after this many bytes of the body.
    SilentAfter(usize),
    /// Sends single bytes, with a pause before each.
    Drip(Duration),
    /// Inserts invalid JSON into the middle.
    Garbage,
    /// Sends the provider's own error in the middle of a stream, or in place of a reply that is not streamed.
    ErrorInside,
    /// Sends a line that is longer than 4 MiB.
    HugeFrame,
    /// Sends text without end.
    Endless,
    /// Sends comments without end, and no reply.
    EndlessComments,
    /// An HTML page with status 200.
    Html,
    /// A redirect to this URL.
    Redirect(String),
    /// Status 200 without a body.
    EmptyBody,
    /// Status 200 and `{}`.
    EmptyJson,
}

impl Fault {
    /// Creates an HTTP status with an error in the provider's format.
    pub fn status(status: u16, message: &str) -> Self {
        Self::Status {
            status,
            message: message.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Creates a status 429 with this `Retry-After`.
    pub fn rate_limited(retry_after: &str) -> Self {
        Self::status(429, "slow down").header("retry-after", retry_after)
    }

    /// Adds a header to a status.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Replaces the body of a status.
    pub fn body(mut self, text: impl ToString) -> Self {
        if let Self::Status { body, .. } = &mut self {
            *body = Some(text.to_string());
        }
        self
    }
}

/// Returns the body of an HTTP error in the provider's format.
pub(super) fn error_body(dialect: Dialect, status: u16, message: &str) -> Value {
    match dialect {
        Dialect::OpenAi | Dialect::Responses => {
            let (kind, code) = match status {
                401 => ("invalid_request_error", json!("invalid_api_key")),
                404 => ("invalid_request_error", json!("model_not_found")),
                429 => ("requests", json!("rate_limit_exceeded")),
                500.. => ("server_error", Value::Null),
                _ => ("invalid_request_error", Value::Null),
            };
            json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
        }
        Dialect::Anthropic => {
            let kind = match status {
                401 => "authentication_error",
                402 => "billing_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        }
        Dialect::Gemini => {
            let kind = match status {
                401 => "UNAUTHENTICATED",
                403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 => "UNAVAILABLE",
                500.. => "INTERNAL",
                _ => "INVALID_ARGUMENT",
            };
            json!({ "error": { "code": status, "message": message, "status": kind } })
        }
    }
}

/// Returns the status and body of the faults for which each provider has its own message.
pub(super) fn provider_error(dialect: Dialect, fault: &Fault) -> Option<(u16, Value)> {
    let (status, message) = match (fault, dialect) {
        (Fault::ContextTooLong, Dialect::OpenAi | Dialect::Responses) => {
            let message = "This model's maximum context length is 128000 tokens. However, your messages resulted in \
                           150000 tokens. Please reduce the length of the messages.";
            let mut body = error_body(dialect, 400, message);
            body["error"]["code"] = json!("context_length_exceeded");
            return Some((400, body));
        }
        (Fault::ContextTooLong, Dialect::Anthropic) => {
            (400, "prompt is too long: 208310 tokens > 200000 maximum")
        }
        (Fault::ContextTooLong, Dialect::Gemini) => (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (Fault::BadKey, Dialect::OpenAi | Dialect::Responses) => {
            (401, "Incorrect API key provided: sk-****.")
        }
        (Fault::BadKey, Dialect::Anthropic) => (401, "invalid x-api-key"),
        (Fault::BadKey, Dialect::Gemini) => {
            (400, "API key not valid. Please pass a valid API key.")
        }
        (Fault::UnknownModel, Dialect::OpenAi | Dialect::Responses) => {
            (404, "The model `m` does not exist")
        }
        (Fault::UnknownModel, Dialect::Anthropic) => (404, "model: m"),
        (Fault::UnknownModel, Dialect::Gemini) => (
            404,
            "models/m is not found for API version v1beta, or is not supported for generateContent.",
        ),
        _ => return None,
    };
    Some((status, error_body(dialect, status, message)))
}

/// Returns the event with which a provider reports an error in the middle of a stream.
pub(super) fn error_frame(dialect: Dialect) -> String {
    match dialect {
        Dialect::OpenAi => {
            let error = error_body(dialect, 500, "The server had an error");
            format!("data: {error}\n\n")
        }
        Dialect::Responses => {
            let error = json!({
                "type": "error", "code": "server_error", "message": "The server had an error",
                "param": null, "sequence_number": 4,
            });
            super::responses::frame(&error)
        }
        Dialect::Anthropic => {
            let error = error_body(dialect, 529, "Overloaded");
            format!("event: error\ndata: {error}\n\n")
        }
        Dialect::Gemini => {
            let error = error_body(dialect, 503, "The model is overloaded");
            format!("data: {error}\n\n")
        }
    }
}
