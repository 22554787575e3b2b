//! Events of sessions: pages of the log, and live streams.

use super::sessions::{find, limit};
use crate::Api;
use crate::access::{Caller, Reader};
use crate::feeds::{SessionSubscription, UserSubscription, comment, frame};
use crate::json::{Path, Query};
use crate::model::{EventFilter, EventPage, StreamFilter};
use crate::problem::{Problem, Result};
use crate::protocol::stream_permit;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use lango_core::{EventRange, SessionStore, SessionSummary, StoreError};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

const DEFAULT_LIMIT: u32 = 500;
const MAX_LIMIT: u32 = 1000;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Keep-alive interval. The token is checked again at the same interval.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The pause after a failed read of the store.
const RETRY: Duration = Duration::from_secs(1);

/// Reads events of a session. With `Accept: text/event-stream`, the response is a stream of all events after
/// `Last-Event-ID`, including those still to come.
#[utoipa::path(get, path = "/api/sessions/{id}/events", params(("id" = String, Path,), EventFilter), tag = "events", responses(
    (status = 200, body = EventPage), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem)))]
pub(super) async fn read(
    Reader(caller): Reader,
    State(api): State<Api>,
    Path(id): Path<String>,
    Query(filter): Query<EventFilter>,
    headers: HeaderMap,
) -> Result<Response> {
    let session = find(&api, &caller, &id).await?;
    if accepts_stream(&headers) {
        let after = cursor(&headers, filter.after)?.unwrap_or(0);
        let events = subscribe(&api, &session, after);
        return respond(&api, caller, Some(events), None);
    }
    let limit = limit(filter.limit, DEFAULT_LIMIT, MAX_LIMIT)?;
    let from = match (filter.after, filter.before) {
        (Some(_), Some(_)) => {
            return Err(Problem::bad_request("give `after` or `before`, not both"));
        }
        (Some(after), None) => after.saturating_add(1),
        (None, before) => {
            let before = before
                .unwrap_or(u64::MAX)
                .min(session.events.saturating_add(1));
            before.saturating_sub(limit as u64).max(1)
        }
    };
    let until = filter.before.unwrap_or(u64::MAX);
    let mut events = api
        .store
        .read(&session.id, EventRange { from, limit })
        .await?;
    events.retain(|event| event.seq < until);
    let last = events
        .last()
        .map_or(0, |event| event.seq)
        .max(session.events);
    Ok(Json(EventPage { events, last }).into_response())
}

/// Streams changes to the lists of sessions and approvals, and the events of one session. A web page needs no other
/// connection.
#[utoipa::path(get, path = "/api/events", params(StreamFilter), tag = "events", responses(
    (status = 200, content_type = "text/event-stream", body = String), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem)))]
pub(super) async fn stream(
    Reader(caller): Reader,
    State(api): State<Api>,
    Query(filter): Query<StreamFilter>,
    headers: HeaderMap,
) -> Result<Response> {
    let events = match &filter.session {
        Some(id) => {
            let session = find(&api, &caller, id).await?;
            let after = cursor(&headers, filter.after)?.unwrap_or(0);
            Some(subscribe(&api, &session, after))
        }
        None => None,
    };
    let users = api.context.visible_users(&caller.user);
    let lists = api.feeds.subscribe_users(users);
    respond(&api, caller, events, Some(lists))
}

fn subscribe(api: &Api, session: &SessionSummary, after: u64) -> SessionSubscription {
    api.feeds.subscribe(&session.id, after, session.events)
}

fn accepts_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.contains("text/event-stream"))
}

/// Returns the `seq` after which to stream. The header takes precedence, because a browser sends it when it reconnects.
fn cursor(headers: &HeaderMap, after: Option<u64>) -> Result<Option<u64>> {
    match headers.get(LAST_EVENT_ID) {
        None => Ok(after),
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
            let problem = || Problem::bad_request("`Last-Event-ID` is not the number of an event");
            id.map(Some).ok_or_else(problem)
        }
    }
}

/// State of one stream.
struct Stream {
    api: Api,
    caller: Caller,
    events: Option<SessionSubscription>,
    lists: Option<UserSubscription>,
    keep_alive: Instant,
    /// Whether the stream ends, because the token was revoked or its only session was deleted.
    is_over: bool,
    is_stopping: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

fn respond(
    api: &Api,
    caller: Caller,
    events: Option<SessionSubscription>,
    lists: Option<UserSubscription>,
) -> Result<Response> {
    let permit = stream_permit(api)?;
    let state = Stream {
        api: api.clone(),
        caller,
        events,
        lists,
        keep_alive: Instant::now() + KEEP_ALIVE,
        is_over: false,
        is_stopping: api.is_stopping.subscribe(),
        _permit: permit,
    };
    // The first frame tells the reader that the stream is open.
    let opened = stream::once(async { Ok::<_, Infallible>(comment()) });
    let frames = stream::unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((Ok::<_, Infallible>(frame), state))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (NO_BUFFERING, "no"),
    ];
    let body = Body::from_stream(futures_util::StreamExt::chain(opened, frames));
    Ok((headers, body).into_response())
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        loop {
            let is_alive = self.keep_alive;
            tokio::select! {
                biased;
                () = stopped(&mut self.is_stopping) => return None,
                () = sleep_until(is_alive) => {
                    self.keep_alive = Instant::now() + KEEP_ALIVE;
                    return Some(self.keep_alive().await);
                }
                frame = next_of_lists(&mut self.lists) => return Some(frame),
                received = next_event(&mut self.events) => match received {
                    Ok(frame) => return Some(frame),
                    Err(StoreError::NotFound { id }) => {
                        self.events = None;
                        // The stream of a session ends with it; that of a page goes on.
                        self.is_over = self.lists.is_none();
                        return Some(frame("deleted", None, &json!({ "id": id })));
                    }
                    Err(_) => tokio::time::sleep(RETRY).await,
                },
            }
        }
    }

    /// Returns a keep-alive comment, or ends the stream if the token was revoked.
    async fn keep_alive(&mut self) -> Bytes {
        match self.api.store_token(self.caller.digest).await {
            Ok(None) => {
                self.is_over = true;
                frame("signed_out", None, &json!({}))
            }
            // A store that does not answer now says nothing about the token.
            Ok(Some(_)) | Err(_) => comment(),
        }
    }
}

async fn stopped(is_stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the API.
    let _ = is_stopping.wait_for(|is_stopping| *is_stopping).await;
}

async fn next_of_lists(lists: &mut Option<UserSubscription>) -> Bytes {
    match lists {
        Some(lists) => lists.next().await,
        None => std::future::pending().await,
    }
}

async fn next_event(events: &mut Option<SessionSubscription>) -> Result<Bytes, StoreError> {
    match events {
        Some(events) => events.next().await.map(|received| received.frame()),
        None => std::future::pending().await,
    }
}
