//! An agent here, for clients elsewhere: the A2A protocol 1.0 over JSON-RPC and HTTP+JSON.
//!
//! [`AgentServer`] is made of an [`AgentBehind`], which does the work, and a [`TaskStore`], which keeps the tasks. Its
//! [router](AgentServer::router) is an ordinary axum router: put the layer that checks tokens around it, and let that leave an
//! `Extension<UserId>` in each request.

mod behind;
mod card;
mod desk;
mod difference;
mod ending;
mod fields;
mod http_json;
mod job;
mod jsonrpc;
mod keeper;
mod keeping;
mod ledger;
mod recovery;
mod refusal;
mod report;
mod request;
mod routes;
mod said;
mod settings;
mod shared;
mod shown;
mod stream;
mod taking_up;
mod watching;
mod wire;

pub use behind::{
    AgentBehind, Cancelled, Ended, FilesNotStored, Job, Standing, Start, StopReason, Unfit,
};
pub use job::Reports;
pub use recovery::Recovered;
pub use report::{Piece, Report, ReportError, Words};
pub use routes::Route;
pub use settings::{Access, ServerLimits, ServerSettings};

use axum::Router;
use axum::routing::any;
use lango_core::{Changes, Clock, StoreError, TaskStore};
use recovery::Which;
use shared::{Phase, Shared};
use std::sync::Arc;
use std::time::Duration;

/// An agent as the protocol serves it. Clones are the same server.
#[derive(Clone)]
pub struct AgentServer {
    shared: Arc<Shared>,
}

impl AgentServer {
    /// A server for this agent. Nothing runs before a request comes, or [`recover`](Self::recover) or
    /// [`watch`](Self::watch) is called.
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

    /// Looks for tasks that are at work by the store and that nobody is at work on, and takes them up again, some at a time:
    /// what the agent knows of them counts, and what is not over gets a [job](Start::Again). Of tasks that somebody
    /// [else](Standing::Held) is at work on nothing is changed. To be called before requests are served; it does not wait
    /// for the jobs, and what it left is for [`watch`](Self::watch).
    pub async fn recover(&self) -> Result<Recovered, StoreError> {
        self.shared.look_for_lost(Which::All).await
    }

    /// From now on looks for such tasks every [few seconds](ServerLimits::recover_every), since another copy of this server
    /// may have died, and for tasks at work here that another copy was asked to cancel. Hints only make it quicker. Ends
    /// when the server stops. To be called within a runtime, once.
    ///
    /// Any number of servers may share a store, as long as their agents can tell what the others are at work on, and say
    /// [`Held`](Standing::Held) of it. A task can then be got, listed, followed, cancelled and sent again through each.
    pub fn watch(&self, changes: Option<Arc<dyn Changes>>) {
        watching::start(&self.shared, changes);
    }

    /// Takes no new work, gives what runs this long, then tells it to stop, and closes all streams. When it returns, nothing
    /// runs any more; jobs that did not stop in time were ended. What did not come to its end stays at work by the store,
    /// for the next start or another copy.
    pub async fn stop(&self, grace: Duration) {
        let shared = &self.shared;
        shared.phase.send_replace(Phase::Closing);
        let limits = &shared.settings.limits;
        let all = |most: usize| u32::try_from(most).unwrap_or(u32::MAX);
        let ended = async {
            tokio::join!(
                shared.running.acquire_many(all(limits.running)),
                shared.recovering.acquire_many(all(limits.recovering))
            )
        };
        let _ = tokio::time::timeout(grace, ended).await;
        shared.phase.send_replace(Phase::Stopping);
        let mut keepers = shared.keepers.subscribe();
        let patience = shared.settings.limits.stop_wait + Duration::from_secs(1);
        let _ = tokio::time::timeout(patience, keepers.wait_for(|count| *count == 0)).await;
    }
}
