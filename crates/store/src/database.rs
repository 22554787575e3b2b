//! All that lango keeps, as one seam: whoever holds a database need not know which one it is.

use crate::agent_memory::MemoryRows;
use crate::graph::GraphRows;
use crate::library::LibraryRows;
use crate::store::Store;
use lango_core::{
    AgentName, AttachmentStore, BoxFuture, PaymentStore, SessionCatalog, SessionStore, StoreError,
    TaskStore, VaultStore, WebCache,
};
use std::sync::Arc;

/// What a database gives, or why not.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A database with sessions, tasks, knowledge and memory. It is opened when it is first used, so that whoever only might
/// need it leaves no trace.
pub trait Database:
    SessionStore
    + SessionCatalog
    + TaskStore
    + AttachmentStore
    + WebCache
    + VaultStore
    + PaymentStore
    + LibraryRows
    + GraphRows
    + MemoryRows
{
    /// The store itself, for what only it has.
    fn store(&self) -> &Store;

    /// Opens it now, if that has not happened yet: it is made if need be, and an older schema is brought up to date.
    fn ready(&self) -> Answer<'_, ()>;

    /// Opens it for somebody who only reads: one that is where nobody can write is read as it is.
    fn readable(&self) -> Answer<'_, ()> {
        self.ready()
    }
}

impl std::ops::Deref for dyn Database + '_ {
    type Target = Store;

    fn deref(&self) -> &Store {
        self.store()
    }
}

/// The database at a place: `sqlite:PATH`, or `postgres://user:password@host/database`. It is opened when it is first used.
///
/// `root_agent` is the author of stored messages that have none because they are older than authors.
pub fn database_at(place: &str, root_agent: AgentName) -> Result<Arc<dyn Database>, StoreError> {
    match place.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(Arc::new(Store::sqlite(path, root_agent)?))
        }
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(Store::postgres(place, root_agent)?)),
        // What else it says may be a secret.
        _ => Err(StoreError::Failed {
            detail: "a database is `sqlite:PATH` or `postgres://user:password@host/database`"
                .to_owned(),
        }),
    }
}
