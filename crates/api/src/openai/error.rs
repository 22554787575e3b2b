//! Errors in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

use crate::problem::{PROBLEM_JSON, Problem};
use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

/// The header that tells the official clients whether to retry, whatever the status is.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The maximum size of a problem to convert, in bytes. Problems are a few sentences long.
const MAX_PROBLEM_BYTES: usize = 256 * 1024;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    pub status: StatusCode,
    pub body: ErrorBody,
}

/// The object that clients read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ErrorBody {
    pub message: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub param: Option<&'static str>,
    pub code: Option<String>,
}

/// The result of a handler.
pub(super) type Result<T, E = ApiError> = std::result::Result<T, E>;

impl ApiError {
    /// A parameter has a value that is not accepted.
    pub(super) fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            body: ErrorBody {
                message: message.into(),
                kind: "invalid_request_error",
                param: Some(param),
                code: Some("invalid_value".to_owned()),
            },
        }
    }

    /// A parameter asks for something that is not supported.
    pub(super) fn unsupported(param: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::invalid(param, message);
        error.body.code = Some("unsupported_parameter".to_owned());
        error
    }

    /// The model is not served here.
    pub(super) fn no_model(model: &str, served: &str) -> Self {
        let shown: String = model.chars().take(200).collect();
        Self {
            status: StatusCode::NOT_FOUND,
            body: ErrorBody {
                message: format!("there is no model `{shown}`; use `lango` or `{served}`"),
                kind: "invalid_request_error",
                param: Some("model"),
                code: Some("model_not_found".to_owned()),
            },
        }
    }

    /// The turn ended without an answer.
    pub(super) fn turn_failed(message: String, code: &str) -> Self {
        Self {
            status: StatusCode::FAILED_DEPENDENCY,
            body: ErrorBody {
                message,
                kind: "turn_error",
                param: None,
                code: Some(code.to_owned()),
            },
        }
    }

    /// An error after a turn was started. The turn may be resumed, so the client must not retry.
    pub(super) fn of_turn(problem: Problem) -> Self {
        let mut error = Self::from(problem);
        if may_repeat(error.status) {
            error.status = StatusCode::FAILED_DEPENDENCY;
        }
        error
    }

    /// Returns the error with this parameter as its cause.
    pub(super) fn of_param(mut self, param: &'static str) -> Self {
        self.body.param = Some(param);
        self
    }

    /// Returns the body of the response.
    pub(super) fn json(&self) -> Value {
        json!({ "error": self.body })
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let status = problem.status_code();
        let message = match &problem.next {
            Some(next) => format!("{}; {next}", problem.detail),
            None => problem.detail.clone(),
        };
        let code = problem.kind.rsplit(':').next().unwrap_or_default();
        Self {
            status,
            body: ErrorBody {
                message,
                kind: kind_of(status),
                param: None,
                code: Some(code_of(status, code)),
            },
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem_headers = match self.status {
            // They have headers of their own.
            StatusCode::UNAUTHORIZED => Some(Problem::unauthorized()),
            StatusCode::TOO_MANY_REQUESTS => Some(Problem::too_many("")),
            StatusCode::SERVICE_UNAVAILABLE => Some(Problem::unavailable("")),
            _ => None,
        };
        let mut response = (self.status, Json(self.json())).into_response();
        if let Some(problem) = problem_headers {
            let mut headers = std::mem::take(problem.into_response().headers_mut());
            headers.remove(CONTENT_TYPE);
            headers.remove(axum::http::header::CONTENT_LENGTH);
            response.headers_mut().extend(headers);
        }
        if !may_repeat(self.status) {
            let value = HeaderValue::from_static("false");
            response.headers_mut().insert(SHOULD_RETRY, value);
        }
        response
    }
}

/// Returns whether clients may retry a request with this status, because the request started nothing.
fn may_repeat(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    )
}

fn kind_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::CONFLICT => "conflict_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

fn code_of(status: StatusCode, code: &str) -> String {
    match status {
        StatusCode::UNAUTHORIZED => "invalid_api_key".to_owned(),
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_exceeded".to_owned(),
        _ => code.replace('-', "_"),
    }
}

/// Converts problem details below `/v1` to OpenAI's error format.
pub(crate) async fn in_openai_shape(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_openai = path == "/v1" || path.starts_with("/v1/");
    let response = next.run(request).await;
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_problem = content_type.is_some_and(|value| value == PROBLEM_JSON);
    if !is_openai || !is_problem {
        return response;
    }
    let body = to_bytes(response.into_body(), MAX_PROBLEM_BYTES).await;
    let problem = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok());
    ApiError::from(problem.unwrap_or_else(Problem::internal)).into_response()
}
