//! The caller, the program and its setup. The setup is changed on the command line; here it is only read.

use super::approvals::all;
use crate::Api;
use crate::access::{Caller, Reader};
use crate::context::Part;
use crate::json::Query;
use crate::model::{KnowledgeFilter, Me, ServerStatus, UsageFilter, UsageItem, UsageList};
use crate::problem::{Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lango_core::{SessionCatalog, Timestamp, TokenStore, UsageQuery};
use serde_json::Value;

/// The maximum number of sums to return.
const MAX_ROWS: usize = 5000;

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Returns the sender of the request, and the program that answers.
#[utoipa::path(get, path = "/api/me", tag = "setup", responses(
    (status = 200, body = Me), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn me(Reader(caller): Reader, State(api): State<Api>) -> Json<Me> {
    Json(Me {
        user: caller.user.to_string(),
        token: caller.name.to_string(),
        scopes: caller.scopes,
        folder: api.context.folder(),
        program: api.context.program(),
    })
}

/// Revokes the token of the request.
#[utoipa::path(post, path = "/api/sign-out", tag = "setup", responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn sign_out(Reader(caller): Reader, State(api): State<Api>) -> Result<StatusCode> {
    api.store.revoke_token(&caller.token).await?;
    Ok(StatusCode::NO_CONTENT)
}

macro_rules! described {
    ($($(#[$doc:meta])* $name:ident, $path:literal, $part:expr;)*) => {
        $($(#[$doc])*
        #[utoipa::path(get, path = $path, tag = "setup", responses(
            (status = 200, body = Object), (status = 401, body = Problem),
            (status = 403, body = Problem), (status = 503, body = Problem)))]
        pub(super) async fn $name(
            Reader(caller): Reader,
            State(api): State<Api>,
        ) -> Result<Json<Value>> {
            describe(&api, &caller, $part).await
        })*
    };
}

described! {
    /// Returns the tree of agents: the available ones with their tools, and the others with the reason.
    agents, "/api/agents", Part::Agents;
    /// Returns the models that can be chosen.
    models, "/api/models", Part::Models;
    /// Returns the tools, their owners and their risks.
    tools, "/api/tools", Part::Tools;
    /// Returns the MCP servers and their status.
    mcp, "/api/mcp", Part::Mcp;
    /// Returns what is remembered of conversations.
    memory, "/api/memory", Part::Memory;
    /// Runs the checks of `lango doctor`.
    doctor, "/api/doctor", Part::Doctor;
    /// Returns the configuration, with the origin of each value.
    config, "/api/config", Part::Config;
}

async fn describe(api: &Api, caller: &Caller, part: Part) -> Result<Json<Value>> {
    let described = api.context.describe(part, &caller.user).await;
    described.map(Json).map_err(Problem::unavailable)
}

/// Returns the collections and documents of the library, or the results of a search in it.
#[utoipa::path(get, path = "/api/knowledge", params(KnowledgeFilter), tag = "setup", responses(
    (status = 200, body = Object), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn knowledge(
    Reader(caller): Reader,
    State(api): State<Api>,
    Query(filter): Query<KnowledgeFilter>,
) -> Result<Json<Value>> {
    match filter.search.as_deref().map(str::trim) {
        None | Some("") => describe(&api, &caller, Part::Knowledge).await,
        Some(query) => {
            let found = api.context.search_knowledge(&caller.user, query).await;
            found.map(Json).map_err(Problem::unavailable)
        }
    }
}

/// Returns what model calls cost by day, agent and model.
#[utoipa::path(get, path = "/api/usage", params(UsageFilter), tag = "setup", responses(
    (status = 200, body = UsageList), (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn usage(
    Reader(caller): Reader,
    State(api): State<Api>,
    Query(filter): Query<UsageFilter>,
) -> Result<Json<UsageList>> {
    let days = super::sessions::limit(filter.days, 30, 365)? as u64;
    let today = api.clock.now().0 / DAY_MS;
    let since = Timestamp((today + 1).saturating_sub(days) * DAY_MS);
    let mut rows = Vec::new();
    for user in api.context.visible_users(&caller.user) {
        let query = UsageQuery {
            user,
            since,
            limit: MAX_ROWS,
        };
        rows.extend(SessionCatalog::usage(&*api.store, query).await?);
    }
    let is_complete = rows.len() < MAX_ROWS;
    rows.sort_by(|one, other| (one.day, &one.agent).cmp(&(other.day, &other.agent)));
    let rows = rows.into_iter().map(|row| {
        let day = date(row.day);
        UsageItem::of(row, day)
    });
    Ok(Json(UsageList {
        rows: rows.collect(),
        is_complete,
    }))
}

/// Returns what the server is doing.
#[utoipa::path(get, path = "/api/status", tag = "setup", responses(
    (status = 200, body = ServerStatus), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn status(
    Reader(caller): Reader,
    State(api): State<Api>,
) -> Result<Json<ServerStatus>> {
    let (waiting, _) = all(&api, &caller).await?;
    let (running, queued) = api.turns.counts();
    let program = api.context.program();
    Ok(Json(ServerStatus {
        version: program.version,
        started: api.started.0,
        running,
        queued,
        pending_approvals: waiting.len(),
        subscribers: api.feeds.subscribers(),
        store: program.store,
    }))
}

/// Returns a day as `YYYY-MM-DD`, from the number of days since 1970-01-01.
fn date(day: u64) -> String {
    let seconds = i64::try_from(day).unwrap_or(0).saturating_mul(86_400);
    let date = chrono::DateTime::from_timestamp(seconds, 0);
    date.map_or(String::new(), |date| date.format("%Y-%m-%d").to_string())
}
