//! The program around the server: a runner with the agents that are configured now, the store, and memory after each turn.

use crate::app::App;
use crate::exit::Failure;
use crate::mcp::Mcp;
use crate::memory_queue::MemoryQueue;
use crate::screen;
use crate::sessions::Sessions;
use lango_core::{Model, SessionCatalog, SessionId, TaskLog, UserId};
use lango_engine::{InterruptedTurns, Runner};
use lango_net::Egress;
use lango_server::{Notice, ServerContext};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The context of turns that callers start.
pub struct ServedApp {
    agents: Mutex<Agents>,
    sessions: Sessions,
    memory: Option<MemoryQueue>,
    mcp: Arc<Mcp>,
    egress: Egress,
    errors: RecentErrors,
    interrupted: InterruptedTurns,
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
    ) -> Result<Self, Failure> {
        let runner = app.runner(&sessions, &model)?.with_interrupted(interrupted);
        let memory = app
            .knowledge
            .as_ref()
            .and_then(|known| known.memory.as_ref())
            .map(MemoryQueue::new);
        let mcp = Arc::clone(&app.mcp);
        let egress = app.egress.clone();
        Ok(Self {
            agents: Mutex::new(Agents { app, model, runner }),
            sessions,
            memory,
            mcp,
            egress,
            errors: RecentErrors::default(),
            interrupted,
        })
    }

    /// Returns the users whose turns run here.
    pub fn users(&self) -> Vec<UserId> {
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.app.users()
    }

    /// Ends the MCP servers that were started.
    pub async fn close(&self) {
        self.mcp.close().await;
    }
}

impl ServerContext for ServedApp {
    fn runner(&self) -> Runner {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn turn_ended(&self, user: &UserId, session: &SessionId) {
        if let Some(memory) = &self.memory {
            memory.add(user, session);
        }
    }
}
