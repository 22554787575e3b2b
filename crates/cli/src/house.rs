//! The program as the server needs it: a runner with the agents that are there now, sessions that one process holds at a
//! time, and memory after each turn.

use crate::app::App;
use crate::exit::Failure;
use crate::mcp::Mcp;
use crate::screen;
use crate::sessions::Sessions;
use lango_core::{BoxFuture, Model, SessionId, StoreError, UserId};
use lango_engine::Runner;
use lango_knowledge::Memory;
use lango_net::Egress;
use lango_server::House;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

/// What turns from outside run in.
pub struct ServedApp {
    rooms: Mutex<Rooms>,
    sessions: Sessions,
    memory: Option<Memory>,
    mcp: Arc<Mcp>,
    egress: Egress,
}

/// What changes when agents come.
struct Rooms {
    app: App,
    model: Arc<dyn Model>,
    runner: Runner,
}

impl ServedApp {
    /// Over this program, this store and this model.
    pub fn new(app: App, sessions: Sessions, model: Arc<dyn Model>) -> Result<Self, Failure> {
        let runner = app.runner(&sessions, &model)?;
        let memory = app
            .knowledge
            .as_ref()
            .and_then(|known| known.memory.clone());
        let mcp = Arc::clone(&app.mcp);
        let egress = app.egress.clone();
        Ok(Self {
            rooms: Mutex::new(Rooms { app, model, runner }),
            sessions,
            memory,
            mcp,
            egress,
        })
    }

    /// Those whose questions are answered here.
    pub fn users(&self) -> Vec<UserId> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.app.users()
    }

    /// The store of the turns.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Ends what was started.
    pub async fn close(&self) {
        self.mcp.close().await;
    }
}

impl House for ServedApp {
    fn runner(&self) -> Runner {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        // Agents that cannot be taken in leave those that were there.
        if let Ok(true) = rooms.app.take_in()
            && let Ok(runner) = rooms.app.runner(&self.sessions, &rooms.model)
        {
            rooms.runner = runner;
        }
        rooms.runner.clone()
    }

    fn egress(&self) -> Egress {
        self.egress.clone()
    }

    fn waiting<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<usize, StoreError>> {
        self.sessions.catalog.count_waiting(user)
    }

    fn trouble(&self, what: &dyn Display) {
        screen::say(&format!("a task failed: {what}"));
    }

    fn after_turn<'a>(&'a self, user: &'a UserId, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(memory) = &self.memory {
                // What is due stays due.
                let _ = memory.work_due(user, session).await;
            }
        })
    }
}
