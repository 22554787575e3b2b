//! Errors as RFC 9457 problem details: what happened, to which object, and what to do next.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lango_core::{Scope, StoreError, TurnId};
use lango_engine::RunnerError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// The media type of problem details.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI that names the kind of problem.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The kind of problem in a few words.
    pub title: Cow<'static, str>,
    /// The status code of the response.
    pub status: u16,
    /// What happened here.
    pub detail: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The result of a handler.
pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

impl Problem {
    fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:lango:problem:{kind}").into(),
            title: Cow::Owned(kind.replace('-', " ")),
            status: status.as_u16(),
            detail: detail.into(),
            next: None,
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The request is malformed.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    /// The request has no valid token.
    pub fn unauthorized() -> Self {
        let detail = "the request has no access token, or one that was revoked or has expired";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).next(
            "create one with `lango tokens create NAME` and send it as `Authorization: Bearer …`; a browser signs in with the link of `lango tokens link`",
        )
    }

    /// The token does not have a scope.
    pub fn missing_scope(scope: Scope) -> Self {
        let detail = format!("the token does not have the scope `{scope}`");
        Self::new(StatusCode::FORBIDDEN, "missing-scope", detail)
            .next("create one with all that you need, such as `lango tokens create NAME --scope read --scope run --scope approve`")
    }

    /// A page of another site sent the request.
    pub fn cross_site() -> Self {
        let detail = "a page of another site sent the request";
        Self::new(StatusCode::FORBIDDEN, "cross-site-request", detail)
    }

    /// The object does not exist for this user.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// The state of the object does not allow the request.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// The turn is already running here.
    pub fn runs_already(turn: &TurnId) -> Self {
        let detail = format!("turn `{turn}` runs already");
        Self::new(StatusCode::CONFLICT, "runs-already", detail)
            .next("follow it with GET /api/events")
    }

    /// The turn cannot take an answer now, because another process is working on it.
    pub fn busy_turn(turn: &TurnId) -> Self {
        let detail = format!("another agent of turn `{turn}` is at work in another process");
        Self::new(StatusCode::CONFLICT, "busy-turn", detail).next("retry when that agent is done")
    }

    pub(crate) fn is_of_busy_turn(&self) -> bool {
        self.kind.ends_with(":busy-turn") || self.is_running_already()
    }

    pub(crate) fn is_running_already(&self) -> bool {
        self.kind.ends_with(":runs-already")
    }

    /// The path exists, but does not support this method.
    pub fn method_not_allowed() -> Self {
        let detail = "this path does not support the method; see /api/openapi.json";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
    }

    /// The media type of the body is not accepted.
    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            detail,
        )
    }

    /// The request is well-formed, but its content is not accepted.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "not-accepted", detail)
    }

    /// The request took too long to arrive.
    pub fn timeout(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", detail)
    }

    /// The body is larger than the limit.
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    }

    /// The server is at a limit.
    pub fn too_many(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail)
    }

    /// The server is stopping, or the store does not answer.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).next("retry in a moment")
    }

    /// The server failed. Only the operator can see the cause.
    pub fn internal() -> Self {
        let detail = "the server failed; its operator can see why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal-error", detail)
    }

    /// Returns the status code of the response.
    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status_code();
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from_store(&error)
    }
}

impl Problem {
    pub(crate) fn from_store(error: &StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } | StoreError::NotGranted { .. } => {
                Self::not_found(error.to_string())
            }
            StoreError::Busy { .. } => Self::conflict(error.to_string())
                .next("retry when its turn has ended, or cancel it"),
            StoreError::Exists { .. } | StoreError::Conflict { .. } => {
                Self::conflict(error.to_string())
            }
            StoreError::LeaseLost { .. }
            | StoreError::Unreachable { .. }
            | StoreError::Full { .. } => Self::unavailable("the store does not answer"),
            // The others name places and details that callers must not see.
            _ => Self::internal(),
        }
    }
}

impl From<RunnerError> for Problem {
    fn from(error: RunnerError) -> Self {
        let text = error.to_string();
        match error {
            RunnerError::Store(error) => error.into(),
            RunnerError::InputTooLong { .. } => Self::too_large(text),
            RunnerError::AttachmentRejected { .. }
            | RunnerError::EmptyInput
            | RunnerError::WrongAnswer { .. } => Self::unprocessable(text),
            RunnerError::ApprovalPending { .. } => Self::conflict(text)
                .next("answer it or cancel its turn, then send the message again"),
            RunnerError::WrongFolder { .. } | RunnerError::InterruptedInOtherFolder { .. } => {
                Self::conflict(text).next("answer it with `lango approvals` in that folder")
            }
            _ => Self::conflict(text),
        }
    }
}
