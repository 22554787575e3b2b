//! What both bindings need of HTTP: who asks, in which version, with what body; and streams as events.

use super::refusal::{Kind, Refusal, beginning};
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

/// The pairs of a query. One that cannot be read has none.
pub(super) fn pairs(uri: &Uri) -> Vec<(String, String)> {
    Query::try_from_uri(uri).map_or_else(|_| Vec::new(), |Query(pairs)| pairs)
}

/// Whether the client speaks a version that is served. It says so in a header, or in the query; saying nothing means 0.3.
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
    // The third number, if there is one, says nothing about compatibility.
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
        "version `{}` of the protocol is not served; send `A2A-Version: {}`",
        beginning(version),
        a2a::VERSION
    );
    let refusal = Refusal::new(Kind::VersionNotSupported, message);
    Err(refusal.about("supportedVersions", a2a::VERSION))
}

/// Whose the request is.
pub(super) fn user(shared: &Shared, extensions: &Extensions) -> Result<UserId, Refusal> {
    let known = extensions.get::<UserId>().cloned();
    let user = known.or_else(|| shared.settings.default_user.clone());
    user.ok_or_else(|| Refusal::new(Kind::Unauthenticated, "this request shows no valid token"))
}

/// Whether the body is said to be JSON.
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
        "the body is sent as `{}`; send JSON as `application/json`",
        beginning(kind)
    );
    Err(Refusal::new(Kind::ContentTypeNotSupported, message))
}

/// A body, and its place among the large ones if it is one. The place is given back when nothing of the body is left in memory.
pub(super) struct ReceivedBody {
    pub bytes: Vec<u8>,
    pub large: Option<OwnedSemaphorePermit>,
}

/// The body, if it is not too long and does not take too long.
pub(super) async fn body(
    shared: &Shared,
    headers: &HeaderMap,
    body: Body,
) -> Result<ReceivedBody, Refusal> {
    let most = shared.settings.limits.body_bytes;
    let too_large = || {
        let message = format!("the body of a request may have {most} bytes");
        Refusal::new(Kind::TooLarge, message)
    };
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > u64::try_from(most).unwrap_or(u64::MAX)) {
        return Err(too_large());
    }
    let patience = shared.settings.limits.body_wait;
    let mut received = ReceivedBody {
        bytes: Vec::new(),
        large: None,
    };
    let mut chunks = body.into_data_stream();
    let read = async {
        while let Some(chunk) = chunks.next().await {
            let broken = "the body could not be read to its end";
            let chunk = chunk.map_err(|_| Refusal::new(Kind::ParseError, broken))?;
            let length = received.bytes.len() + chunk.len();
            if length > most {
                return Err(too_large());
            }
            if length > shared.settings.limits.small_body_bytes && received.large.is_none() {
                received.large = Some(large_place(shared).await?);
            }
            received.bytes.extend_from_slice(&chunk);
        }
        Ok(())
    };
    let read = tokio::time::timeout(patience, read).await;
    read.map_err(|_| {
        let message = format!(
            "the body of a request has to come within {} seconds",
            patience.as_secs()
        );
        Refusal::new(Kind::TooSlow, message)
    })??;
    Ok(received)
}

/// A place among the large bodies that are in memory.
async fn large_place(shared: &Shared) -> Result<OwnedSemaphorePermit, Refusal> {
    let limits = &shared.settings.limits;
    let place = Arc::clone(&shared.large_bodies).acquire_owned();
    match tokio::time::timeout(limits.body_wait / 2, place).await {
        Ok(Ok(place)) => Ok(place),
        _ => {
            let message = format!(
                "the server reads {} large messages already; send this one again in a moment",
                limits.large_bodies
            );
            Err(Refusal::new(Kind::Busy, message))
        }
    }
}

/// A JSON answer.
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

/// A stream of updates, each as `wrap` makes it.
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
