//! Extractors for JSON bodies, queries and paths. They reject malformed requests with problem details.

use crate::problem::Problem;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::time::Duration;
use tokio::sync::Semaphore;

/// A JSON body.
pub(crate) struct Json<T>(pub T);

/// The parameters of a query.
pub(crate) struct Query<T>(pub T);

/// The parameters of a path.
pub(crate) struct Path<T>(pub T);

/// Bodies of at least this size are read one at a time, because they can take a hundred times as much memory when
/// parsed.
const LARGE_BYTES: usize = 1 << 20;

/// Permits to read a large body.
static LARGE_BODIES: Semaphore = Semaphore::const_new(1);

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "send JSON, with `Content-Type: application/json`";
            return Err(Problem::unsupported_media_type(detail));
        }
        let body = Bytes::from_request(request, state);
        let body = tokio::time::timeout(BODY_TIMEOUT, body).await;
        let body = body.map_err(|_| Problem::timeout("the body did not arrive in time"))?;
        let body = body.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(rejection.body_text()),
            _ => Problem::bad_request(rejection.body_text()),
        })?;
        if body.len() < LARGE_BYTES {
            return parse(&body).map(Self);
        }
        // The semaphore is never closed.
        let _permit = LARGE_BODIES.acquire().await.ok();
        let parsed = tokio::task::spawn_blocking(move || parse(&body)).await;
        parsed.map_err(|_| Problem::internal())?.map(Self)
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => Problem::unprocessable(error.to_string()),
        Category::Syntax | Category::Eof | Category::Io => {
            Problem::bad_request(format!("the body is not JSON: {error}"))
        }
    })
}

/// Returns whether the body is `application/json`, or of a type that ends in `+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    essence.is_some_and(|essence| {
        let essence = essence.to_ascii_lowercase();
        essence == "application/json"
            || essence.starts_with("application/") && essence.ends_with("+json")
    })
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::from_request_parts(parts, state).await?;
        Ok(Self(query.0))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let axum::extract::Path(path) =
            axum::extract::Path::from_request_parts(parts, state).await?;
        Ok(Self(path))
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}
