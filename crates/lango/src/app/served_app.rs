//! The context of the server: a runner with the current agents, the store, and memory updates after each turn.

mod api;

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::mcp::Mcp;
use crate::app::memory_queue::MemoryQueue;
use crate::app::notice::notice;
use crate::app::sessions::Sessions;
use lango_a2a::server::AgentServer;
use lango_api::Feeds;
use lango_core::text;
use lango_core::{BoxFuture, Model, SessionCatalog, SessionId, TaskLog, TurnId, UserId};
use lango_engine::{InterruptedTurnPolicy, Runner, TurnUpdate};
use lango_knowledge::Library;
use lango_net::Egress;
use lango_server::{Notice, ServerContext, latest_attempt};
use lango_store::Store;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many sessions can be exported concurrently.
const MAX_EXPORTS: usize = 2;

/// The context of turns that callers start.
pub(super) struct ServedApp {
    agents: Mutex<Agents>,
    sessions: Sessions,
    memory: Option<MemoryQueue>,
    mcp: Arc<Mcp>,
    egress: Egress,
    errors: RecentErrors,
    interrupted: InterruptedTurnPolicy,
    store: Arc<Store>,
    feeds: Arc<Feeds>,
    library: Option<Library>,
    /// The flags of the command line, for checks that read the configuration again.
    flags: Vec<String>,
    /// Serializes those checks.
    checks: tokio::sync::Mutex<()>,
    /// Permits for exports, which verify the log first.
    exports: Arc<tokio::sync::Semaphore>,
    /// The task server, which is built on top of this, until [`close`](ServedApp::close).
    server: Mutex<Option<AgentServer>>,
}

/// Recently printed errors, so that an outage does not print a line for each task.
#[derive(Default)]
struct RecentErrors(Mutex<Vec<(String, Instant)>>);

impl RecentErrors {
    /// An error is printed again only if it has not occurred for this long.
    const QUIET: Duration = Duration::from_secs(30);
    /// The most different errors to remember; while there are this many, no other error is printed.
    const MAX_REMEMBERED: usize = 64;

    /// Returns the error if it was not printed recently.
    fn first(&self, error: String) -> Option<String> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|(_, last)| last.elapsed() < Self::QUIET);
        if let Some((_, last)) = recent.iter_mut().find(|(known, _)| *known == error) {
            *last = Instant::now();
            return None;
        }
        if recent.len() >= Self::MAX_REMEMBERED {
            return None;
        }
        recent.push((error.clone(), Instant::now()));
        Some(error)
    }
}

/// The parts that are replaced when remote agents are added.
struct Agents {
    app: App,
    model: Arc<dyn Model>,
    runner: Runner,
}

impl ServedApp {
    /// Creates the context for this app, store and model.
    pub(super) fn new(
        app: App,
        sessions: Sessions,
        model: Arc<dyn Model>,
        interrupted: InterruptedTurnPolicy,
        feeds: Arc<Feeds>,
        flags: Vec<String>,
    ) -> Result<Self, Failure> {
        let runner = app.runner(&sessions, &model)?.with_interrupted(interrupted);
        let memory = app
            .knowledge
            .as_ref()
            .and_then(|known| known.memory.as_ref())
            .map(MemoryQueue::new);
        let mcp = Arc::clone(&app.mcp);
        let egress = app.egress.clone();
        let library = app.knowledge.as_ref().map(|known| known.library.clone());
        let store = Arc::clone(&app.storage.database);
        Ok(Self {
            agents: Mutex::new(Agents { app, model, runner }),
            sessions,
            memory,
            mcp,
            egress,
            errors: RecentErrors::default(),
            interrupted,
            store,
            feeds,
            library,
            flags,
            checks: tokio::sync::Mutex::default(),
            exports: Arc::new(tokio::sync::Semaphore::new(MAX_EXPORTS)),
            server: Mutex::default(),
        })
    }

    /// Sets the server whose tasks are updated and cancelled.
    pub(super) fn set_server(&self, server: AgentServer) {
        *self.lock_server() = Some(server);
    }

    fn lock_server(&self) -> MutexGuard<'_, Option<AgentServer>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self) -> Option<AgentServer> {
        self.lock_server().clone()
    }

    /// Returns the users whose turns run here.
    pub(super) fn users(&self) -> Vec<UserId> {
        self.with_app(App::users)
    }

    fn with_app<T>(&self, read: impl FnOnce(&App) -> T) -> T {
        read(&self.lock().app)
    }

    fn lock(&self) -> MutexGuard<'_, Agents> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the MCP servers.
    pub(super) async fn close(&self) {
        // The server refers back to this; without the cycle, the browsers end when the last user of this is dropped.
        self.lock_server().take();
        self.mcp.close().await;
    }
}

impl ServerContext for ServedApp {
    fn runner(&self) -> Runner {
        let mut agents = self.lock();
        // If new agents cannot be added, the previous runner stays in use.
        if let Ok(true) = agents.app.add_new_remote_agents()
            && let Ok(runner) = agents.app.runner(&self.sessions, &agents.model)
        {
            agents.runner = runner.with_interrupted(self.interrupted);
        }
        agents.runner.clone()
    }

    fn egress(&self) -> Egress {
        self.egress.clone()
    }

    fn catalog(&self) -> Arc<dyn SessionCatalog> {
        Arc::clone(&self.sessions.catalog)
    }

    fn task_log(&self) -> Arc<dyn TaskLog> {
        Arc::clone(&self.sessions.task_log)
    }

    fn notify(&self, event: Notice<'_>) {
        let text = match event {
            Notice::Error(error) => match self.errors.first(error.to_string()) {
                Some(error) => format!("error: {error}"),
                None => return,
            },
            Notice::TasksResumed { count } => {
                let tasks = text::count(count as u64, "task");
                format!("resumed from another server: {tasks}")
            }
            Notice::TurnResumed { session, outcome } => {
                format!("session {session}: an interrupted turn was resumed: {outcome}")
            }
        };
        notice(&text);
    }

    fn publish_update(&self, session: &SessionId, turn: &TurnId, update: &TurnUpdate) {
        self.feeds.publish(session, turn, update);
    }

    fn turn_continued<'a>(&'a self, user: &'a UserId, turn: &'a TurnId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(server) = self.server() else {
                return;
            };
            // If the task cannot be read now, the next request for it updates it.
            if let Ok(Some(task)) = latest_attempt(&*self.sessions.tasks, user, turn).await {
                server.refresh(user, &task.id).await;
            }
        })
    }

    fn turn_ended(&self, user: &UserId, session: &SessionId) {
        if let Some(memory) = &self.memory {
            memory.add(user, session);
        }
    }
}
