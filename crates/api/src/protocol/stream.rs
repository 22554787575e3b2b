//! Responses that stream a turn as server-sent events.

use super::follow::{TurnFollower, Update};
use crate::Api;
use crate::problem::{Problem, Result};
use axum::body::Body;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use lango_core::Usage;
use lango_engine::{TurnEnd, TurnUpdate};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Server-sent events that are ready to be sent.
#[derive(Debug, Default)]
pub(crate) struct Frames(String);

impl Frames {
    /// Adds an event, with a name if the protocol uses names.
    pub(crate) fn push(&mut self, name: Option<&str>, data: &impl Serialize) {
        if let Some(name) = name {
            self.0.push_str(&format!("event: {name}\n"));
        }
        // The types of the adapters have string keys and no fallible implementation.
        let json = serde_json::to_string(data).unwrap_or_default();
        self.0.push_str(&format!("data: {json}\n\n"));
    }

    /// Adds an event whose data is not JSON.
    pub(crate) fn push_text(&mut self, data: &str) {
        self.0.push_str(&format!("data: {data}\n\n"));
    }

    fn push_comment(&mut self) {
        self.0.push_str(":\n\n");
    }

    /// Returns the bytes to send.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from(self.0)
    }
}

/// Writes a turn as events of a protocol.
pub(crate) trait Renderer: Send + 'static {
    /// Writes the first events.
    fn start(&mut self, frames: &mut Frames);

    /// Writes an update of the turn.
    fn shown(&mut self, shown: &TurnUpdate, frames: &mut Frames);

    /// Writes the end of the turn. `usage` covers the model calls that were shown.
    fn end(&mut self, end: Result<TurnEnd>, usage: Usage, frames: &mut Frames);
}

/// State of one stream.
struct TurnStream<R> {
    follower: TurnFollower,
    renderer: R,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

/// Acquires a permit for one stream. Call it before starting a turn, so that a refused request has no effect.
pub(crate) fn stream_permit(api: &Api) -> Result<OwnedSemaphorePermit> {
    Arc::clone(&api.streams).try_acquire_owned().map_err(|_| {
        Problem::too_many("the server is at its limit of open streams")
            .next("retry in a moment, or raise `server.maxStreams`")
    })
}

/// Streams a turn. If the turn cannot start, returns an error instead, unless it takes longer than the keep-alive
/// interval to find that out.
pub(crate) async fn respond<R: Renderer>(
    permit: OwnedSemaphorePermit,
    mut follower: TurnFollower,
    renderer: R,
) -> Result<Response> {
    let first = match follower.next().await {
        Update::Ended(Err(problem)) => return Err(problem),
        Update::SignedOut => return Err(Problem::unauthorized()),
        update => update,
    };
    let mut state = TurnStream {
        follower,
        renderer,
        is_over: false,
        _permit: permit,
    };
    let mut frames = Frames::default();
    state.renderer.start(&mut frames);
    state.write(first, &mut frames);
    let opened = stream::once(async move { Ok::<_, Infallible>(frames.into_bytes()) });
    let following = stream::unfold(state, |mut state| async move {
        if state.is_over {
            return None;
        }
        let mut frames = Frames::default();
        let update = state.follower.next().await;
        state.write(update, &mut frames);
        Some((Ok::<_, Infallible>(frames.into_bytes()), state))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (NO_BUFFERING, "no"),
    ];
    let body = Body::from_stream(opened.chain(following));
    Ok((headers, body).into_response())
}

impl<R: Renderer> TurnStream<R> {
    fn write(&mut self, update: Update, frames: &mut Frames) {
        match update {
            Update::Turn(shown) => self.renderer.shown(&shown, frames),
            Update::KeepAlive => frames.push_comment(),
            Update::Ended(end) => {
                self.is_over = true;
                self.renderer.end(end, self.follower.usage(), frames);
            }
            Update::SignedOut => {
                self.is_over = true;
                let end = Err(Problem::unauthorized());
                self.renderer.end(end, self.follower.usage(), frames);
            }
        }
    }
}
