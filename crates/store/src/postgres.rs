//! The PostgreSQL backend: connections that may be lost, session leases shared by replicas, and an index for vectors.
//!
//! Every statement is one round trip on a pooled connection. A replica owns a session through a lease, which is timed
//! by the database's clock and has a unique fencing token. Every append is conditional on the lease. Work is retried
//! for a bounded time when a connection is lost or the server restarts.

mod acquire;
mod address;
mod database;
pub(crate) mod error;
mod identity;
pub(crate) mod leases;
mod migrations;
mod password;
pub(crate) mod pgvector;
#[cfg(test)]
mod plans;
pub(crate) mod renewer;
mod statements;
mod tls;

use crate::backend::text::hex;
use crate::backend::{Row, WorkMode, owned, values};
use crate::decode::failed;
use crate::library::VectorSearch;
use crate::queue::Queues;
use crate::tables::OpenMode;
use address::Address;
pub use address::without_password;
use database::Database;
use futures_util::stream::{self, StreamExt as _};
use identity::Identity;
use lango_core::{BoxStream, ChangeFeed, SessionId, StoreChange, StoreError};
use leases::{Lease, LeaseTable};
use statements::{HAS_NO_SERVER, HAS_SUCCESSOR};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Options of a PostgreSQL store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Length of a session lease, which is also how long to retry when the database does not answer. After this time other
    /// replicas can take over the sessions of a replica that has stopped.
    pub lease: Duration,
    /// Maximum number of connections, not counting the one for notifications.
    pub connections: usize,
    pub open_mode: OpenMode,
    /// Number of vectors above which pgvector's index is created, if the database has pgvector.
    pub min_indexed_vectors: u64,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            connections: 8,
            open_mode: OpenMode::Normal,
            min_indexed_vectors: 20_000,
        }
    }
}

/// A PostgreSQL database. Dropping it waits briefly until the leases are released.
pub(crate) struct PostgresBackend {
    pub(crate) database: Arc<Database>,
    leases: Arc<LeaseTable>,
    /// The thread that renews the leases, started on first use.
    renewer: Mutex<Option<JoinHandle<()>>>,
    /// The queues for sessions within this replica.
    queues: Arc<Queues>,
}

impl PostgresBackend {
    /// Creates a backend for the database at an address. It connects, and migrates the schema, on first use.
    pub(crate) fn at(address: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let address = Address::parse(address)?;
        Ok(Self {
            database: Arc::new(Database::at(address, options)?),
            leases: Arc::new(LeaseTable::new(new_name()?, options.lease)),
            renewer: Mutex::default(),
            queues: Arc::default(),
        })
    }

    pub(crate) async fn index_vectors(&self) -> Result<VectorSearch, StoreError> {
        self.database.open().await?;
        let created = pgvector::create_index(&self.database).await;
        created.map_err(|failure| self.database.error(failure))
    }

    /// Registers this replica as a server. It takes the replica name stored in the folder, unless another process uses that name.
    pub(crate) fn attach_server(&self, folder: &Path) -> Result<(), StoreError> {
        let identity = Identity::take(folder, &self.leases.random_name).map_err(|error| {
            let folder = folder.display();
            failed(format!(
                "the name of this replica cannot be stored in `{folder}`: {error}"
            ))
        })?;
        // A second call has no effect.
        let _ = self.leases.server.set(identity);
        self.leases.wake.notify_one();
        self.start()
    }

    /// Returns whether a server is connected.
    pub(crate) async fn has_server(&self) -> Result<bool, StoreError> {
        let is_free = self.database.query_opt(
            WorkMode::WriteAutocommit,
            HAS_NO_SERVER,
            Vec::new(),
            |row| row.get(0),
        );
        Ok(is_free.await? != Some(true))
    }

    /// Notifies other replicas, best effort.
    pub(crate) fn notify(&self, channel: &'static str, subject: &str) {
        if self.start().is_ok() {
            self.leases.notify(channel, subject);
        }
    }

    pub(crate) fn replica(&self) -> &str {
        self.leases.replica()
    }

    /// Returns the lease of a session that this replica has not released. It may have expired.
    pub(crate) fn lease_of(&self, session: &SessionId) -> Option<Arc<Lease>> {
        self.leases.of(session)
    }

    /// Improves the error of an append that failed under a lease. If the lease expired because the database did not answer, the
    /// error says so, unless another replica has since acquired the session.
    pub(crate) async fn explain(&self, error: StoreError, lease: Option<&Lease>) -> StoreError {
        let Some(lease) = lease.filter(|lease| lease.has_expired()) else {
            return error;
        };
        let detail = match &error {
            StoreError::Unreachable { detail, .. } => detail.clone(),
            StoreError::LeaseLost { .. } => {
                let values = owned(values![lease.session, lease.fence]);
                let read = |_: Row<'_>| Ok(());
                let succeeded =
                    self.database
                        .query_opt(WorkMode::Read, HAS_SUCCESSOR, values, read);
                match succeeded.await {
                    Ok(Some(())) => return error,
                    Ok(None) => "it did not answer for too long".to_owned(),
                    Err(error) => return error,
                }
            }
            _ => return error,
        };
        let (session, length) = (&lease.session, self.leases.length);
        StoreError::Unreachable {
            place: self.database.address.place.clone(),
            detail: format!(
                "{detail}; the lease of session `{session}` was not renewed for {length:?} and has expired"
            ),
        }
    }
}

/// Notifications about changes made by other replicas.
impl ChangeFeed for PostgresBackend {
    fn subscribe(&self) -> BoxStream<'static, StoreChange> {
        let received = self.leases.changed.subscribe();
        // If the renewer cannot be started there are no notifications, but subscribers also poll the store.
        let _ = self.start();
        let changes = stream::unfold(received, |mut received| async move {
            match received.recv().await {
                Ok(change) => Some((change, received)),
                Err(RecvError::Lagged(_)) => Some((StoreChange::Anything, received)),
                Err(RecvError::Closed) => None,
            }
        });
        changes.boxed()
    }
}

fn new_name() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        failed(format!(
            "the operating system has no random numbers: {error}"
        ))
    })?;
    Ok(hex(&bytes))
}
