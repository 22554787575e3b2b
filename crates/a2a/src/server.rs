//! An agent here, for clients elsewhere: the A2A protocol 1.0 over JSON-RPC and HTTP+JSON.
//!
//! [`AgentServer`] is made of an [`AgentBehind`], which does the work, and a [`TaskStore`], which keeps the tasks. Its
//! [router](AgentServer::router) is an ordinary axum router: put the layer that checks tokens around it, and let that leave an
//! `Extension<UserId>` in each request.

mod behind;
mod card;
mod desk;
mod ending;
mod fields;
mod http_json;
mod job;
mod jsonrpc;
mod keeper;
mod ledger;
mod refusal;
mod report;
mod request;
mod routes;
mod settings;
mod shared;
mod shown;
mod stream;
mod wire;

pub use behind::{AgentBehind, Cancelled, Job, Standing, StopReason, Unfit};
pub use job::Reports;
pub use report::{Piece, Report, ReportError, Words};
pub use routes::Route;
pub use settings::{Access, ServerLimits, ServerSettings};

use a2a::AgentCard;
use axum::Router;
use axum::routing::any;
use keeper::{Begin, Command};
use lango_core::{Clock, StoreError, TaskStore, UserId};
use refusal::Kind;
use shared::{Phase, Shared};
use shown::View;
use std::sync::Arc;
use std::time::Duration;

/// An agent as the protocol serves it. Clones are the same server.
#[derive(Clone)]
pub struct AgentServer {
    shared: Arc<Shared>,
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
    #[error("task `{id}` cannot be read or kept; look at the database")]
    Store {
        /// The task.
        id: String,
    },
}

impl AgentServer {
    /// A server for this agent. Nothing runs before a request comes, or [`recover`](Self::recover) is called.
    pub fn new(
        behind: Arc<dyn AgentBehind>,
        tasks: Arc<dyn TaskStore>,
        clock: Arc<dyn Clock>,
        settings: ServerSettings,
    ) -> Self {
        Self {
            shared: Arc::new(Shared::new(behind, tasks, clock, settings)),
        }
    }

    /// What the server says of itself.
    pub fn card(&self) -> &AgentCard {
        &self.shared.card.card
    }

    /// The card, JSON-RPC and HTTP+JSON as one router. It answers every path; another router's own paths win when the two
    /// are merged.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/", any(jsonrpc::answer))
            .route("/{*path}", any(http_json::answer))
            .with_state(Arc::clone(&self.shared))
    }

    /// Every route of the router.
    pub fn routes() -> &'static [Route] {
        &routes::ROUTES
    }

    /// Sees to the tasks that were at work when the server last stopped: what the agent says of them, or else failed. To be
    /// called once, before requests are served; no other server may be at work on the same tasks. Returns how many there
    /// were.
    pub async fn recover(&self) -> Result<usize, StoreError> {
        const BATCH: usize = 64;
        let mut count = 0;
        loop {
            let lost = self.shared.tasks.running(BATCH).await?;
            let is_last = lost.len() < BATCH;
            for task in lost {
                let key = (task.user, task.id.to_string());
                let asked = self.shared.ask(&key, |reply| Command::Recover { reply });
                if asked.await.is_err() {
                    let detail = format!("task `{}` cannot be seen to after a stop", key.1);
                    return Err(StoreError::Failed { detail });
                }
                count += 1;
            }
            if is_last {
                return Ok(count);
            }
        }
    }

    /// Goes on with a task that waits, without a message from the client: what it waited for was settled elsewhere. Streams
    /// that are open on it see what follows.
    pub async fn resume(&self, user: &UserId, task: &str) -> Result<(), ResumeError> {
        let key = (user.clone(), task.to_owned());
        let begin = |reply| {
            Command::Begin(Box::new(Begin {
                message: None,
                accepted_output_modes: Vec::new(),
                is_new_context: false,
                view: View::default(),
                opener: None,
                reply,
            }))
        };
        let id = task.to_owned();
        match self.shared.ask(&key, begin).await {
            Ok(_) => Ok(()),
            Err(refusal) => Err(match refusal.kind {
                Kind::TaskNotFound => ResumeError::NotFound { id },
                Kind::UnsupportedOperation => ResumeError::NotWaiting { id },
                Kind::Busy | Kind::Stopping => ResumeError::Busy,
                _ => ResumeError::Store { id },
            }),
        }
    }

    /// Takes no new work, gives what runs this long, then tells it to stop, and closes all streams. When it returns, nothing
    /// runs any more; jobs that did not stop in time were ended.
    pub async fn stop(&self, grace: Duration) {
        let shared = &self.shared;
        shared.phase.send_replace(Phase::Closing);
        let all = u32::try_from(shared.settings.limits.running).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(grace, shared.running.acquire_many(all)).await;
        shared.phase.send_replace(Phase::Stopping);
        let mut keepers = shared.keepers.subscribe();
        let patience = shared.settings.limits.stop_wait + Duration::from_secs(1);
        let _ = tokio::time::timeout(patience, keepers.wait_for(|count| *count == 0)).await;
    }
}
