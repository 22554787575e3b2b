//! The information that the HTTP API shows about this program.

use super::ServedApp;
use crate::app::failure::Failure;
use crate::app::{agents, archive, doctor, grants, knowledge, mcp, model_table};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use lango_api::{ApiContext, Part, Program};
use lango_config::StoreLocation;
use lango_core::{
    BoxFuture, BoxStream, Grant, PendingApproval, SessionCatalog, SessionId, SessionQuery, Text,
    TurnId, UserId,
};
use lango_engine::TreeMode;
use lango_knowledge::{LibraryQuery, LibrarySearchMode};
use lango_models::OfflineModel;
use lango_server::latest_attempt;
use lango_store::{Generation, MemoryOrder, MemoryOwner};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The most lines of an export that are buffered.
const MAX_PENDING_LINES: usize = 16;

/// The most documents or memories in a list.
const MAX_LISTED: usize = 200;

/// The most results of a search.
const MAX_HITS: usize = 20;

/// How many recent sessions to list observations of, and how many of each.
const RECENT_SESSIONS: usize = 30;
const RECENT_OBSERVATIONS: usize = 3;

impl ApiContext for ServedApp {
    fn owner(&self) -> UserId {
        self.with_app(|app| app.user())
    }

    fn visible_users(&self, user: &UserId) -> Vec<UserId> {
        if *user == self.owner() {
            self.users()
        } else {
            vec![user.clone()]
        }
    }

    fn folder(&self) -> String {
        self.with_app(|app| app.folder())
    }

    fn program(&self) -> Program {
        let agents = self.lock();
        let (app, model) = (&agents.app, agents.model.name().to_owned());
        Program {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            is_demo: model == OfflineModel::NAME,
            model,
            single_agent: app.tree.mode == TreeMode::Single,
            has_memory: self.memory.is_some(),
            has_knowledge: app.knowledge.is_some(),
            store: match &app.loaded.settings.session.store {
                StoreLocation::Sqlite(_) => "sqlite".to_owned(),
                StoreLocation::Postgres(_) => "postgres".to_owned(),
            },
        }
    }

    fn describe<'a>(
        &'a self,
        part: Part,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let described = match part {
                Part::Agents => Ok(self.agents()),
                Part::Tools => Ok(self.tools()),
                Part::Mcp => Ok(self.mcp_servers()),
                Part::Config => Ok(self.with_app(|app| lango_config::json(&app.loaded))),
                Part::Models => self.models().await,
                Part::Knowledge => self.knowledge(user).await,
                Part::Memory => self.memories(user).await,
                Part::Doctor => {
                    let _one = self.checks.lock().await;
                    Ok(json!({ "rows": doctor::report(self.flags.clone()).await }))
                }
            };
            described.map_err(|failure| failure.to_string())
        })
    }

    fn search_knowledge<'a>(
        &'a self,
        user: &'a UserId,
        query: &'a str,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let Some(library) = &self.library else {
                return Ok(json!({ "hits": [] }));
            };
            let query = LibraryQuery {
                text: query.to_owned(),
                limit: MAX_HITS,
                collections: Vec::new(),
                mode: LibrarySearchMode::Fused,
            };
            let found = library.search(user, None, &query).await;
            let found = found.map_err(|error| error.to_string())?;
            let hits: Vec<Value> = found.hits.iter().map(knowledge::hit_json).collect();
            Ok(json!({ "hits": hits, "notes": found.notes }))
        })
    }

    fn grant_pattern(
        &self,
        waiting: &PendingApproval,
        given: Option<&str>,
    ) -> Result<Text, String> {
        let pattern = self.with_app(|app| grants::pattern(app, waiting, given));
        pattern.map_err(|failure| failure.message())
    }

    fn grant_problem(&self, grant: &Grant) -> Option<String> {
        self.with_app(|app| grants::problem(app, grant))
    }

    fn cancel_task<'a>(&'a self, user: &'a UserId, turn: &'a TurnId) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(server) = self.server() else {
                return false;
            };
            match latest_attempt(&*self.sessions.tasks, user, turn).await {
                Ok(Some(task)) => server.cancel(user, &task.id).await,
                Ok(None) | Err(_) => false,
            }
        })
    }

    fn forget_session(&self, session: &SessionId) -> Result<(), String> {
        let forgotten = self.with_app(|app| app.undo.forget_session(session));
        forgotten.map_err(|error| error.to_string())
    }

    fn export(&self, session: SessionId) -> BoxStream<'static, Result<Bytes, String>> {
        let (sender, lines) = mpsc::channel(MAX_PENDING_LINES);
        let (store, exports) = (Arc::clone(&self.store), Arc::clone(&self.exports));
        tokio::spawn(async move {
            let reader = sender.clone();
            let exporting = async {
                // The semaphore is never closed.
                let _permit = exports.acquire().await.ok();
                archive::send_export(&store, &session, sender).await;
            };
            tokio::select! {
                () = reader.closed() => {}
                () = exporting => {}
            }
        });
        let lines = stream::unfold(lines, |mut lines| async move {
            lines.recv().await.map(|line| (line, lines))
        });
        lines.boxed()
    }
}

impl ServedApp {
    fn agents(&self) -> Value {
        self.with_app(|app| {
            let mut tree = agents::as_json(&app.tree, app);
            tree["absent_tools"] = json!(app.absent_tools());
            // Unreachable agents are listed as skipped, with the reason, so those in the tree are reachable.
            for agent in tree["agents"].as_array_mut().into_iter().flatten() {
                let is_remote = agent["remote"] == json!(true);
                agent["reachable"] = if is_remote { json!(true) } else { Value::Null };
            }
            tree
        })
    }

    fn tools(&self) -> Value {
        self.with_app(|app| {
            let agents = std::iter::once(&app.tree.root).chain(&app.tree.agents);
            let owned = agents.flat_map(|agent| {
                agent.tools.iter().map(|tool| {
                    json!({
                        "name": tool.spec.name,
                        "description": tool.spec.description,
                        "agent": agent.name,
                        "risk": tool.spec.risk,
                        "effect": tool.spec.effect,
                        "parameters": *tool.spec.parameters,
                    })
                })
            });
            json!({ "tools": owned.collect::<Vec<_>>(), "unmatched": app.tree.unmatched })
        })
    }

    fn mcp_servers(&self) -> Value {
        let servers = self.mcp.servers.overview().iter().map(|server| {
            let tools = server.tools.iter().map(|tool| json!(tool.name));
            json!({
                "id": server.id,
                "transport": server.transport,
                "agent": server.agent,
                "status": mcp::status(server),
                "problem": server.problem,
                "tools": tools.collect::<Vec<_>>(),
            })
        });
        json!({ "servers": servers.collect::<Vec<_>>() })
    }

    async fn models(&self) -> Result<Value, Failure> {
        let _one = self.checks.lock().await;
        let models = model_table::list(self.flags.clone()).await?;
        let current = self.lock().model.name().to_owned();
        Ok(json!({ "current": current, "models": models }))
    }

    async fn knowledge(&self, user: &UserId) -> Result<Value, Failure> {
        let Some(library) = &self.library else {
            return Ok(json!({ "collections": [], "documents": [], "is_complete": true }));
        };
        let documents = library.list(user, MAX_LISTED + 1).await?;
        let is_complete = documents.len() <= MAX_LISTED;
        let documents: Vec<Value> = documents
            .iter()
            .take(MAX_LISTED)
            .map(knowledge::document_json)
            .collect();
        let collections = self.store.all_collections(user).await?;
        let collections = collections.iter().map(|collection| {
            json!({ "name": collection.name, "chunks": collection.chunks, "session": collection.session })
        });
        Ok(json!({
            "collections": collections.collect::<Vec<_>>(),
            "documents": documents,
            "is_complete": is_complete,
        }))
    }

    /// Returns the saved memories of a user, and the last observations of recent sessions.
    async fn memories(&self, user: &UserId) -> Result<Value, Failure> {
        let saved = self.store.saved_memories(user, MAX_LISTED).await?;
        let saved = saved.iter().map(|memory| {
            json!({
                "id": memory.id.to_string(),
                "text": memory.text,
                "tags": memory.tags,
                "source": memory.source.name,
                "trust": memory.source.trust,
                "created": memory.created,
            })
        });
        let saved: Vec<Value> = saved.collect();
        let mut recollections = Vec::new();
        let recent = SessionQuery::recent(RECENT_SESSIONS);
        for session in SessionCatalog::list(&*self.store, user, recent).await? {
            let owner = MemoryOwner {
                session: session.id.clone(),
                user: user.clone(),
            };
            for generation in [
                Generation::Second,
                Generation::First,
                Generation::Observation,
            ] {
                let found = self.store.recollections(
                    &owner,
                    generation,
                    MemoryOrder::Newest,
                    RECENT_OBSERVATIONS,
                );
                recollections.extend(found.await?.iter().map(|found| {
                    json!({
                        "id": found.id.to_string(),
                        "kind": match found.generation {
                            Generation::Observation => "observation",
                            Generation::First | Generation::Second => "reflection",
                        },
                        "session": session.id,
                        "text": found.text,
                        "trust": found.source.trust,
                        "created": found.created,
                    })
                }));
            }
        }
        Ok(json!({ "saved": saved, "recollections": recollections }))
    }
}
