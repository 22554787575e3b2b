//! What the librarian and the chronicler work with: graph, library and memory over the database of the sessions.

use crate::config::{Loaded, StoreLocation};
use lango_core::{
    AgentName, BoxFuture, Clock, Model, Recollection, SessionId, StoreError, Text, Tool, UserId,
};
use lango_engine::SystemClock;
use lango_knowledge::{GraphSettings, Memory, MemorySettings, graph_tools, memory_tools};
use lango_store::SqliteStore;
use std::sync::Arc;

/// What is known, and the tools over it. The database is opened when one of them first needs it.
pub struct Knowledge {
    /// The database.
    pub store: Arc<SqliteStore>,
    /// What is remembered of conversations, unless that is turned off.
    pub memory: Option<Memory>,
    /// The tools.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl Knowledge {
    /// What the configuration asks for. `observer` is the model that observes; without one the built-in rules do.
    pub fn of(
        loaded: &Loaded,
        root: AgentName,
        observer: Option<Arc<dyn Model>>,
    ) -> Result<Self, StoreError> {
        let settings = &loaded.settings;
        let StoreLocation::Sqlite(path) = &settings.session.store;
        let store = Arc::new(SqliteStore::at(path, root)?);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut tools = Vec::new();
        if settings.graph.enabled {
            let bounds = GraphSettings {
                max_depth: settings.graph.max_depth as usize,
                max_results: settings.graph.max_results as usize,
            };
            tools.extend(graph_tools(store.graph(), Arc::clone(&clock), bounds));
        }
        let memory = (settings.memory.enabled != Some(false)).then(|| {
            let bounds = MemorySettings {
                message_token_threshold: settings.memory.message_token_threshold.into(),
                observation_token_threshold: settings.memory.observation_token_threshold.into(),
                reflection_token_threshold: settings.memory.reflection_token_threshold.into(),
                context_tokens: settings.memory.context_tokens.into(),
                ..MemorySettings::default()
            };
            Memory::new(Arc::clone(&store), observer, Arc::clone(&clock), bounds)
        });
        tools.extend(memory.clone().into_iter().flat_map(memory_tools));
        Ok(Self {
            store,
            memory,
            tools,
        })
    }

    /// What the next turn is told of earlier ones.
    pub fn recollection(&self) -> Option<Arc<dyn Recollection>> {
        let memory = self.memory.clone()?;
        Some(Arc::new(Remembered(memory)))
    }
}

struct Remembered(Memory);

impl Recollection for Remembered {
    fn recall(&self, user: &UserId, session: &SessionId) -> BoxFuture<'_, Option<Text>> {
        let (user, session) = (user.clone(), session.clone());
        Box::pin(async move {
            let context = self.0.context(&user, &session).await;
            context.ok().flatten().map(Text::from)
        })
    }
}
