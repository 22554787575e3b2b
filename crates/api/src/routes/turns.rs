//! Turns: starting, reading and cancelling.

use super::sessions::find;
use crate::Api;
use crate::access::{Reader, Runs};
use crate::json::{Json, Path};
use crate::model::{NewAttachment, NewTurnRequest, StartedTurn, TurnEvents, TurnStatus};
use crate::problem::{Problem, Result};
use crate::turns::{NewTurn, TurnStarted};
use axum::Json as Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_core::{AttachedFile, EventBody, SessionId, SessionStore, TurnId, UserId};
use lango_documents::read_attachment;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Starts a turn. If the session is busy, the turn is queued. With the header `Idempotency-Key`, a repeated request
/// returns the same turn; a request with the same key but another text is refused.
#[utoipa::path(post, path = "/api/turns", params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 200)), request_body = NewTurnRequest, tag = "turns", responses(
    (status = 202, body = StartedTurn), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
    (status = 413, body = Problem), (status = 408, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem),
    (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn start(
    Runs(caller): Runs,
    State(api): State<Api>,
    headers: HeaderMap,
    Json(request): Json<NewTurnRequest>,
) -> Result<(StatusCode, Body<StartedTurn>)> {
    let key = idempotency_key(&headers)?;
    let (session, user) = match &request.session {
        Some(id) => {
            let session = find(&api, &caller, id).await?;
            (session.id, session.user)
        }
        None => (new_session(&api, &caller.user, key), caller.user.clone()),
    };
    let turn = match key {
        Some(key) => TurnId::new(derived("t_", &[user.as_str(), session.as_str(), key])),
        None => TurnId::new(api.ids.fresh("t_")),
    };
    if key.is_some() {
        refuse_other_message(&api, &session, &turn, &request.text).await?;
    }
    let mut input = caller.input(&request.text);
    input.files = files(request.attachments)?;
    let new = NewTurn {
        user,
        session: session.clone(),
        turn: turn.clone(),
        input,
    };
    let status = match api.turns.start(new).await {
        Ok(TurnStarted::Running) => TurnStatus::Running,
        Ok(TurnStarted::Queued) => TurnStatus::Queued,
        Ok(TurnStarted::Waiting(_)) => TurnStatus::Waiting,
        Ok(TurnStarted::Finished(_)) => TurnStatus::Finished,
        // The same request was sent before, and its turn runs.
        Err(problem) if problem.is_running_already() && key.is_some() => {
            match api.turns.has_started(&session, &turn) {
                Some(false) => TurnStatus::Queued,
                Some(true) | None => TurnStatus::Running,
            }
        }
        Err(problem) => return Err(problem),
    };
    let started = StartedTurn {
        session: session.to_string(),
        turn: turn.to_string(),
        status,
    };
    Ok((StatusCode::ACCEPTED, Body(started)))
}

/// Returns the events of a turn.
#[utoipa::path(get, path = "/api/sessions/{id}/turns/{turn}", params(("id" = String, Path,), ("turn" = String, Path,)), tag = "turns", responses(
    (status = 200, body = TurnEvents), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn show(
    Reader(caller): Reader,
    State(api): State<Api>,
    Path((id, turn)): Path<(String, String)>,
) -> Result<Body<TurnEvents>> {
    let session = find(&api, &caller, &id).await?;
    let turn = TurnId::from(turn.as_str());
    let events = api.store.turn_events(&session.id, &turn).await?;
    if events.is_empty() {
        let detail = format!("there is no turn `{turn}` in session `{id}`");
        return Err(Problem::not_found(detail));
    }
    Ok(Body(TurnEvents { events }))
}

/// Cancels a turn that runs, is queued or waits for an approval.
#[utoipa::path(post, path = "/api/sessions/{id}/turns/{turn}/cancel", params(("id" = String, Path,), ("turn" = String, Path,)), tag = "turns", responses(
    (status = 202, body = Object), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(super) async fn cancel(
    Runs(caller): Runs,
    State(api): State<Api>,
    Path((id, turn)): Path<(String, String)>,
) -> Result<(StatusCode, Body<Value>)> {
    let turn = TurnId::from(turn.as_str());
    let users = api.context.visible_users(&caller.user);
    let session = SessionId::from(id.as_str());
    // The session of a queued turn may not be stored yet.
    if !api.turns.stop(&users, &session, &turn) {
        let session = find(&api, &caller, &id).await?;
        if !api.context.cancel_task(&session.user, &turn).await
            && let Err(problem) = api.turns.cancel_waiting(&session.id, &turn).await
            // It may have been continued here meanwhile.
            && !api.turns.stop(&users, &session.id, &turn)
        {
            return Err(problem);
        }
    }
    Ok((StatusCode::ACCEPTED, Body(json!({}))))
}

/// Refuses a key that was used for another message, instead of answering with that message's turn.
async fn refuse_other_message(
    api: &Api,
    session: &SessionId,
    turn: &TurnId,
    text: &str,
) -> Result<()> {
    let events = api.store.turn_events(session, turn).await?;
    match events.first().map(|event| &event.body) {
        Some(EventBody::UserMessage { text: stored, .. }) if **stored != *text => {
            let detail =
                format!("this `Idempotency-Key` belongs to another message, turn `{turn}`");
            Err(Problem::unprocessable(detail).next("send a new message with a new key"))
        }
        _ => Ok(()),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>> {
    const MAX: usize = 200;
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    match key.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX => Ok(Some(key)),
        _ => Err(Problem::bad_request(format!(
            "`Idempotency-Key` must have 1 to {MAX} characters"
        ))),
    }
}

/// Returns the id of a new session. It is derived from the key, so that a repeated request finds the session.
fn new_session(api: &Api, user: &UserId, key: Option<&str>) -> SessionId {
    SessionId::new(match key {
        Some(key) => derived("s_", &[user.as_str(), key]),
        None => api.ids.fresh("s_"),
    })
}

fn derived(prefix: &str, parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
        hasher.update([0]);
    }
    let digest = base16ct::lower::encode_string(&hasher.finalize()[..8]);
    format!("{prefix}{digest}")
}

fn files(attachments: Vec<NewAttachment>) -> Result<Vec<AttachedFile>> {
    let files = attachments.into_iter().map(|attachment| {
        let name = &attachment.name;
        let bytes = STANDARD.decode(&attachment.data);
        let bytes = bytes.map_err(|error| {
            Problem::unprocessable(format!("the file `{name}` is not base64: {error}"))
        })?;
        read_attachment(name, bytes).map_err(|error| Problem::unprocessable(error.to_string()))
    });
    files.collect()
}
