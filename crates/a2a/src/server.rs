//! Exposes an agent to clients: the A2A protocol 1.0 over JSON-RPC and HTTP+JSON.
//!
//! [`AgentServer`] combines an [`AgentBackend`], which does the work, with a [`TaskStore`]. Its
//! [router](AgentServer::router) is an ordinary axum router. Wrap it in middleware that authenticates requests and adds
//! an `Extension<UserId>` to each of them.
//!
//! A blocking `SendMessage` that creates a task takes this path:
//!
//! 1. `jsonrpc::answer` (or `http_json::answer`) receives it, and `request::read` validates it as an `Operation`.
//! 2. `operations::send` creates a `Task`, starts its actor (`Shared::open`) with a `Request`, and gets a
//!    `Subscription`.
//! 3. `TaskActor::drive` feeds the request into `Task::accept` and performs the effects: reserve
//!    a slot, store the task, answer the caller, start the run. What the task decides, and why, is in `task`. A backend
//!    that [opens tasks](AgentBackend::opens_tasks) is an exception: its run starts first, and stores the task in the
//!    same transaction as its own first write ([`Reporter::open_with`]).
//! 4. [`AgentBackend::run`] does the work. It sends reports to the actor through the [`Reporter`]; the actor stores
//!    them and publishes them to subscribers. A run can store its last report in the same transaction as its own last
//!    write ([`Reporter::report_with`]).
//! 5. `operations::settled` receives the update that ends the task, and answers with the whole task. It does not wait
//!    for the run to return.

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
pub use opening::SharedTaskOpening;
pub use recovery::RecoveryReport;
pub use repetition::{first_attempt, is_further_attempt};
pub use report::{ArtifactChunk, Report, ReportError, StatusMessage};
pub use routes::Route;
pub use settings::{Access, ServerLimits, ServerSettings};

use axum::Router;
use axum::routing::any;
use lango_core::{ChangeFeed, Clock, StoreError, TaskStore, UserId};
use recovery::Scope;
use shared::{Phase, Shared};
use std::sync::Arc;
use std::time::Duration;

/// An agent exposed over A2A. Clones share the same server.
#[derive(Clone)]
pub struct AgentServer {
    shared: Arc<Shared>,
}

impl AgentServer {
    /// Creates a server for this agent. Nothing runs until a request arrives, or [`recover`](Self::recover) or
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

    /// Returns one router for the card, JSON-RPC and HTTP+JSON. It answers every path; when it is merged with another
    /// router, the other router's paths take precedence.
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

    /// Scans for interrupted tasks (stored as running, but run by no process) and [resumes](RunCause::Resumed) them, a
    /// limited number at a time. Asks the agent for the status of each task first, and skips those that another process
    /// [runs](AgentStatus::Busy). Call it before serving requests. It does not wait for the runs to end; later scans
    /// handle the tasks that it skipped.
    pub async fn recover(&self) -> Result<RecoveryReport, StoreError> {
        self.shared.recover(Scope::All).await
    }

    /// Scans like [`recover`](Self::recover), but only for tasks that no replica has written for a while: the replica
    /// that ran them may have died.
    pub async fn recover_stale(&self) -> Result<RecoveryReport, StoreError> {
        self.shared.recover(Scope::Stale).await
    }

    /// Updates a waiting task with the agent's status. If this fails, the next request for the task retries it.
    pub async fn refresh(&self, user: &UserId, id: &str) {
        operations::refresh(&self.shared, (user.clone(), id.to_owned())).await;
    }

    /// Cancels a user's task, like a `CancelTask` request. Returns false if there is no such task or it cannot be
    /// cancelled.
    pub async fn cancel(&self, user: &UserId, id: &str) -> bool {
        operations::cancel(&self.shared, (user.clone(), id.to_owned())).await
    }

    /// Waits until the next scan is due: after [`recover_every`](ServerLimits::recover_every), or when a resumed task
    /// has ended. Returns false once the server is shutting down.
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

    /// Starts a background task that stops local runs when another replica receives a request to cancel them. It polls
    /// the store; `changes` only makes it faster. It ends when the server stops. Call this once, within a runtime.
    ///
    /// Any number of servers may share a store, as long as each agent knows which tasks the others are running, and
    /// returns [`Busy`](AgentStatus::Busy) for them. Clients can then get, list, follow, cancel and resend a task
    /// through any of the servers.
    pub fn watch(&self, changes: Option<Arc<dyn ChangeFeed>>) {
        cancel_watch::start(&self.shared, changes);
    }

    /// Shuts down: refuses new work, lets runs finish for up to `grace_period`, then signals them to stop and closes
    /// all streams. When it returns, nothing runs any more; runs that did not stop in time have been aborted. Tasks
    /// that did not end stay `working` in the store, and the next start or another replica resumes them.
    pub async fn stop(&self, grace_period: Duration) {
        let shared = &self.shared;
        shared.phase.send_replace(Phase::Closing);
        let _ = tokio::time::timeout(grace_period, shared.all_runs_ended()).await;
        shared.phase.send_replace(Phase::Stopping);
        let mut actors = shared.actors.subscribe();
        let timeout = shared.settings.limits.stop_timeout + Duration::from_secs(1);
        let _ = tokio::time::timeout(timeout, actors.wait_for(|count| *count == 0)).await;
    }
}
