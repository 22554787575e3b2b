//! What the librarian and the chronicler work with: graph, library and memory over the database of the sessions.

use crate::config::Loaded;
use crate::embedder::embedder;
use crate::model_choice::ModelChoice;
use lango_core::{
    BoxFuture, Clock, MemoryContext, Model, Recollection, SessionId, StoreError, Tool, UserId,
};
use lango_engine::SystemClock;
use lango_knowledge::{
    GraphNeighbours, GraphSettings, Library, Memory, MemorySettings, Neighbours, graph_tools,
    library_tools, memory_tools, retrieve_tool,
};
use lango_store::Store;
use std::sync::Arc;

/// What is known, and the tools over it. The database is opened when one of them first needs it.
pub struct Knowledge {
    /// Documents, saved knowledge and learnings.
    pub library: Library,
    /// What is remembered of conversations, unless that is turned off.
    pub memory: Option<Memory>,
    /// What does not work as it is configured.
    pub warning: Option<String>,
    /// The tools.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl Knowledge {
    /// What the configuration asks for. `observer` is the model that observes; without one the built-in rules do.
    pub async fn of(
        loaded: &Loaded,
        store: &Arc<Store>,
        providers: &ModelChoice<'_>,
        observer: Option<Arc<dyn Model>>,
    ) -> Result<Self, StoreError> {
        let settings = &loaded.settings;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let embedder = embedder(&settings.embedding, providers, store.clone()).await;
        let (embedder, warning) = match embedder {
            Ok(embedder) => (embedder, None),
            Err(detail) => (
                None,
                Some(format!("the library is searched by words alone: {detail}")),
            ),
        };
        let retrieves = embedder.is_some();
        let library = Library::new(store.clone(), embedder, Arc::clone(&clock));
        let mut tools = library_tools(&library);
        if retrieves {
            let neighbours = settings.graph.enabled.then(|| {
                let neighbours = GraphNeighbours(store.clone());
                Arc::new(neighbours) as Arc<dyn Neighbours>
            });
            tools.push(retrieve_tool(&library, neighbours));
        }
        if settings.graph.enabled {
            let bounds = GraphSettings {
                max_depth: settings.graph.max_depth as usize,
                max_results: settings.graph.max_results as usize,
            };
            tools.extend(graph_tools(store.clone(), Arc::clone(&clock), bounds));
        }
        let memory = (settings.memory.enabled != Some(false)).then(|| {
            let bounds = MemorySettings {
                message_token_threshold: settings.memory.message_token_threshold.into(),
                observation_token_threshold: settings.memory.observation_token_threshold.into(),
                reflection_token_threshold: settings.memory.reflection_token_threshold.into(),
                context_tokens: settings.memory.context_tokens.into(),
                ..MemorySettings::default()
            };
            Memory::new(store.clone(), observer, Arc::clone(&clock), bounds)
        });
        tools.extend(memory.clone().into_iter().flat_map(memory_tools));
        Ok(Self {
            library,
            memory,
            warning,
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
    fn recall(&self, user: &UserId, session: &SessionId) -> BoxFuture<'_, Option<MemoryContext>> {
        let (user, session) = (user.clone(), session.clone());
        Box::pin(async move {
            let context = self.0.context(&user, &session).await;
            context.ok().flatten()
        })
    }
}
