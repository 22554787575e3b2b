//! All that lango keeps, as one seam: whoever holds a database need not know which one it is.

use crate::archive::Keeper;
use crate::graph::GraphRows;
use crate::library::LibraryRows;
use crate::recollection::MemoryRows;
use crate::tables::Destination;
use lango_core::{BoxFuture, SessionCatalog, SessionStore, StoreError, TaskStore};

/// What a database gives, or why not.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A database with sessions, tasks, knowledge and memory. It is opened when it is first used, so that whoever only might
/// need it leaves no trace.
pub trait Database:
    SessionStore
    + SessionCatalog
    + TaskStore
    + LibraryRows
    + GraphRows
    + MemoryRows
    + Keeper
    + Destination
{
    /// Opens it now, if that has not happened yet: it is made if need be, and an older schema is brought up to date.
    fn ready(&self) -> Answer<'_, ()>;
}
