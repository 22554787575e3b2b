//! Graph, library and memory over the session database: what the librarian and the chronicler work with.

use crate::app::embedder::embedder;
use crate::app::model_selector::ModelSelector;
use lango_config::LoadedConfig;
use lango_core::{
    BoxFuture, Clock, MemoryContext, MemoryProvider, Model, SessionId, StoreError, Tool, UserId,
};
use lango_engine::SystemClock;
use lango_knowledge::{
    GraphNeighbours, GraphSettings, Library, LibraryDocument, LibraryHit, Memory, MemorySettings,
    Neighbours, graph_tools, library_tools, memory_tools, retrieve_tool,
};
use lango_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;

/// The knowledge of a user, and the tools over it. The database is opened when a tool first needs it.
pub struct Knowledge {
    /// Documents, saved knowledge and learnings.
    pub library: Library,
    /// Memory of earlier conversations, unless that is turned off.
    pub memory: Option<Memory>,
    /// A warning if a configured feature does not work.
    pub warning: Option<String>,
    pub tools: Vec<Arc<dyn Tool>>,
}

impl Knowledge {
    /// Builds what the configuration asks for. `observer` is the model that observes conversations; without one the
    /// built-in rules do.
    pub async fn from_config(
        loaded: &LoadedConfig,
        store: &Arc<Store>,
        providers: &ModelSelector<'_>,
        observer: Option<Arc<dyn Model>>,
    ) -> Result<Self, StoreError> {
        let settings = &loaded.settings;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let embedder = embedder(&settings.embedding, providers, store.clone()).await;
        let (embedder, warning) = match embedder {
            Ok(embedder) => (embedder, None),
            Err(detail) => (
                None,
                Some(format!(
                    "the library is searched by keywords only: {detail}"
                )),
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

    /// Returns the source of the memory that a turn gets as context.
    pub fn memory_provider(&self) -> Option<Arc<dyn MemoryProvider>> {
        let memory = self.memory.clone()?;
        Some(Arc::new(StoredMemory(memory)))
    }
}

struct StoredMemory(Memory);

impl MemoryProvider for StoredMemory {
    fn recall(&self, user: &UserId, session: &SessionId) -> BoxFuture<'_, Option<MemoryContext>> {
        let (user, session) = (user.clone(), session.clone());
        Box::pin(async move {
            let context = self.0.context(&user, &session).await;
            context.ok().flatten()
        })
    }
}

/// Returns a document as JSON.
pub fn document_json(document: &LibraryDocument) -> Value {
    json!({
        "id": document.id,
        "collection": document.collection,
        "session": document.session,
        "source": document.source.name,
        "trust": document.source.trust,
        "title": document.title,
        "size": document.size,
        "added": document.added,
        "chunks": document.chunks,
    })
}

/// Returns a search hit as JSON.
pub fn hit_json(hit: &LibraryHit) -> Value {
    json!({
        "id": hit.id,
        "document": hit.document,
        "collection": hit.collection,
        "score": hit.score,
        "source": hit.source.name,
        "trust": hit.source.trust,
        "title": hit.title,
        "heading": hit.heading,
        "position": hit.position,
        "snippet": hit.snippet,
    })
}
