//! The storage traits: sessions, their append-only logs, and the bounded history that a turn needs.

use crate::{
    AgentName, ApprovalId, Attachment, BoxFuture, BoxLease, BusyPolicy, Event, Grant,
    MessageOrigin, PendingApproval, RemoteThread, SessionId, Text, Timestamp, Trust, TurnId,
    UserId,
};
use serde::{Deserialize, Serialize};

/// The logs of sessions, as turns use them.
///
/// A batch is stored atomically and in order. When the future resolves, the batch survives a crash of the process. If
/// one of its events [must be durable](crate::EventBody::must_be_durable), the batch and everything before it also
/// survive a power failure. The cost of a read does not grow with the length of the session.
pub trait SessionStore: Send + Sync {
    /// Creates an empty session. Fails with [`StoreError::Exists`] if the id is taken.
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Reads what a new turn needs: the end of the log and the exchanges of the history.
    fn read_head(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>>;

    /// Acquires the lease of a session, which need not exist yet. If the session has an owner, in this process or
    /// another, `busy_policy` decides whether to wait in order of arrival or to fail with [`StoreError::Busy`].
    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>>;

    /// Appends events to one session. Fails with [`StoreError::Conflict`] if the first `seq` does not follow the end of
    /// the log, and with [`StoreError::LeaseLost`] if another replica owns the session.
    fn append(&self, events: EventBatch) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Reads events of a session, in order.
    fn read(
        &self,
        session: &SessionId,
        page: EventRange,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>>;

    /// Reads the events of one turn, in order. Returns an empty list if the turn does not exist.
    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>>;

    /// Returns the `seq` of the event that undid a turn; of the first one if there are several.
    fn undone_seq(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>>;

    /// Reads the exchanges that an earlier turn saw as its history, oldest first. Fails if the turn does not exist.
    fn history_of(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Exchange>, StoreError>>;

    /// Reads the grants that apply to calls in this session: those given in it, and those that its user gave for this
    /// folder. Leaves out revoked ones.
    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>>;

    /// Reads the session's conversation with a remote agent. The result names a task only while that task is
    /// unfinished.
    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>>;
}

/// The catalog of sessions and approvals, as users see it.
pub trait SessionCatalog: Send + Sync {
    /// Lists a user's sessions, most recently used first.
    fn list(
        &self,
        user: &UserId,
        query: SessionQuery,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Changes the title of a user's session. Fails with [`StoreError::NotFound`] if the user has no session with this
    /// id.
    fn rename(
        &self,
        user: &UserId,
        session: &SessionId,
        title: &str,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Searches the questions and answers of a user's sessions, those of the most recently used session first. There is
    /// no index of words: the search reads every message of the sessions that the query includes.
    fn search_messages(
        &self,
        user: &UserId,
        query: MessageQuery,
    ) -> BoxFuture<'_, Result<MessageHits, StoreError>>;

    /// Sums the usage of a user's model calls by day, agent and model, sorted in that order. Reads only sessions that
    /// were used since the start of the period.
    fn usage(&self, query: UsageQuery) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>>;

    /// Lists a user's sessions whose id starts with `prefix`, by id.
    fn find(
        &self,
        user: &UserId,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Lists a user's pending requests and grants, oldest first.
    fn approvals(&self, user: &UserId) -> BoxFuture<'_, Result<Approvals, StoreError>>;

    /// Lists unfinished turns of all users, including those that wait for an approval, by session. Skips sessions that
    /// another replica is known to own.
    fn unfinished(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<UnfinishedTurn>, StoreError>>;

    /// Revokes a user's grant. Fails with [`StoreError::NotGranted`] if it does not exist.
    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// A filter for listing a user's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionQuery {
    /// Only sessions whose title contains this text, ignoring case, or whose id equals it.
    pub search: Option<String>,
    /// Only sessions with this status.
    pub status: Option<SessionStatus>,
    /// Only sessions whose last turn ran in this folder, among the [`SessionQuery::FOLDER_SESSIONS`] most recently used.
    pub folder: Option<String>,
    /// Only sessions that come after this one in the list, given by its update time and id.
    pub after: Option<(Timestamp, SessionId)>,
    /// The maximum number of results.
    pub limit: usize,
}

/// A search for a text in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageQuery {
    /// The text that a message contains, ignoring case. SQLite ignores the case of ASCII letters only.
    pub text: String,
    /// How many of the user's sessions to search, the most recently used first.
    pub sessions: usize,
    /// The maximum number of results.
    pub limit: usize,
}

/// A message that contains the text of a [`MessageQuery`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageHit {
    pub session: SessionId,
    /// The title of the session.
    pub title: String,
    /// The `seq` of the message.
    pub seq: u64,
    pub author: AgentName,
    pub time: Timestamp,
    /// The whole message.
    pub text: String,
}

/// The result of a [`MessageQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHits {
    pub messages: Vec<MessageHit>,
    /// Whether the user has more sessions than the query includes.
    pub skipped_sessions: bool,
}

impl SessionQuery {
    /// How many sessions a query for a folder considers. It reads the last question of each.
    pub const FOLDER_SESSIONS: u64 = 1_000;

    /// Selects the most recently used sessions.
    pub fn recent(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// The status of a session, derived from its last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// The last turn has no outcome yet: it is running, or was interrupted.
    Running,
    /// The last turn waits for an approval.
    Waiting,
    /// The last turn ended without an answer: it failed, hit a limit, or was interrupted.
    Failed,
    /// The last turn was answered or cancelled, or the session has no turn.
    Idle,
}

/// A query for the usage of a user since a point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    pub user: UserId,
    pub since: Timestamp,
    /// The maximum number of rows.
    pub limit: usize,
}

/// The usage of one agent with one model on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// Days since 1970-01-01, in UTC.
    pub day: u64,
    pub agent: AgentName,
    pub model: Text,
    /// The number of model calls.
    pub calls: u64,
    /// Tokens sent, including cached ones.
    pub input_tokens: u64,
    /// Tokens sent that the provider read from its cache.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// The cost in millionths of a US dollar, if the price of every call is known.
    pub cost_micros: Option<u64>,
}

/// A user's pending requests and grants.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Approvals {
    /// Requests without an answer.
    pub waiting: Vec<PendingApproval>,
    /// Answers that apply to later calls.
    pub granted: Vec<Grant>,
}

/// Events that are stored atomically, then shared with subscribers.
pub type EventBatch = std::sync::Arc<[Event]>;

/// A session to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSession {
    pub id: SessionId,
    pub user: UserId,
    pub created: Timestamp,
}

/// What a new turn needs to know about its session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHead {
    pub user: UserId,
    /// The `seq` of the next event.
    pub next_seq: u64,
    /// The number of turns, including an unfinished one.
    pub turns: u64,
    /// The exchanges of the finished turns from [`SessionHead::history_start`] on, oldest first.
    pub exchanges: Vec<Exchange>,
    /// The first `seq` of the last turn, if that turn is unfinished.
    pub unfinished: Option<u64>,
}

impl SessionHead {
    /// The number of exchanges that leave the history at a time.
    pub const BLOCK: u64 = 20;

    /// Returns the index, from 0, of the first turn in the history of a session with this many turns.
    ///
    /// The index advances in blocks, so model requests start with the same bytes for many turns, which providers cache.
    pub fn history_start(turns: u64) -> u64 {
        (turns / Self::BLOCK).saturating_sub(1) * Self::BLOCK
    }
}

/// An earlier turn as the history shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    pub turn: TurnId,
    /// The user's message.
    pub question: Text,
    /// Where the message came from, if the log records it.
    pub origin: Option<MessageOrigin>,
    pub attachments: Vec<Attachment>,
    /// The answer; `None` if the turn ended without one.
    pub answer: Option<ExchangeAnswer>,
    /// What the user undid of the turn afterwards.
    pub undone: Option<UndoneChanges>,
}

impl Exchange {
    /// Returns the combined trust label of question, answer and undone paths.
    pub fn trust(&self) -> Trust {
        let answer = self.answer.as_ref();
        let answer = answer.map_or(Trust::Trusted, |answer| answer.trust);
        let undone = self.undone.as_ref();
        let undone = undone.map_or(Trust::Trusted, |undone| undone.trust);
        self.question_trust().and(answer).and(undone)
    }

    /// Returns the trust label of the question, including its files.
    pub fn question_trust(&self) -> Trust {
        if !self.attachments.is_empty() {
            return Trust::Untrusted;
        }
        self.origin.map_or(Trust::Untrusted, MessageOrigin::trust)
    }

    /// Returns the question without the part that came through a pipe.
    pub fn typed_part(&self) -> &str {
        match self.origin {
            Some(MessageOrigin::Pipe { typed_bytes }) => {
                &self.question[..self.question.floor_char_boundary(typed_bytes)]
            }
            Some(MessageOrigin::Person | MessageOrigin::Program) | None => &self.question,
        }
    }
}

/// The changes of an earlier turn that the user undid.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct UndoneChanges {
    /// The files and folders that are as they were before the turn, relative to the workspace.
    #[serde(default)]
    pub restored: Vec<Text>,
    /// The trust label of the paths.
    #[serde(default)]
    pub trust: Trust,
}

/// The answer of an earlier turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeAnswer {
    pub author: AgentName,
    pub text: Text,
    /// The delegated task, if a sub-agent answered the user directly.
    pub task: Option<Text>,
    /// Whether a remote agent wrote the answer.
    pub is_remote: bool,
    /// Whether lango wrote the answer because no agent did.
    pub is_notice: bool,
    /// The trust label of the author's context.
    pub trust: Trust,
}

/// A range of events to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRange {
    pub from: u64,
    /// The maximum number of events.
    pub limit: usize,
}

/// A session as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    pub id: SessionId,
    pub user: UserId,
    /// The start of the first message, or the title that the user set.
    pub title: String,
    pub created: Timestamp,
    /// When the first turn started or the last turn ended, whichever is later.
    pub updated: Timestamp,
    /// The number of turns.
    pub turns: u64,
    /// The `seq` of the last event.
    pub events: u64,
    pub status: SessionStatus,
    /// The origin of the first message: `person`, `pipe` or `program`; `None` if the log does not record it.
    pub origin: Option<String>,
    /// The folder in which the agents of the last turn worked, if the log records it.
    pub folder: Option<String>,
}

/// A turn without an outcome: it is running, waits for an approval, or was interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedTurn {
    pub session: SessionId,
    pub user: UserId,
    pub turn: TurnId,
    pub is_waiting: bool,
}

/// A failed storage operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("there is no session `{id}`")]
    NotFound { id: SessionId },
    /// The grant does not exist or was revoked.
    #[error("there is no grant `{id}`")]
    NotGranted { id: ApprovalId },
    #[error("session `{id}` already exists")]
    Exists { id: SessionId },
    /// Another process appended to the session.
    #[error("session `{id}` was continued by another process; open it again")]
    Conflict { id: SessionId },
    /// Another turn owns the session.
    #[error("session `{id}` is busy with another turn{}", busy_hint(.waiting))]
    Busy {
        id: SessionId,
        /// The number of waiters, if the queue is full.
        waiting: Option<usize>,
    },
    /// The lease expired because the database could not be reached in time. Another replica may own the session now.
    #[error(
        "lost the lease of session `{id}`; another server may continue the turn. Open the session again to see the result"
    )]
    LeaseLost { id: SessionId },
    #[error("the database `{place}` does not answer: {detail}")]
    Unreachable {
        /// The address of the database, without secrets.
        place: String,
        /// The error of the operating system or the database.
        detail: String,
    },
    /// The file or database exists but was not created by lango.
    #[error("`{place}` is not a lango database: {detail}")]
    Foreign {
        /// The file, or the address of the server without secrets.
        place: String,
        detail: String,
    },
    /// A newer version of lango wrote the database.
    #[error("`{place}` was written by a newer lango (schema {found}, this one knows {known})")]
    TooNew {
        /// The file, or the address of the server without secrets.
        place: String,
        /// The schema version of the database.
        found: u32,
        /// The newest schema version that this lango knows.
        known: u32,
    },
    /// The database cannot be opened or read.
    #[error("cannot open the database `{place}`: {detail}")]
    Unreadable {
        /// The file, or the address of the server without secrets.
        place: String,
        /// The error of the operating system or the database.
        detail: String,
    },
    #[error("the database `{place}` cannot be written: {detail}")]
    ReadOnly {
        /// The file, or the address of the server without secrets.
        place: String,
        /// The error of the operating system or the database.
        detail: String,
    },
    /// The disk is full.
    #[error("no space left for the database `{place}`; free some space and try again")]
    Full {
        /// The file, or the address of the server without secrets.
        place: String,
    },
    /// A stored row is corrupt.
    #[error("session `{id}` is damaged at event {seq}: {detail}")]
    Damaged {
        id: SessionId,
        seq: u64,
        detail: String,
    },
    #[error("the database failed: {detail}")]
    Failed { detail: String },
}

fn busy_hint(waiting: &Option<usize>) -> String {
    match waiting {
        Some(waiting) => format!(" and {waiting} more are queued; try again later"),
        None => "; wait until it ends, or cancel it".to_owned(),
    }
}
