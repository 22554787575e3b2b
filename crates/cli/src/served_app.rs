//! The program around the server: a runner with the agents that are configured now, the store, and memory after each turn.

mod api;

use crate::app::App;
use crate::exit::Failure;
use crate::mcp::Mcp;
use crate::memory_queue::MemoryQueue;
use crate::screen;
use crate::sessions::Sessions;
use lango_a2a::server::AgentServer;
use lango_api::Feeds;
use lango_core::{BoxFuture, Model, SessionCatalog, SessionId, TaskLog, TurnId, UserId};
use lango_engine::{InterruptedTurns, Runner, Shown};
use lango_knowledge::Library;
use lango_net::Egress;
use lango_server::{Notice, ServerContext, latest_attempt};
use lango_store::Store;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Sessions that are exported at a time.
const MAX_EXPORTS: usize = 2;

/// The context of turns that callers start.
pub struct ServedApp {
    agents: Mutex<Agents>,
    sessions: Sessions,
    memory: Option<MemoryQueue>,
    mcp: Arc<Mcp>,
    egress: Egress,
    errors: RecentErrors,
    interrupted: InterruptedTurns,
    store: Arc<Store>,
    feeds: Arc<Feeds>,
    library: Option<Library>,
    /// The flags of the command line, for checks that read the configuration again.
    flags: Vec<String>,
    /// Serializes those checks.
    checks: tokio::sync::Mutex<()>,
    /// Permits to export a session, whose log is verified first.
    exports: Arc<tokio::sync::Semaphore>,
    /// The server of tasks, which is built on this.
    server: OnceLock<AgentServer>,
}

/// Errors that were printed lately, so that an outage does not print one line for each task.
#[derive(Default)]
struct RecentErrors(Mutex<Vec<(String, Instant)>>);

impl RecentErrors {
    /// An error is printed again only after it has not occurred for this long.
    const QUIET: Duration = Duration::from_secs(30);
    /// How many different errors are printed in that time.
    const MAX_REMEMBERED: usize = 64;

    /// Returns the error if it was not printed lately.
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

/// What changes when agents are added.
struct Agents {
    app: App,
    model: Arc<dyn Model>,
    runner: Runner,
}

impl ServedApp {
    /// Creates the context for this program, store and model.
    pub fn new(
        app: App,
        sessions: Sessions,
        model: Arc<dyn Model>,
        interrupted: InterruptedTurns,
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
        let store = Arc::clone(&app.kept.database);
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
            server: OnceLock::new(),
        })
    }

    /// Sets the server whose tasks are updated and cancelled. A second call changes nothing.
    pub fn set_server(&self, server: AgentServer) {
        let _ = self.server.set(server);
    }

    /// Returns the users whose turns run here.
    pub fn users(&self) -> Vec<UserId> {
        self.with_app(App::users)
    }

    fn with_app<T>(&self, read: impl FnOnce(&App) -> T) -> T {
        read(&self.lock().app)
    }

    fn lock(&self) -> MutexGuard<'_, Agents> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the MCP servers that were started.
    pub async fn close(&self) {
        self.mcp.close().await;
    }
}

impl ServerContext for ServedApp {
    fn runner(&self) -> Runner {
        let mut agents = self.lock();
        // If new agents cannot be added, the earlier ones stay.
        if let Ok(true) = agents.app.take_in()
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

    fn notify(&self, notice: Notice<'_>) {
        let text = match notice {
            Notice::Error(error) => match self.errors.first(error.to_string()) {
                Some(error) => format!("error: {error}"),
                None => return,
            },
            Notice::TasksResumed { count } => {
                let tasks = screen::count(count as u64, "task");
                format!("resumed from another server: {tasks}")
            }
            Notice::TurnResumed { session, outcome } => {
                format!("session {session}: an interrupted turn was resumed: {outcome}")
            }
        };
        screen::say(&text);
    }

    fn turn_shown(&self, session: &SessionId, turn: &TurnId, shown: &Shown) {
        self.feeds.publish(session, turn, shown);
    }

    fn turn_continued<'a>(&'a self, user: &'a UserId, turn: &'a TurnId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(server) = self.server.get() else {
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
