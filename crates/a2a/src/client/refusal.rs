//! Errors of requests, from HTTP statuses, JSON-RPC errors and `google.rpc` errors.

use super::sanitize::one_line;
use a2a::error_code;
use serde_json::Value;
use std::time::Duration;

/// The maximum length of a server's error message, in characters.
const MESSAGE_CHARS: usize = 300;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub detail: String,
    pub kind: RefusalKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// Nothing was sent: there was no connection.
    NotSent,
    /// The request was sent, and its outcome is unknown.
    Lost,
    /// The agent or a gateway is busy. The request was not accepted.
    Busy { wait: Option<Duration> },
    /// There is no such task.
    NotFound,
    /// The server does not support this operation.
    Unsupported,
    /// The server does not accept this content type.
    MediaType,
    /// The server does not have this method at this URL.
    NoSuchMethod,
    /// The server answered with a redirect.
    Moved,
    /// The server does not accept the credentials.
    Unauthorised,
    /// The agent refused the request for another reason.
    Refused,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            kind,
        }
    }

    pub(crate) fn lost(detail: impl Into<String>) -> Self {
        Self::new(RefusalKind::Lost, detail)
    }

    /// Returns whether the agent may have moved to another URL.
    pub(crate) fn suggests_move(&self) -> bool {
        let kinds = [
            RefusalKind::NotSent,
            RefusalKind::NotFound,
            RefusalKind::NoSuchMethod,
            RefusalKind::Moved,
        ];
        kinds.contains(&self.kind)
    }

    /// Returns whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            RefusalKind::NotSent | RefusalKind::Lost | RefusalKind::Busy { .. }
        )
    }
}

/// Creates a refusal from a response with an error status.
pub(crate) fn of_status(status: u16, wait: Option<Duration>, body: &[u8]) -> Refusal {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let error = &body["error"];
    let message = error_message(error).or_else(|| error_message(&body));
    let detail = match &message {
        Some(message) => format!("it answered {status}: {message}"),
        None => format!("it answered {status}"),
    };
    let kind = match (status, code(error)) {
        (401 | 403, _) => RefusalKind::Unauthorised,
        (429, _) => RefusalKind::Busy { wait },
        // With `Retry-After` the server has not accepted the request. Without it, this may be a gateway that lost the
        // agent after the agent had received the request.
        (503, _) if wait.is_some() => RefusalKind::Busy { wait },
        (415, _) => RefusalKind::MediaType,
        (_, Some(error_code::TASK_NOT_FOUND)) => RefusalKind::NotFound,
        (_, Some(error_code::UNSUPPORTED_OPERATION)) => RefusalKind::Unsupported,
        (405 | 501, _) => RefusalKind::NoSuchMethod,
        (404 | 410, _) => RefusalKind::NotFound,
        (408 | 500.., code) if !code.is_some_and(is_refused_early) => RefusalKind::Lost,
        _ => RefusalKind::Refused,
    };
    Refusal { detail, kind }
}

/// Creates a refusal from an error object in a successful response.
pub(crate) fn of_error(error: &Value) -> Refusal {
    let number = error["code"].as_i64();
    let detail = match (error_message(error), number) {
        (Some(message), Some(number)) => format!("it answered with error {number}: {message}"),
        (Some(message), None) => format!("it answered with an error: {message}"),
        (None, Some(number)) => format!("it answered with error {number}"),
        (None, None) => "it answered with an error without a message".to_owned(),
    };
    let kind = match code(error) {
        Some(error_code::TASK_NOT_FOUND) => RefusalKind::NotFound,
        Some(error_code::UNSUPPORTED_OPERATION) => RefusalKind::Unsupported,
        Some(error_code::METHOD_NOT_FOUND) => RefusalKind::NoSuchMethod,
        Some(code) if may_have_run(code) => RefusalKind::Lost,
        _ => RefusalKind::Refused,
    };
    Refusal { detail, kind }
}

/// Returns whether the protocol uses this error code for requests that are refused before anything is done.
fn is_refused_early(code: i32) -> bool {
    let early = [
        error_code::PARSE_ERROR,
        error_code::INVALID_REQUEST,
        error_code::METHOD_NOT_FOUND,
        error_code::INVALID_PARAMS,
    ];
    let is_protocol_error = (-32009..=-32001).contains(&code);
    early.contains(&code) || (is_protocol_error && !may_have_run(code))
}

/// Returns whether the agent may already have done some work before this error.
fn may_have_run(code: i32) -> bool {
    [
        error_code::INTERNAL_ERROR,
        error_code::INVALID_AGENT_RESPONSE,
    ]
    .contains(&code)
}

/// Returns the error code of the protocol: from the reason in the details, or else from the code itself.
fn code(error: &Value) -> Option<i32> {
    let details = error["details"]
        .as_array()
        .or_else(|| error["data"].as_array());
    let reason = details
        .into_iter()
        .flatten()
        .find_map(|detail| a2a::reason_to_error_code(detail["reason"].as_str()?));
    let number = || {
        error["code"]
            .as_i64()
            .and_then(|code| i32::try_from(code).ok())
    };
    reason.or_else(|| number().filter(|code| *code < 0))
}

/// Returns the message of an error, with the invalid fields if it names them.
fn error_message(error: &Value) -> Option<String> {
    let text = ["message", "detail", "title"]
        .into_iter()
        .find_map(|field| error[field].as_str())
        .or_else(|| error.as_str())?;
    let details = error["details"]
        .as_array()
        .or_else(|| error["data"].as_array());
    let fields: Vec<String> = details
        .into_iter()
        .flatten()
        .filter_map(|detail| detail["fieldViolations"].as_array())
        .flatten()
        .take(3)
        .filter_map(|violation| {
            let field = violation["field"].as_str()?;
            let why = violation["description"].as_str().unwrap_or("wrong");
            Some(format!("{field}: {why}"))
        })
        .collect();
    let all = if fields.is_empty() {
        text.to_owned()
    } else {
        format!("{text} ({})", fields.join("; "))
    };
    Some(one_line(&all, MESSAGE_CHARS)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_of_all_forms_keep_their_message_and_kind() {
        let aip = json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "no\nsuch task",
            "details": [{ "@type": "x/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND" }] } });
        let refusal = of_status(404, None, aip.to_string().as_bytes());
        assert_eq!(
            refusal,
            Refusal::new(RefusalKind::NotFound, "it answered 404: no such task")
        );
        let rpc = json!({ "code": -32602, "message": "Invalid parameters", "data": [
            { "fieldViolations": [{ "field": "message.parts", "description": "needed" }] }] });
        let message = "it answered with error -32602: Invalid parameters (message.parts: needed)";
        assert_eq!(of_error(&rpc), Refusal::new(RefusalKind::Refused, message));
        let problem = br#"{"title":"bad","detail":"really bad","status":400}"#;
        let message = "it answered 400: really bad";
        assert_eq!(
            of_status(400, None, problem),
            Refusal::new(RefusalKind::Refused, message)
        );
    }

    #[test]
    fn a_server_error_means_an_unknown_outcome_unless_it_says_that_the_request_was_refused() {
        let of = |status, body: &Value| of_status(status, None, body.to_string().as_bytes()).kind;
        let gateway = json!({ "error": { "code": 504, "message": "upstream timed out" } });
        let gateway_flat = json!({ "message": "upstream timed out", "request_id": "7" });
        let gateway_text = json!({ "error": "Gateway Timeout" });
        let internal = json!({ "error": { "code": -32603, "message": "Internal error" } });
        let bad_agent = json!({ "error": { "code": 500, "message": "x",
            "details": [{ "reason": "INVALID_AGENT_RESPONSE" }] } });
        for status in [408, 500, 502, 503, 504, 522] {
            assert_eq!(of_status(status, None, b"<html>").kind, RefusalKind::Lost);
            assert_eq!(of_status(status, None, b"").kind, RefusalKind::Lost);
            for body in [
                &gateway,
                &gateway_flat,
                &gateway_text,
                &internal,
                &bad_agent,
            ] {
                assert_eq!(of(status, body), RefusalKind::Lost, "{status} {body}");
            }
        }
        for code in [-32700, -32600, -32602, -32005, -32009] {
            let own = json!({ "error": { "code": code, "message": "no" } });
            assert_eq!(of(500, &own), RefusalKind::Refused, "{code}");
        }
        let named = json!({ "error": { "code": 500, "message": "no",
            "details": [{ "reason": "VERSION_NOT_SUPPORTED" }] } });
        assert_eq!(of(500, &named), RefusalKind::Refused);
        assert_eq!(of(400, &Value::Null), RefusalKind::Refused);
        assert_eq!(of_error(&internal["error"]).kind, RefusalKind::Lost);
    }

    #[test]
    fn a_server_that_asks_to_retry_later_has_not_accepted_the_request() {
        let wait = Some(Duration::from_secs(3));
        assert_eq!(of_status(503, wait, b"").kind, RefusalKind::Busy { wait });
        assert_eq!(
            of_status(429, None, b"").kind,
            RefusalKind::Busy { wait: None }
        );
        assert_eq!(of_status(504, wait, b"").kind, RefusalKind::Lost);
    }
}
