//! Traits of storage: sessions, their append-only logs, and the bounded history that a turn needs.

use crate::{
    AgentName, ApprovalId, Attachment, BoxFuture, BoxLease, BusyPolicy, Event, Grant,
    MessageOrigin, RemoteThread, SessionId, Text, Timestamp, Trust, TurnId, UserId, Waiting,
};
use serde::Serialize;

/// The logs of sessions, as turns use them.
///
/// A batch is stored whole or not at all, and in its order. When the future resolves it outlives the process; if one of
/// its events [is binding](crate::EventBody::is_binding), it and all before it outlive the machine. What is read does not
/// grow with the length of the session.
pub trait SessionStore: Send + Sync {
    /// Creates an empty session. Fails with [`StoreError::Exists`] if the id is taken.
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Reads what a new turn needs: where the log ends, and the exchanges of the history.
    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>>;

    /// Acquires the lease of a session, which need not exist yet. If it has an owner, in this process or another, the policy
    /// decides: wait in the order of arrival, or fail with [`StoreError::Busy`].
    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>>;

    /// Appends events of one session. Fails with [`StoreError::Conflict`] if the first one's `seq` does not follow the end of
    /// the log, and with [`StoreError::Lost`] if another replica owns the session.
    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Reads events of a session, in order.
    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>>;

    /// Reads the events of one turn, in order; none if there is no such turn.
    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>>;

    /// Reads the exchanges that a turn of the past was shown as its history, oldest first. Fails if there is no such turn.
    fn history_of(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Exchange>, StoreError>>;

    /// Reads the grants that apply to later calls: those given in this session, and those its user gave for this folder.
    /// Revoked ones are not among them.
    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>>;

    /// Reads the state of a session's conversation with a remote agent. It names the remote task only while that is not over.
    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>>;
}

/// The list of sessions and approvals, as users see it.
pub trait SessionCatalog: Send + Sync {
    /// Lists a user's sessions, the most recently used first.
    fn list(
        &self,
        user: &UserId,
        query: SessionQuery,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Changes the title of a user's session. Fails with [`StoreError::NotFound`] if the user has no such session.
    fn rename(
        &self,
        user: &UserId,
        session: &SessionId,
        title: &str,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Sums the usage of a user's model calls by day, agent and model, in that order. Only sessions that were used since the
    /// start are read.
    fn usage(&self, query: UsageQuery) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>>;

    /// Lists a user's sessions whose id begins with `prefix`, by id.
    fn find(
        &self,
        user: &UserId,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Lists a user's pending requests and grants, the oldest first.
    fn approvals(&self, user: &UserId) -> BoxFuture<'_, Result<Approvals, StoreError>>;

    /// Lists unfinished turns of all users, those that wait for an approval included, by session. Skips sessions that another
    /// replica is known to own.
    fn unfinished(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<UnfinishedTurn>, StoreError>>;

    /// Revokes a user's grant. Fails with [`StoreError::NotGranted`] if there is none.
    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Which of a user's sessions to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionQuery {
    /// Only sessions whose title contains this text, in upper or lower case, or whose id is this text.
    pub search: Option<String>,
    /// Only sessions with this status.
    pub status: Option<SessionStatus>,
    /// Only sessions after this one in the list: when it was updated, and its id.
    pub after: Option<(Timestamp, SessionId)>,
    /// How many at most.
    pub limit: usize,
}

impl SessionQuery {
    /// Selects the most recently used sessions.
    pub fn recent(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// How a session's last turn is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// It has no outcome yet: it runs, or was interrupted.
    Running,
    /// It waits for an approval.
    Waiting,
    /// It ended without an answer: it failed, hit a limit, or was interrupted.
    Failed,
    /// It ended with an answer or was cancelled, or there is none.
    Idle,
}

/// Whose usage to sum, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    /// The user.
    pub user: UserId,
    /// The start.
    pub since: Timestamp,
    /// How many sums to return at most.
    pub limit: usize,
}

/// The usage of one agent with one model on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// The number of days since 1970-01-01, in UTC.
    pub day: u64,
    /// The agent.
    pub agent: AgentName,
    /// The model.
    pub model: Text,
    /// The number of model calls.
    pub calls: u64,
    /// The tokens sent, those of a cache included.
    pub input_tokens: u64,
    /// The tokens sent that the provider had in its cache.
    pub cached_tokens: u64,
    /// The tokens received.
    pub output_tokens: u64,
    /// The cost in millionths of a US dollar, if the price of every call is known.
    pub cost_micros: Option<u64>,
}

/// A user's pending requests and grants.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Approvals {
    /// Requests without an answer.
    pub waiting: Vec<Waiting>,
    /// Answers that apply to later calls.
    pub granted: Vec<Grant>,
}

/// Events that are stored together, shared with their subscribers afterwards.
pub type Batch = std::sync::Arc<[Event]>;

/// A session to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// When it was made.
    pub created: Timestamp,
}

/// What a new turn needs to know of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHead {
    /// Whose it is.
    pub user: UserId,
    /// The `seq` of the next event.
    pub next_seq: u64,
    /// How many turns there are, an unfinished one included.
    pub turns: u64,
    /// The exchanges from [`SessionHead::history_start`] of the finished turns on, oldest first.
    pub exchanges: Vec<Exchange>,
    /// The first `seq` of the last turn, if that turn has not finished.
    pub unfinished: Option<u64>,
}

impl SessionHead {
    /// Exchanges are dropped from the history in blocks of this many.
    pub const BLOCK: u64 = 20;

    /// The first turn (counted from 0) in the history of a session with this many turns.
    ///
    /// It moves in blocks, so that requests to a model begin with the same bytes for many turns, which providers cache.
    pub fn history_start(turns: u64) -> u64 {
        (turns / Self::BLOCK).saturating_sub(1) * Self::BLOCK
    }
}

/// One earlier turn as a later one sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The turn.
    pub turn: TurnId,
    /// What the person said.
    pub question: Text,
    /// Where that came from, if the log says so.
    pub origin: Option<MessageOrigin>,
    /// The files that belong to it.
    pub attachments: Vec<Attachment>,
    /// What was answered; none if the turn ended without a word.
    pub answer: Option<ExchangeAnswer>,
}

impl Exchange {
    /// Returns the trust label of question and answer together.
    pub fn trust(&self) -> Trust {
        let answer = self.answer.as_ref();
        let answer = answer.map_or(Trust::Trusted, |answer| answer.trust);
        self.question_trust().and(answer)
    }

    /// Returns the trust label of the whole question, its files included.
    pub fn question_trust(&self) -> Trust {
        if !self.attachments.is_empty() {
            return Trust::Untrusted;
        }
        self.origin.map_or(Trust::Untrusted, MessageOrigin::trust)
    }

    /// Returns the part of the question that did not come through a pipe.
    pub fn typed_part(&self) -> &str {
        match self.origin {
            Some(MessageOrigin::Pipe { typed_bytes }) => {
                &self.question[..self.question.floor_char_boundary(typed_bytes)]
            }
            Some(MessageOrigin::Person | MessageOrigin::Program) | None => &self.question,
        }
    }
}

/// What was answered in an earlier turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeAnswer {
    /// Who answered.
    pub author: AgentName,
    /// The words.
    pub text: Text,
    /// The task, if a sub-agent answered the person itself.
    pub task: Option<Text>,
    /// Whether the words came from a remote agent.
    pub is_remote: bool,
    /// Whether lango itself wrote them, because no agent answered.
    pub is_notice: bool,
    /// The trust label of its author's context.
    pub trust: Trust,
}

/// Which events to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The first `seq`.
    pub from: u64,
    /// How many at most.
    pub limit: usize,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// The beginning of the first thing that was said, or what the user renamed it to.
    pub title: String,
    /// When it was made.
    pub created: Timestamp,
    /// When its first turn began, or its last one ended.
    pub updated: Timestamp,
    /// How many turns there are.
    pub turns: u64,
    /// The `seq` of the last event.
    pub events: u64,
    /// How its last turn is doing.
    pub status: SessionStatus,
    /// Who sent the first message: `person`, `pipe` or `program`; none in logs that do not say it.
    pub origin: Option<String>,
}

/// A turn without an outcome: it runs, waits for an approval, or was interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// The turn.
    pub turn: TurnId,
    /// Whether it waits for an approval.
    pub is_waiting: bool,
}

/// Why storage could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session `{id}`")]
    NotFound {
        /// What was asked for.
        id: SessionId,
    },
    /// There is no such grant, or it was revoked.
    #[error("there is no granted approval `{id}`")]
    NotGranted {
        /// What was asked for.
        id: ApprovalId,
    },
    /// The id is taken.
    #[error("session `{id}` exists already")]
    Exists {
        /// The id.
        id: SessionId,
    },
    /// Another process appended to the session.
    #[error("session `{id}` was continued by another process; open it again")]
    Conflict {
        /// The session.
        id: SessionId,
    },
    /// Another turn owns the session.
    #[error("session `{id}` is busy with another turn{}", in_line(.waiting))]
    Busy {
        /// The session.
        id: SessionId,
        /// How many wait for it already, if that is why.
        waiting: Option<usize>,
    },
    /// The lease expired because the database could not be reached in time; another replica may own the session now.
    #[error(
        "the lease of session `{id}` was lost; another server may continue the turn. Open the session again to see how it went"
    )]
    Lost {
        /// The session.
        id: SessionId,
    },
    /// The database does not answer.
    #[error("the database `{place}` does not answer: {detail}")]
    Unreachable {
        /// Where it should be, without secrets.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// The file is there and is not ours.
    #[error("`{place}` is not a lango database: {detail}")]
    Foreign {
        /// The file, or the address of the server without secrets.
        place: String,
        /// How we know.
        detail: String,
    },
    /// A newer lango wrote it.
    #[error("`{place}` was written by a newer lango (schema {found}, this one knows {known})")]
    TooNew {
        /// The file, or the address of the server without secrets.
        place: String,
        /// The schema that is there.
        found: u32,
        /// The newest schema we know.
        known: u32,
    },
    /// It cannot be opened or read.
    #[error("cannot open the database `{place}`: {detail}")]
    Unreadable {
        /// The file, or the address of the server without secrets.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// It cannot be written.
    #[error("the database `{place}` cannot be written: {detail}")]
    ReadOnly {
        /// The file, or the address of the server without secrets.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// There is no room left.
    #[error("no room left for the database `{place}`; free some space and try again")]
    Full {
        /// The file, or the address of the server without secrets.
        place: String,
    },
    /// A row is not what was once written.
    #[error("session `{id}` is damaged at event {seq}: {detail}")]
    Damaged {
        /// The session.
        id: SessionId,
        /// The event.
        seq: u64,
        /// What is wrong with it.
        detail: String,
    },
    /// Anything else.
    #[error("the database failed: {detail}")]
    Failed {
        /// What it said.
        detail: String,
    },
}

fn in_line(waiting: &Option<usize>) -> String {
    match waiting {
        Some(waiting) => format!(", and {waiting} wait for it already; try again later"),
        None => "; wait until it ends, or cancel it".to_owned(),
    }
}
