//! Sessions: listing, searching, renaming and deleting.

use crate::Api;
use crate::access::{Caller, Reader, Runs};
use crate::json::{Json, Path, Query};
use crate::model::{Rename, SessionFilter, SessionItem, SessionPage};
use crate::problem::{Problem, Result};
use axum::Json as Body;
use axum::extract::State;
use axum::http::StatusCode;
use lango_core::{
    BusyPolicy, SessionCatalog, SessionId, SessionQuery, SessionStore, SessionSummary, Timestamp,
};
use lango_store::archive::remove_hidden;

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// The maximum length of a title, in characters.
const MAX_TITLE: usize = 200;

/// Lists sessions, the most recently used first.
#[utoipa::path(get, path = "/api/sessions", params(SessionFilter), tag = "sessions", responses(
    (status = 200, body = SessionPage), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn list(
    Reader(caller): Reader,
    State(api): State<Api>,
    Query(filter): Query<SessionFilter>,
) -> Result<Body<SessionPage>> {
    let limit = limit(filter.limit, DEFAULT_LIMIT, MAX_LIMIT)?;
    let query = SessionQuery {
        search: filter.search.filter(|search| !search.is_empty()),
        status: filter.status.map(Into::into),
        after: filter.cursor.as_deref().map(parse_cursor).transpose()?,
        folder: None,
        limit: limit + 1,
    };
    let mut found = Vec::new();
    for user in api.context.visible_users(&caller.user) {
        found.extend(SessionCatalog::list(&*api.store, &user, query.clone()).await?);
    }
    found.sort_by(|one, other| {
        let by_time = other.updated.cmp(&one.updated);
        by_time.then_with(|| one.id.cmp(&other.id))
    });
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(cursor);
    let sessions = found.into_iter().map(SessionItem::from).collect();
    Ok(Body(SessionPage { sessions, next }))
}

/// Returns a session.
#[utoipa::path(get, path = "/api/sessions/{id}", params(("id" = String, Path,)), tag = "sessions", responses(
    (status = 200, body = SessionItem), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn show(
    Reader(caller): Reader,
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Body<SessionItem>> {
    Ok(Body(find(&api, &caller, &id).await?.into()))
}

/// Renames a session.
#[utoipa::path(patch, path = "/api/sessions/{id}", params(("id" = String, Path,)), request_body = Rename, tag = "sessions", responses(
    (status = 200, body = SessionItem), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 413, body = Problem), (status = 408, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn rename(
    Runs(caller): Runs,
    State(api): State<Api>,
    Path(id): Path<String>,
    Json(Rename { title }): Json<Rename>,
) -> Result<Body<SessionItem>> {
    let session = find(&api, &caller, &id).await?;
    let title: String = title.replace(char::is_control, " ");
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().count() > MAX_TITLE {
        return Err(Problem::unprocessable(format!(
            "a title has 1 to {MAX_TITLE} characters"
        )));
    }
    api.store.rename(&session.user, &session.id, &title).await?;
    Ok(Body(find(&api, &caller, &id).await?.into()))
}

/// Deletes a session permanently.
#[utoipa::path(delete, path = "/api/sessions/{id}", params(("id" = String, Path,)), tag = "sessions", responses(
    (status = 204), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(super) async fn delete(
    Runs(caller): Runs,
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let session = find(&api, &caller, &id).await?;
    let _lease = api.store.acquire(&session.id, BusyPolicy::Refuse).await?;
    // Turns that wait for the session would create it again.
    api.turns.stop_all(&session.id);
    if !api.store.hide_session(&session.id, None).await? {
        return Err(no_session(&id));
    }
    let forgotten = api.context.forget_session(&session.id);
    forgotten.map_err(Problem::unavailable)?;
    remove_hidden(&api.store, &session.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns a session that the caller may see.
pub(crate) async fn find(api: &Api, caller: &Caller, id: &str) -> Result<SessionSummary> {
    for user in api.context.visible_users(&caller.user) {
        let found = api.store.find(&user, id, 1).await?;
        if let Some(summary) = found.into_iter().find(|found| found.id == *id) {
            return Ok(summary);
        }
    }
    Err(no_session(id))
}

pub(super) fn no_session(id: &str) -> Problem {
    Problem::not_found(format!("there is no session `{id}`")).next("GET /api/sessions lists yours")
}

/// Returns the limit of a list, or the default. Fails if the limit is out of bounds.
pub(super) fn limit(given: Option<u32>, default: u32, max: u32) -> Result<usize> {
    match given.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit as usize),
        limit => Err(Problem::bad_request(format!(
            "`limit` is {limit}; it must be from 1 to {max}"
        ))),
    }
}

fn cursor(last: &SessionSummary) -> String {
    format!("{}-{}", last.updated.0, last.id)
}

fn parse_cursor(cursor: &str) -> Result<(Timestamp, SessionId)> {
    let parsed = cursor.split_once('-').and_then(|(updated, id)| {
        let updated = updated.parse().ok()?;
        Some((Timestamp(updated), SessionId::from(id)))
    });
    parsed
        .ok_or_else(|| Problem::bad_request("`cursor` must be one that a page returned as `next`"))
}
