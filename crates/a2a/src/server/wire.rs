//! HTTP code that both bindings share: the user, version and body of a request, JSON responses, and server-sent events.

use super::refusal::{Refusal, RefusalKind, excerpt};
use super::shared::Shared;
use super::stream::Updates;
use axum::body::Body;
use axum::extract::Query;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use lango_core::{Text, UserId};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Returns the pairs of a query string, or an empty list if it is malformed.
pub(super) fn query_pairs(uri: &Uri) -> Vec<(String, String)> {
    Query::try_from_uri(uri).map_or_else(|_| Vec::new(), |Query(pairs)| pairs)
}

/// Checks the client's protocol version, which is in a header or in the query. If both are missing, the version is 0.3.
pub(super) fn check_version(
    headers: &HeaderMap,
    pairs: &[(String, String)],
) -> Result<(), Refusal> {
    let header = headers.get(a2a::SVC_PARAM_VERSION);
    let version = match header {
        Some(header) => header.to_str().unwrap_or("?").trim(),
        None => pairs
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(a2a::SVC_PARAM_VERSION))
            .map_or("", |(_, value)| value.trim()),
    };
    // The patch number does not affect compatibility.
    let patch = version.strip_prefix(a2a::VERSION);
    let is_served = patch.is_some_and(|patch| {
        let number = patch.strip_prefix('.');
        patch.is_empty()
            || number.is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            })
    });
    if is_served {
        return Ok(());
    }
    let version = if version.is_empty() { "0.3" } else { version };
    let message = format!(
        "protocol version `{}` is not supported; send `A2A-Version: {}`",
        excerpt(version),
        a2a::VERSION
    );
    let refusal = Refusal::new(RefusalKind::VersionNotSupported, message);
    Err(refusal.about("supportedVersions", a2a::VERSION))
}

/// Returns the user of a request.
pub(super) fn user(shared: &Shared, extensions: &Extensions) -> Result<UserId, Refusal> {
    let known = extensions.get::<UserId>().cloned();
    let user = known.or_else(|| shared.settings.default_user.clone());
    user.ok_or_else(|| {
        Refusal::new(
            RefusalKind::Unauthenticated,
            "the request has no valid token",
        )
    })
}

/// Checks that the body is declared as JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(CONTENT_TYPE);
    let kind = kind.map_or("", |kind| kind.to_str().unwrap_or("?"));
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let is_json = ["application/json", "application/a2a+json"]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known));
    if is_json {
        return Ok(());
    }
    let message = format!(
        "the body has the content type `{}`; send JSON as `application/json`",
        excerpt(kind)
    );
    Err(Refusal::new(RefusalKind::ContentTypeNotSupported, message))
}

/// A request body. A large one has a permit, which is released when the body is no longer in memory.
pub(super) struct ReceivedBody {
    pub bytes: Vec<u8>,
    pub large: Option<OwnedSemaphorePermit>,
}

/// Receives a body within the limits of size and time.
pub(super) async fn body(
    shared: &Shared,
    headers: &HeaderMap,
    body: Body,
) -> Result<ReceivedBody, Refusal> {
    let max_bytes = shared.settings.limits.body_bytes;
    let too_large = || {
        let message = format!("the body is larger than {max_bytes} bytes");
        Refusal::new(RefusalKind::TooLarge, message)
    };
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > u64::try_from(max_bytes).unwrap_or(u64::MAX)) {
        return Err(too_large());
    }
    let timeout = shared.settings.limits.body_timeout;
    let mut received = ReceivedBody {
        bytes: Vec::new(),
        large: None,
    };
    let mut chunks = body.into_data_stream();
    let read = async {
        while let Some(chunk) = chunks.next().await {
            let broken = "the connection broke before the end of the body";
            let chunk = chunk.map_err(|_| Refusal::new(RefusalKind::ParseError, broken))?;
            let length = received.bytes.len() + chunk.len();
            if length > max_bytes {
                return Err(too_large());
            }
            if length > shared.settings.limits.small_body_bytes && received.large.is_none() {
                received.large = Some(large_body_permit(shared).await?);
            }
            received.bytes.extend_from_slice(&chunk);
        }
        Ok(())
    };
    let read = tokio::time::timeout(timeout, read).await;
    read.map_err(|_| {
        let message = format!(
            "the body was not received within {} seconds",
            timeout.as_secs()
        );
        Refusal::new(RefusalKind::TooSlow, message)
    })??;
    Ok(received)
}

/// Waits for the permit to hold another large body in memory.
async fn large_body_permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Refusal> {
    let limits = &shared.settings.limits;
    let permit = Arc::clone(&shared.large_bodies).acquire_owned();
    match tokio::time::timeout(limits.body_timeout / 2, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => {
            let message = format!(
                "the server is at its limit of {} large messages; retry in a moment",
                limits.large_bodies
            );
            Err(Refusal::new(RefusalKind::Busy, message))
        }
    }
}

/// Creates a JSON response. If the server is busy or unavailable, asks the client to retry after a second.
pub(super) fn json(status: StatusCode, media_type: &'static str, json: String) -> Response {
    let mut response = (status, json).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Creates a response that streams updates as server-sent events. `wrap` converts each update into the data of its
/// event.
pub(super) fn events(
    shared: &Shared,
    updates: Updates,
    wrap: impl Fn(Text) -> String + Send + 'static,
) -> Response {
    let stream = futures_util::stream::unfold((updates, wrap), |(mut updates, wrap)| async move {
        let update = updates.next().await?;
        let event = Event::default().data(wrap(update));
        Some((Ok::<_, Infallible>(event), (updates, wrap)))
    });
    let keep_alive = KeepAlive::new().interval(shared.settings.limits.keep_alive);
    Sse::new(stream).keep_alive(keep_alive).into_response()
}
