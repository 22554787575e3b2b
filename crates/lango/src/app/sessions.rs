//! The database of a run, and the store traits through which the rest of the program uses it.

use crate::app::Persistence;
use crate::app::failure::Failure;
use lango_config::{SessionSettings, StoreLocation};
use lango_core::{
    AgentName, AttachmentStore, ChangeFeed, SessionCatalog, SessionId, SessionStore, StoreError,
    TaskLog, TaskStore, WebCache,
};
use lango_engine::{Conversation, Runner, RunnerError};
use lango_store::{PostgresOptions, Store};
use std::sync::Arc;

/// The configured database. It is opened when it is first used.
#[derive(Clone)]
pub struct Storage {
    pub database: Arc<Store>,
    /// Notifications of changes by other replicas; only PostgreSQL has them.
    pub changes: Option<Arc<dyn ChangeFeed>>,
}

impl Storage {
    /// Returns where fetched web pages are cached: in the database, or in memory if nothing may be persisted.
    pub fn web_cache(&self, persistence: Persistence) -> Arc<dyn WebCache> {
        match persistence {
            Persistence::Nothing => Arc::new(Store::in_memory()),
            Persistence::Everything => Arc::clone(&self.database) as Arc<dyn WebCache>,
        }
    }

    /// Returns the configured database without opening it.
    pub fn from_settings(settings: &SessionSettings, root: AgentName) -> Result<Self, StoreError> {
        match &settings.store {
            StoreLocation::Sqlite(path) => Ok(Self {
                database: Arc::new(Store::sqlite(path, root)?),
                changes: None,
            }),
            StoreLocation::Postgres(address) => {
                let options = PostgresOptions {
                    lease: settings.lease.0,
                    ..PostgresOptions::default()
                };
                let store = Arc::new(Store::postgres_with(address, root, options)?);
                Ok(Self {
                    changes: Some(Arc::clone(&store) as Arc<dyn ChangeFeed>),
                    database: store,
                })
            }
        }
    }
}

/// One store behind each of the traits that it implements.
pub struct Sessions {
    pub store: Arc<dyn SessionStore>,
    pub catalog: Arc<dyn SessionCatalog>,
    pub tasks: Arc<dyn TaskStore>,
    pub task_log: Arc<dyn TaskLog>,
    pub attachments: Arc<dyn AttachmentStore>,
    /// Whether the data outlives the process.
    pub(crate) is_persistent: bool,
}

/// Opens a session for another turn. If an event cannot be read, the error names the command that examines the
/// session.
pub async fn open_session(runner: &Runner, session: SessionId) -> Result<Conversation, Failure> {
    match runner.open(session.clone()).await {
        Err(RunnerError::Store(error @ StoreError::Damaged { .. })) => {
            Err(Failure::failed(error.to_string())
                .next(format!("run `lango sessions verify {session}` for details")))
        }
        opened => Ok(opened?),
    }
}
