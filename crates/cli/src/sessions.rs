//! Where everything is kept, and the store of a run with all its faces.

use crate::app::Keeping;
use crate::config::{SessionSettings, StoreLocation};
use crate::exit::{Exit, Failure};
use lango_core::{
    AgentName, AttachmentStore, Changes, SessionCatalog, SessionId, SessionStore, StoreError,
    TaskLog, TaskStore, WebCache,
};
use lango_engine::{Conversation, Runner, RunnerError};
use lango_store::{PostgresOptions, Store};
use std::sync::Arc;

/// The database of the configuration. It is opened when it is first used.
#[derive(Clone)]
pub struct Kept {
    /// The database.
    pub database: Arc<Store>,
    /// What other copies of lango change in it, where there can be some.
    pub changes: Option<Arc<dyn Changes>>,
}

impl Kept {
    /// Where fetched web pages are stored: in the database, or in memory where nothing is to be kept.
    pub fn web_cache(&self, keeping: Keeping) -> Arc<dyn WebCache> {
        match keeping {
            Keeping::Nothing => Arc::new(Store::in_memory()),
            Keeping::Everything => Arc::clone(&self.database) as Arc<dyn WebCache>,
        }
    }

    /// The database that the configuration names.
    pub fn of(settings: &SessionSettings, root: AgentName) -> Result<Self, StoreError> {
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
                    changes: Some(Arc::clone(&store) as Arc<dyn Changes>),
                    database: store,
                })
            }
        }
    }
}

/// A store with all its faces.
pub struct Sessions {
    /// For turns.
    pub store: Arc<dyn SessionStore>,
    /// For people.
    pub catalog: Arc<dyn SessionCatalog>,
    /// For callers from outside.
    pub tasks: Arc<dyn TaskStore>,
    /// For tasks that are stored with events.
    pub task_log: Arc<dyn TaskLog>,
    /// For the files of messages.
    pub attachments: Arc<dyn AttachmentStore>,
    /// Whether anything of it outlives the process.
    pub(crate) is_kept: bool,
}

/// Opens a session for another turn. One with an event that cannot be read is refused with how to look at it.
pub async fn open_session(runner: &Runner, session: SessionId) -> Result<Conversation, Failure> {
    match runner.open(session.clone()).await {
        Err(RunnerError::Store(error @ StoreError::Damaged { .. })) => {
            Err(Failure::new(Exit::Failed, error.to_string())
                .next(format!("`lango sessions verify {session}` tells more")))
        }
        opened => Ok(opened?),
    }
}
