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
mod said;
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

use a2a::Task;
use axum::Router;
use axum::routing::any;
use futures_util::StreamExt;
use keeper::Command;
use lango_core::{Clock, StoreError, TaskRecord, TaskStore};
use shared::{Phase, Shared};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// An agent as the protocol serves it. Clones are the same server.
#[derive(Clone)]
pub struct AgentServer {
    shared: Arc<Shared>,
}

/// What [`AgentServer::recover`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// How many tasks have ended or wait now.
    pub seen_to: usize,
    /// How many were left as they are: somebody else is at work on them, or they could not be looked at or kept now.
    pub left: usize,
    /// The ids of those whose record cannot be read, in order. They are left as they are; look at the database.
    pub damaged: Vec<String>,
}

enum Seen {
    To,
    Left,
    Damaged(String),
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

    /// Sees to the tasks that were at work when the server last stopped, a few at a time: what the agent says of them, failed
    /// if it knows nothing of them, and left as they are if [somebody else](Standing::Held) is at work on them; what is left
    /// is looked at again whenever somebody asks for it. To be called once, before requests are served.
    ///
    /// Two servers may run over one database as long as the agent of each can tell what the other is at work on, and says
    /// [`Held`](Standing::Held) of it: of what it calls unknown, the one that starts makes a failure under the hands of the
    /// other. They tell each other nothing: a stream hears of what the other server does when this one looks, a message
    /// that is sent again is recognised only by the server that is at work on it, and a task is cancelled only by that one.
    pub async fn recover(&self) -> Result<Recovered, StoreError> {
        const BATCH: usize = 16;
        const AT_A_TIME: usize = 8;
        let mut recovered = Recovered::default();
        let mut known = HashSet::new();
        loop {
            // Those that were left are still among those at work.
            let limit = BATCH + recovered.left + recovered.damaged.len();
            let mut lost = self.shared.tasks.running(limit).await?;
            let is_last = lost.len() < limit;
            lost.retain(|task| known.insert(Arc::clone(&task.id)));
            if lost.is_empty() {
                return Ok(recovered);
            }
            let mut seen = futures_util::stream::iter(lost)
                .map(|task| self.see_to(task))
                .buffer_unordered(AT_A_TIME);
            while let Some(seen) = seen.next().await {
                match seen? {
                    Seen::To => recovered.seen_to += 1,
                    Seen::Left => recovered.left += 1,
                    Seen::Damaged(id) => recovered.damaged.push(id),
                }
            }
            if is_last {
                recovered.damaged.sort();
                return Ok(recovered);
            }
        }
    }

    async fn see_to(&self, task: TaskRecord) -> Result<Seen, StoreError> {
        let id = task.id.to_string();
        if serde_json::from_str::<Task>(&task.body).is_err() {
            return Ok(Seen::Damaged(id));
        }
        drop(task.body);
        let key = (task.user, id);
        let asked = self.shared.ask(&key, |reply| Command::Recover { reply });
        match asked.await {
            Ok(watching) if ledger::is_settled(&watching.state) => Ok(Seen::To),
            Ok(_) => Ok(Seen::Left),
            Err(_) => {
                let detail = format!("task `{}` cannot be seen to after a stop", key.1);
                Err(StoreError::Failed { detail })
            }
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
