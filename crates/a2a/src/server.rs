//! An agent here, for clients elsewhere: the A2A protocol 1.0 over JSON-RPC and HTTP+JSON.
//!
//! [`AgentServer`] is made of an [`AgentBehind`], which does the work, and a [`TaskStore`](lango_core::TaskStore), which keeps
//! the tasks. Its [router](AgentServer::router) is an ordinary axum router: put the layer that checks tokens around it, and let
//! that leave an `Extension<UserId>` in each request.

mod behind;
mod report;
mod settings;

pub use behind::{AgentBehind, Cancelled, Job, StopReason, Unfit};
pub use report::{Piece, Report, ReportError, Words};
pub use settings::{Access, ServerLimits, ServerSettings};

use a2a::AgentCard;
use axum::Router;
use lango_core::{Clock, StoreError, TaskStore, UserId};
use std::sync::Arc;
use std::time::Duration;

/// An agent as the protocol serves it. Clones are the same server.
#[derive(Clone)]
pub struct AgentServer {}

/// One route of the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with `{name}` for what varies.
    pub path: &'static str,
    /// Whether it is open to everybody. Only the card is.
    pub is_public: bool,
}

/// Why a task was not resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// There is none under this id for this user.
    #[error("there is no task `{id}`")]
    NotFound {
        /// The task.
        id: String,
    },
    /// It has ended, or somebody is at work on it.
    #[error("task `{id}` does not wait for anything")]
    NotWaiting {
        /// The task.
        id: String,
    },
    /// The server is full, or stops.
    #[error("no new work is taken at the moment; try again later")]
    Busy,
    /// The store failed.
    #[error("task `{id}` could not be read or kept")]
    Store {
        /// The task.
        id: String,
        /// Why.
        #[source]
        source: StoreError,
    },
}

impl AgentServer {
    /// A server for this agent. Nothing runs before a request comes, or [`recover`](Self::recover) is called.
    pub fn new(
        _behind: Arc<dyn AgentBehind>,
        _tasks: Arc<dyn TaskStore>,
        _clock: Arc<dyn Clock>,
        _settings: ServerSettings,
    ) -> Self {
        todo!()
    }

    /// What the server says of itself.
    pub fn card(&self) -> &AgentCard {
        todo!()
    }

    /// The card, JSON-RPC and HTTP+JSON as one router.
    pub fn router(&self) -> Router {
        todo!()
    }

    /// Every route of the router.
    pub fn routes() -> &'static [Route] {
        todo!()
    }

    /// Sees to the tasks that were at work when the server last stopped: what the agent says of them, or else failed. To be
    /// called once, before requests are served. Returns how many there were.
    pub async fn recover(&self) -> Result<usize, StoreError> {
        todo!()
    }

    /// Goes on with a task that waits, without a message from the client: what it waited for was settled elsewhere. Streams
    /// that are open on it see what follows.
    pub async fn resume(&self, _user: &UserId, _task: &str) -> Result<(), ResumeError> {
        todo!()
    }

    /// Takes no new work, gives what runs this long, then tells it to stop, and closes all streams.
    pub async fn stop(&self, _grace: Duration) {
        todo!()
    }
}

/// How an agent tells the server about its job. Clones report on the same job.
#[derive(Debug, Clone)]
pub struct Reports {}

impl Reports {
    /// Work goes on.
    pub async fn working(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Working(words.into())).await
    }

    /// There is a result, or a piece of one.
    pub async fn artifact(&self, piece: Piece) -> Result<(), ReportError> {
        self.tell(Report::Artifact(piece)).await
    }

    /// The client must say something before it can go on.
    pub async fn ask(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::InputRequired(words.into())).await
    }

    /// Somebody must allow something before it can go on.
    pub async fn needs_authorisation(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::AuthRequired(words.into())).await
    }

    /// Done.
    pub async fn completed(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Completed(words.into())).await
    }

    /// It did not work.
    pub async fn failed(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Failed(words.into())).await
    }

    /// The agent will not do it.
    pub async fn rejected(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Rejected(words.into())).await
    }

    /// It was taken back.
    pub async fn cancelled(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Cancelled(words.into())).await
    }

    /// Any report. It is in effect when this returns: kept, if it changes how the task stands, and shown to whoever listens.
    pub async fn tell(&self, _report: Report) -> Result<(), ReportError> {
        todo!()
    }
}
