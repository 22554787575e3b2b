//! lango as an agent for clients: the A2A protocol 1.0 over JSON-RPC and HTTP+JSON.
//!
//! [`AgentServer`] is made of an [`AgentBackend`], which does the work, and a [`TaskStore`]. Its
//! [router](AgentServer::router) is an ordinary axum router: put the middleware that checks tokens around it, and let that
//! leave an `Extension<UserId>` in each request.
//!
//! The path of a blocking `SendMessage` that creates a task:
//!
//! 1. `jsonrpc::answer` (or `http_json::answer`) receives it, and `request::read` validates it as an `Operation`.
//! 2. `operations::send` creates a `Task`, starts its actor (`Shared::open`) with a `Request`, and gets a `Subscription`.
//! 3. `TaskActor::drive` feeds the request into [`Task::accept`](task::Task::accept) and performs the effects: reserve a slot, store
//!    the task, answer the caller, start the run. What the task decides, and why, is in `task`. A backend that
//!    [opens tasks](AgentBackend::opens_tasks) is an exception: its run starts first, and stores the task in the same transaction
//!    as its own first write ([`Reporter::open_with`]).
//! 4. [`AgentBackend::run`] does the work. What it reports comes back to the actor through the [`Reporter`], is stored, and is
//!    published to subscribers. A run can store its last report in the same transaction as its own last write
//!    ([`Reporter::report_with`]).
//! 5. `operations::settled` receives the update that ends the task, and answers with the whole task. It does not wait for the run to
//!    return.

mod actor;
mod backend;
mod cancel_watch;
mod card;
mod diff;
mod fields;
mod http_json;
mod jsonrpc;
mod message_identity;
mod opening;
mod operations;
mod recovery;
mod refusal;
mod render;
mod repetition;
mod report;
mod request;
mod routes;
mod settings;
mod shared;
mod slots;
mod stream;
mod task;
mod wire;

pub use actor::{Reporter, StoreTask};
pub use backend::{
    AgentBackend, AgentStatus, FileError, MessageError, RunCause, RunResult, StopReason,
    StopSignal, TaskRun,
};
pub use opening::JointOpening;
pub use recovery::Recovered;
pub use repetition::{first_attempt, is_further_attempt};
pub use report::{ArtifactChunk, Report, ReportError, StatusMessage};
pub use routes::Route;
pub use settings::{Access, ServerLimits, ServerSettings};

use axum::Router;
use axum::routing::any;
use lango_core::{Changes, Clock, StoreError, TaskStore, UserId};
use recovery::Scope;
use shared::{Phase, Shared};
use std::sync::Arc;
use std::time::Duration;

/// An agent as the protocol serves it. Clones are the same server.
#[derive(Clone)]
pub struct AgentServer {
    shared: Arc<Shared>,
}

impl AgentServer {
    /// Creates a server for this agent. Nothing runs before a request comes, or [`recover`](Self::recover) or
    /// [`watch`](Self::watch) is called.
    pub fn new(
        backend: Arc<dyn AgentBackend>,
        tasks: Arc<dyn TaskStore>,
        clock: Arc<dyn Clock>,
        settings: ServerSettings,
    ) -> Self {
        Self {
            shared: Arc::new(Shared::new(backend, tasks, clock, settings)),
        }
    }

    /// Returns the card, JSON-RPC and HTTP+JSON as one router. It answers every path; another router's own paths win when
    /// the two are merged.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/", any(jsonrpc::answer))
            .route("/{*path}", any(http_json::answer))
            .with_state(Arc::clone(&self.shared))
    }

    /// Returns whether the server accepts new tasks: false once it is shutting down.
    pub fn is_open(&self) -> bool {
        self.shared.is_open()
    }

    /// Returns every route of the router.
    pub fn routes() -> &'static [Route] {
        &routes::ROUTES
    }

    /// Scans for interrupted tasks, which must run by the store and which no process is at work on, and
    /// [resumes](RunCause::Resumed) them, some at a time. What the agent knows of a task counts, and tasks that another
    /// process [has](AgentStatus::Busy) stay as they are. Call it before requests are served; it does not wait for the
    /// runs, and what it skipped is for the scans that follow.
    pub async fn recover(&self) -> Result<Recovered, StoreError> {
        self.shared.recover(Scope::All).await
    }

    /// Scans as [`recover`](Self::recover) does, for tasks that no replica has written for a while: another replica may
    /// have died.
    pub async fn recover_stale(&self) -> Result<Recovered, StoreError> {
        self.shared.recover(Scope::Stale).await
    }

    /// Updates a waiting task with the agent's status. If this fails, the next request for the task retries it.
    pub async fn refresh(&self, user: &UserId, id: &str) {
        operations::refresh(&self.shared, (user.clone(), id.to_owned())).await;
    }

    /// Cancels a user's task as a request of the protocol does. Returns whether there was one that could be cancelled.
    pub async fn cancel(&self, user: &UserId, id: &str) -> bool {
        operations::cancel(&self.shared, (user.clone(), id.to_owned())).await
    }

    /// Waits until the next scan is due: after [`recover_every`](ServerLimits::recover_every), or when a resumed task is
    /// over. Returns false when the server takes no new work.
    pub async fn next_recovery(&self) -> bool {
        let shared = &self.shared;
        let mut phase = shared.phase.subscribe();
        tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Open) => false,
            () = shared.recovered.notified() => true,
            () = tokio::time::sleep(shared.settings.limits.recover_every) => true,
        }
    }

    /// From now on stops runs whose tasks another replica was asked to cancel. Hints only make it quicker. Ends when the
    /// server stops. Call it within a runtime, once.
    ///
    /// Any number of servers may share a store, as long as their agents can tell what the others are at work on, and
    /// return [`Busy`](AgentStatus::Busy) for it. A task can then be got, listed, followed, cancelled and sent again through
    /// each.
    pub fn watch(&self, changes: Option<Arc<dyn Changes>>) {
        cancel_watch::start(&self.shared, changes);
    }

    /// Takes no new work, gives runs this long, then tells them to stop, and closes all streams. When it returns, nothing
    /// runs any more; runs that did not stop in time were aborted. Tasks that did not end stay at work by the store, for the
    /// next start or another replica.
    pub async fn stop(&self, grace: Duration) {
        let shared = &self.shared;
        shared.phase.send_replace(Phase::Closing);
        let _ = tokio::time::timeout(grace, shared.all_runs_ended()).await;
        shared.phase.send_replace(Phase::Stopping);
        let mut actors = shared.actors.subscribe();
        let timeout = shared.settings.limits.stop_timeout + Duration::from_secs(1);
        let _ = tokio::time::timeout(timeout, actors.wait_for(|count| *count == 0)).await;
    }
}
