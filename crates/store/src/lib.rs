//! Persistence: every SQL statement and every migration of lango.
//!
//! A [`Store`] is one database: a SQLite file, the default on a single machine; a PostgreSQL database that many replicas of lango
//! share; or an in-memory database that is gone when the process ends. All of them implement
//! [`SessionStore`](lango_core::SessionStore) and [`SessionCatalog`](lango_core::SessionCatalog) and pass the same contract suite.
//! Attachments are stored in the same database as the sessions that refer to them
//! ([`AttachmentStore`](lango_core::AttachmentStore)).
//!
//! ```no_run
//! use lango_core::{AgentName, NewSession, SessionId, SessionStore, StoreError, Timestamp, UserId};
//! use lango_store::Store;
//!
//! # async fn example() -> Result<(), StoreError> {
//! let store = Store::open_sqlite("lango.db", AgentName::from("lango-orchestrator"))?;
//! let id = SessionId::from("s_1");
//! store.create(NewSession { id: id.clone(), user: UserId::from("local"), created: Timestamp(0) }).await?;
//! let head = store.read_head(&id).await?;
//! assert_eq!(head.next_seq, 1);
//! # Ok(())
//! # }
//! ```

mod access_tokens;
mod agent_memory;
mod approvals;
pub mod archive;
mod attachments;
mod backend;
mod catalog;
mod chain;
mod decode;
pub mod graph;
mod library;
mod live_changes;
mod log;
mod payment;
mod postgres;
mod projection;
mod queue;
mod sqlite;
mod store;
pub mod tables;
mod tasks;
pub mod transfer;
mod vault;
mod web_cache;

/// A future with the result of a database operation.
pub type StoreFuture<'a, T> = lango_core::BoxFuture<'a, Result<T, lango_core::StoreError>>;

pub use agent_memory::{
    CommitOutcome, ForgetRequest, Generation, MemoryId, MemoryOrder, MemoryOwner, MemoryRecord,
    MemoryStep, NewMemoryRecord, NewSavedMemory, ParseMemoryIdError, PromptMemory, SaveOutcome,
    SavedMemory, TurnRange, UnobservedTurn, Watermark,
};
pub use chain::LogVerifier;
pub use library::{
    CollectionId, CollectionRow, DeleteMode, DocumentFilter, DocumentPart, DocumentRow,
    KnowledgeRow, LearningRow, NewChunk, NewDocument, QueryWord, Ranking, SearchHit, VectorOutcome,
    VectorSearch,
};
pub use live_changes::LiveChanges;
pub use postgres::{PostgresOptions, without_password};
pub use sqlite::lock::ServerLock;
pub use store::Store;
pub use vault::MAX_VAULT_EVENTS;
pub use web_cache::USER_CACHE_BYTES;
