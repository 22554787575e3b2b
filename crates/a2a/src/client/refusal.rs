//! Why a request was not answered as it should be, from HTTP statuses, JSON-RPC errors and `google.rpc` errors alike.

use super::words::one_line;
use a2a::error_code;
use serde_json::Value;
use std::time::Duration;

/// The longest words of an error.
const WORDS: usize = 300;

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub detail: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing was sent: there was no connection.
    NotSent,
    /// It was sent, and what became of it is not known.
    Lost,
    /// Somebody on the way or the agent has no time for it now. It was not taken.
    Busy { wait: Option<Duration> },
    /// There is no such task.
    NotFound,
    /// It does not have this operation.
    Unsupported,
    /// It does not take this content type.
    MediaType,
    /// It does not have this method at this place.
    NoSuchMethod,
    /// It is somewhere else now.
    Moved,
    /// Who asks is not allowed to.
    Unauthorised,
    /// The agent says no.
    Refused,
}

impl Refusal {
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            kind,
        }
    }

    pub fn lost(detail: impl Into<String>) -> Self {
        Self::new(Kind::Lost, detail)
    }

    /// Whether the agent may have another address by now.
    pub fn suggests_a_move(&self) -> bool {
        let kinds = [
            Kind::NotSent,
            Kind::NotFound,
            Kind::NoSuchMethod,
            Kind::Moved,
        ];
        kinds.contains(&self.kind)
    }

    /// Whether the same question may be answered in a while.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::NotSent | Kind::Lost | Kind::Busy { .. })
    }
}

/// From an answer whose status is not a good one.
pub(crate) fn of_status(status: u16, wait: Option<Duration>, body: &[u8]) -> Refusal {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let error = &body["error"];
    let said = said(error).or_else(|| said(&body));
    let detail = match &said {
        Some(words) => format!("it answered {status}: {words}"),
        None => format!("it answered {status}"),
    };
    let kind = match (status, code(error)) {
        (401 | 403, _) => Kind::Unauthorised,
        (429, _) => Kind::Busy { wait },
        // Whoever says when to come back has put it off. Without that it may be a gateway that lost the agent half-way.
        (503, _) if wait.is_some() => Kind::Busy { wait },
        (415, _) => Kind::MediaType,
        (_, Some(error_code::TASK_NOT_FOUND)) => Kind::NotFound,
        (_, Some(error_code::UNSUPPORTED_OPERATION)) => Kind::Unsupported,
        (405 | 501, _) => Kind::NoSuchMethod,
        (404 | 410, _) => Kind::NotFound,
        (408 | 500.., code) if !code.is_some_and(was_not_taken) => Kind::Lost,
        _ => Kind::Refused,
    };
    Refusal { detail, kind }
}

/// From an error object, which came with a good status.
pub(crate) fn of_error(error: &Value) -> Refusal {
    let number = error["code"].as_i64();
    let detail = match (said(error), number) {
        (Some(words), Some(number)) => format!("it answered with error {number}: {words}"),
        (Some(words), None) => format!("it answered with an error: {words}"),
        (None, Some(number)) => format!("it answered with error {number}"),
        (None, None) => "it answered with an error without words".to_owned(),
    };
    let kind = match code(error) {
        Some(error_code::TASK_NOT_FOUND) => Kind::NotFound,
        Some(error_code::UNSUPPORTED_OPERATION) => Kind::Unsupported,
        Some(error_code::METHOD_NOT_FOUND) => Kind::NoSuchMethod,
        Some(code) if is_half_way(code) => Kind::Lost,
        _ => Kind::Refused,
    };
    Refusal { detail, kind }
}

/// Whether the protocol has this error for requests that are refused before anything is done.
fn was_not_taken(code: i32) -> bool {
    let before = [
        error_code::PARSE_ERROR,
        error_code::INVALID_REQUEST,
        error_code::METHOD_NOT_FOUND,
        error_code::INVALID_PARAMS,
    ];
    let is_of_protocol = (-32009..=-32001).contains(&code);
    before.contains(&code) || (is_of_protocol && !is_half_way(code))
}

/// Whether an error says that the agent failed at it, which may have been after it had done something.
fn is_half_way(code: i32) -> bool {
    [
        error_code::INTERNAL_ERROR,
        error_code::INVALID_AGENT_RESPONSE,
    ]
    .contains(&code)
}

/// The protocol's own number of an error: as it stands, or by the reason in its details.
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

/// The words of an error, with the fields that are wrong if it names them.
fn said(error: &Value) -> Option<String> {
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
    Some(one_line(&all, WORDS)).filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_of_all_forms_keep_their_words_and_their_kind() {
        let aip = json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "no\nsuch task",
            "details": [{ "@type": "x/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND" }] } });
        let refusal = of_status(404, None, aip.to_string().as_bytes());
        assert_eq!(
            refusal,
            Refusal::new(Kind::NotFound, "it answered 404: no such task")
        );
        let rpc = json!({ "code": -32602, "message": "Invalid parameters", "data": [
            { "fieldViolations": [{ "field": "message.parts", "description": "needed" }] }] });
        let words = "it answered with error -32602: Invalid parameters (message.parts: needed)";
        assert_eq!(of_error(&rpc), Refusal::new(Kind::Refused, words));
        let problem = br#"{"title":"bad","detail":"really bad","status":400}"#;
        let words = "it answered 400: really bad";
        assert_eq!(
            of_status(400, None, problem),
            Refusal::new(Kind::Refused, words)
        );
    }

    #[test]
    fn an_error_leaves_it_open_unless_it_says_that_nothing_was_taken() {
        let of = |status, body: &Value| of_status(status, None, body.to_string().as_bytes()).kind;
        let gateway = json!({ "error": { "code": 504, "message": "upstream timed out" } });
        let gateway_flat = json!({ "message": "upstream timed out", "request_id": "7" });
        let gateway_words = json!({ "error": "Gateway Timeout" });
        let internal = json!({ "error": { "code": -32603, "message": "Internal error" } });
        let bad_agent = json!({ "error": { "code": 500, "message": "x",
            "details": [{ "reason": "INVALID_AGENT_RESPONSE" }] } });
        for status in [408, 500, 502, 503, 504, 522] {
            assert_eq!(of_status(status, None, b"<html>").kind, Kind::Lost);
            assert_eq!(of_status(status, None, b"").kind, Kind::Lost);
            for body in [
                &gateway,
                &gateway_flat,
                &gateway_words,
                &internal,
                &bad_agent,
            ] {
                assert_eq!(of(status, body), Kind::Lost, "{status} {body}");
            }
        }
        for code in [-32700, -32600, -32602, -32005, -32009] {
            let own = json!({ "error": { "code": code, "message": "no" } });
            assert_eq!(of(500, &own), Kind::Refused, "{code}");
        }
        let named = json!({ "error": { "code": 500, "message": "no",
            "details": [{ "reason": "VERSION_NOT_SUPPORTED" }] } });
        assert_eq!(of(500, &named), Kind::Refused);
        assert_eq!(of(400, &Value::Null), Kind::Refused);
        assert_eq!(of_error(&internal["error"]).kind, Kind::Lost);
    }

    #[test]
    fn whoever_says_when_to_come_back_has_taken_nothing() {
        let wait = Some(Duration::from_secs(3));
        assert_eq!(of_status(503, wait, b"").kind, Kind::Busy { wait });
        assert_eq!(of_status(429, None, b"").kind, Kind::Busy { wait: None });
        assert_eq!(of_status(504, wait, b"").kind, Kind::Lost);
    }
}
