//! The JSON types of the API. Events, approval requests and usage have the same form as in the log.

use lango_core::{Event, Grant, PendingApproval, SessionStatus, SessionSummary, UsageRow, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct SessionItem {
    /// Its id.
    pub id: String,
    /// The user who owns the session.
    pub user: String,
    /// Its title: the start of the first message, or the title that the user set.
    pub title: String,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// When its first turn started or its last turn ended, whichever is later.
    pub updated: u64,
    /// The number of its turns.
    pub turns: u64,
    /// The `seq` of its last event.
    pub events: u64,
    /// The status of its last turn.
    pub status: Status,
    /// Who sent the first message: `person`, `pipe` or `program`.
    pub origin: Option<String>,
}

/// The status of a session's last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The turn is running.
    Running,
    /// The turn waits for an approval.
    Waiting,
    /// The turn ended without an answer.
    Failed,
    /// The turn has ended, or there is none.
    Idle,
}

impl From<SessionStatus> for Status {
    fn from(status: SessionStatus) -> Self {
        match status {
            SessionStatus::Running => Self::Running,
            SessionStatus::Waiting => Self::Waiting,
            SessionStatus::Failed => Self::Failed,
            SessionStatus::Idle => Self::Idle,
        }
    }
}

impl From<Status> for SessionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Running => Self::Running,
            Status::Waiting => Self::Waiting,
            Status::Failed => Self::Failed,
            Status::Idle => Self::Idle,
        }
    }
}

impl From<SessionSummary> for SessionItem {
    fn from(summary: SessionSummary) -> Self {
        Self {
            id: summary.id.to_string(),
            user: summary.user.to_string(),
            title: summary.title,
            created: summary.created.0,
            updated: summary.updated.0,
            turns: summary.turns,
            events: summary.events,
            status: summary.status.into(),
            origin: summary.origin,
        }
    }
}

/// A page of a list of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionPage {
    /// The sessions, the most recently used first.
    pub sessions: Vec<SessionItem>,
    /// The cursor of the next page; none if this is the last page.
    pub next: Option<String>,
}

/// Which sessions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionFilter {
    /// The maximum number of sessions to return.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<u32>,
    /// The cursor of the page to return.
    #[param(pattern = r"^[0-9]{1,19}-")]
    pub cursor: Option<String>,
    /// A part of the title, or an id.
    pub search: Option<String>,
    /// Only sessions with this status.
    #[param(inline)]
    pub status: Option<Status>,
}

/// The new title of a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rename {
    /// The title, in one line of at most 200 characters.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub title: String,
}

/// Where to fork a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkRequest {
    /// The last turn to copy, which must have ended.
    pub turn: String,
}

/// Which events to read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventFilter {
    /// Only events after this `seq`, starting with the first of them.
    #[param(minimum = 0, format = "uint64")]
    pub after: Option<u64>,
    /// Only events before this `seq`, ending with the last of them.
    #[param(minimum = 0, format = "uint64")]
    pub before: Option<u64>,
    /// The maximum number of events to return.
    #[param(minimum = 1, maximum = 1000, default = 500)]
    pub limit: Option<u32>,
}

/// A page of a session's events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventPage {
    /// The events in order, as stored.
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Event>,
    /// The `seq` of the last event in the log.
    pub last: u64,
}

/// The events of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnEvents {
    /// The events in order, as stored.
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Event>,
}

/// What to stream.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamFilter {
    /// A session whose events are also streamed.
    pub session: Option<String>,
    /// Only events of that session after this `seq`. The header `Last-Event-ID` takes precedence.
    #[param(minimum = 0, format = "uint64")]
    pub after: Option<u64>,
}

/// A turn to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTurnRequest {
    /// The session. If it is missing, a new session is created.
    #[serde(default)]
    pub session: Option<String>,
    /// The message.
    #[schema(min_length = 1, pattern = r"\S")]
    pub text: String,
    /// The files of the message.
    #[serde(default)]
    pub attachments: Vec<NewAttachment>,
}

/// A file of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAttachment {
    /// Its name.
    pub name: String,
    /// Its media type. This is only a hint: the bytes determine the actual type.
    #[serde(default)]
    #[allow(dead_code, reason = "clients send it, and the bytes decide")]
    pub media_type: Option<String>,
    /// Its bytes in base64.
    #[schema(content_encoding = "base64")]
    pub data: String,
}

/// A turn that was started.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StartedTurn {
    /// Its session.
    pub session: String,
    /// Its id.
    pub turn: String,
    /// Its status.
    pub status: TurnStatus,
}

/// The status of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TurnStatus {
    /// Its message is stored, and it runs.
    Running,
    /// It waits for another turn of the session, and nothing of it is stored yet.
    Queued,
    /// It waits for an approval.
    Waiting,
    /// It has ended.
    Finished,
}

/// Requests that wait for an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PendingList {
    /// The first 100 requests, the oldest first.
    pub pending: Vec<PendingItem>,
    /// The total number of requests.
    pub count: usize,
}

impl PendingList {
    /// The maximum number of requests in a list.
    const MAX: usize = 100;

    pub(crate) fn of(mut waiting: Vec<(UserId, PendingApproval)>) -> Self {
        waiting.sort_by_key(|(_, waiting)| waiting.asked);
        let count = waiting.len();
        let pending = waiting.into_iter().take(Self::MAX);
        Self {
            pending: pending
                .map(|(user, waiting)| PendingItem {
                    user: user.to_string(),
                    waiting,
                })
                .collect(),
            count,
        }
    }
}

/// A request that waits for an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PendingItem {
    /// The user who owns the session.
    pub user: String,
    /// The request as in the log, with its session, its turn and the time when it was made.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub waiting: PendingApproval,
}

/// A request, and what its call would change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PendingDetails {
    /// The request.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub pending: PendingItem,
    /// Whether it can be answered here, because it was made in the folder of this server.
    pub is_here: bool,
    /// What the call would change, such as a diff.
    pub preview: Option<String>,
}

/// The requests that wait for an answer, and the grants.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    /// Requests that wait for an answer, the oldest first.
    pub pending: Vec<PendingItem>,
    /// The total number of requests that wait.
    pub count: usize,
    /// Answers that apply to later calls.
    pub grants: Vec<GrantItem>,
}

/// An answer that applies to later calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantItem {
    /// The grant.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub grant: Grant,
    /// Why the grant no longer has any effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in_force: Option<String>,
}

/// An answer to a request.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerRequest {
    /// The answer.
    pub answer: AnswerWord,
    /// The pattern of calls that `session` and `always` allow. If it is missing, the pattern of the request applies.
    #[serde(default)]
    pub pattern: Option<String>,
    /// With `no`, what the agent is told. With `happened`, what became of the call.
    #[serde(default)]
    pub reason: Option<String>,
}

/// An answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerWord {
    /// This call may run.
    Once,
    /// Calls that match the pattern may run in this session.
    Session,
    /// Calls that match the pattern may run in every session of this folder.
    Always,
    /// The call may not run.
    No,
    /// A call with an unknown outcome runs again, or the turn continues.
    Retry,
    /// A call with an unknown outcome is left as it is, or the turn ends.
    Skip,
    /// The user knows what became of the call.
    Happened,
}

/// A model call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelCallDetails {
    /// The `seq` of the reply.
    pub seq: u64,
    /// The agent that called.
    pub agent: String,
    /// The model.
    pub model: Option<String>,
    /// The `seq` of the agent's previous reply in this session, if there is one.
    pub previous: Option<u64>,
    /// The request to the model, recomputed from the log.
    #[schema(value_type = Option<Object>)]
    pub request: Option<Value>,
    /// Why the request cannot be recomputed.
    pub unavailable: Option<String>,
    /// The event of the reply.
    #[schema(value_type = Object)]
    pub response: Event,
}

/// The sums of usage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageList {
    /// The sums by day, agent and model.
    pub rows: Vec<UsageItem>,
    /// Whether the sums cover the whole requested period.
    pub is_complete: bool,
}

/// The usage of one agent with one model on one day.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageItem {
    /// The day in UTC, such as `2026-11-17`.
    pub day: String,
    /// The agent.
    pub agent: String,
    /// The model.
    pub model: String,
    /// The number of model calls.
    pub calls: u64,
    /// The tokens sent, including cached ones.
    pub input_tokens: u64,
    /// The sent tokens that the provider had in its cache.
    pub cached_tokens: u64,
    /// The tokens received.
    pub output_tokens: u64,
    /// The cost in millionths of a US dollar, if all prices are known.
    pub cost_micros: Option<u64>,
}

impl UsageItem {
    pub(crate) fn of(row: UsageRow, day: String) -> Self {
        Self {
            day,
            agent: row.agent.to_string(),
            model: row.model.to_string(),
            calls: row.calls,
            input_tokens: row.input_tokens,
            cached_tokens: row.cached_tokens,
            output_tokens: row.output_tokens,
            cost_micros: row.cost_micros,
        }
    }
}

/// Which days to sum.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageFilter {
    /// The number of days to sum, up to today.
    #[param(minimum = 1, maximum = 365, default = 30)]
    pub days: Option<u32>,
}

/// What to search the library for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct KnowledgeFilter {
    /// Words or a question. If it is missing, the collections and documents are listed.
    pub search: Option<String>,
}

/// The sender of the request, and the program that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Me {
    /// The user that the token acts as.
    pub user: String,
    /// The name of the token.
    pub token: String,
    /// What the token allows.
    #[schema(value_type = Vec<String>)]
    pub scopes: lango_core::Scopes,
    /// The folder that the agents work in.
    pub folder: String,
    /// The program.
    #[serde(flatten)]
    pub program: crate::context::Program,
}

/// What the server is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerStatus {
    /// The version of lango.
    pub version: String,
    /// When the server started, in milliseconds since 1970.
    pub started: u64,
    /// The number of running turns of the API.
    pub running: usize,
    /// The number of queued turns of the API.
    pub queued: usize,
    /// The number of requests that wait for an answer from this user.
    pub pending_approvals: usize,
    /// The number of open event streams.
    pub subscribers: usize,
    /// The database: `sqlite` or `postgres`.
    pub store: String,
}
