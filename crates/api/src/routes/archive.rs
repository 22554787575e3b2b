//! Copies of sessions: forks, exports and the files of messages.

use super::sessions::find;
use crate::Api;
use crate::access::{Reader, Runs};
use crate::json::{Json, Path};
use crate::model::{ForkRequest, SessionItem};
use crate::problem::{Problem, Result};
use axum::Json as Data;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt as _;
use lango_core::{AttachmentStore, NewSession, SessionId, TurnId, image_type};
use lango_store::archive::Fork;
use std::io;

/// Copies a session, up to the end of a turn, into a new session.
#[utoipa::path(post, path = "/api/sessions/{id}/fork", params(("id" = String, Path,)), request_body = ForkRequest, tag = "sessions", responses(
    (status = 201, body = SessionItem), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem), (status = 408, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn fork(
    Runs(caller): Runs,
    State(api): State<Api>,
    Path(id): Path<String>,
    Json(ForkRequest { turn }): Json<ForkRequest>,
) -> Result<(StatusCode, Data<SessionItem>)> {
    let source = find(&api, &caller, &id).await?;
    let session = NewSession {
        id: SessionId::new(api.ids.fresh("s_")),
        user: source.user.clone(),
        created: api.clock.now(),
    };
    let fork = Fork {
        session: session.clone(),
        title: format!("{} (fork)", source.title),
        source: source.id,
        turn: TurnId::from(turn.as_str()),
    };
    let is_forked =
        api.store
            .fork_session(fork)
            .await
            .map_err(|error| match Problem::from(error) {
                problem if problem.status == 404 => {
                    Problem::not_found(format!("there is no turn `{turn}` in session `{id}`"))
                }
                problem => problem,
            })?;
    if !is_forked {
        let detail = format!("turn `{turn}` has not ended yet");
        return Err(
            Problem::conflict(detail).next("fork from an earlier turn, or wait for its end")
        );
    }
    let copied = find(&api, &caller, session.id.as_str()).await?;
    Ok((StatusCode::CREATED, Data(copied.into())))
}

/// Exports a session as lines of JSON, which `lango sessions import` reads.
#[utoipa::path(get, path = "/api/sessions/{id}/export", params(("id" = String, Path,)), tag = "sessions", responses(
    (status = 200, content_type = "application/x-ndjson", body = String), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn export(
    Reader(caller): Reader,
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response> {
    let session = find(&api, &caller, &id).await?;
    let lines = api.context.export(session.id.clone());
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}.jsonl\"", file_name(&id)),
        ),
    ];
    let body = Body::from_stream(lines.map_err(io::Error::other));
    Ok((headers, body).into_response())
}

/// Returns the bytes of a file that belongs to a message.
#[utoipa::path(get, path = "/api/attachments/{session}/{digest}", params(("session" = String, Path,), ("digest" = String, Path,)), tag = "sessions", responses(
    (status = 200, content_type = "application/octet-stream", body = Vec<u8>), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn attachment(
    Reader(caller): Reader,
    State(api): State<Api>,
    Path((session, digest)): Path<(String, String)>,
) -> Result<Response> {
    let session = find(&api, &caller, &session).await?;
    let bytes = AttachmentStore::read(&*api.store, &session.user, &digest).await?;
    let bytes = bytes.ok_or_else(|| Problem::not_found(format!("there is no file `{digest}`")))?;
    // Only images that were recognized by their bytes are shown by browsers; all else is downloaded as text.
    let (media_type, disposition) = match image_type(&bytes) {
        Some(media_type) => (media_type, "inline"),
        None => ("text/plain; charset=utf-8", "attachment"),
    };
    let headers = [
        (CONTENT_TYPE, media_type),
        (CONTENT_DISPOSITION, disposition),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    Ok((headers, Body::from(bytes.to_vec())).into_response())
}

/// Converts an id to a file name of letters, digits, `_` and `-`.
fn file_name(id: &str) -> String {
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    id.chars().filter(is_plain).collect()
}
