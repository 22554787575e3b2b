//! The parts that only PostgreSQL needs: connections that may be lost, leases of sessions among replicas, and an index for vectors.
//!
//! Every statement is one round trip on a pooled connection. A replica owns a session by a lease on the database's clock, with a
//! unique fencing token, and every append is conditional on it. Work is retried for a bounded time when a connection is lost or
//! the server restarts.

mod acquire;
mod address;
mod database;
pub(crate) mod failure;
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

use crate::engine::text::hex;
use crate::engine::{Mode, Row, owned, values};
use crate::library::VectorSearch;
use crate::queue::Queues;
use crate::stored::failed;
use crate::tables::OpenMode;
use address::Address;
pub use address::without_password;
use database::Database;
use futures_util::stream::{self, StreamExt as _};
use identity::Identity;
use lango_core::{BoxStream, Change, Changes, SessionId, StoreError};
use leases::{Lease, LeaseTable};
use statements::{HAS_NO_SERVER, SUCCEEDED};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Options of a store in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOptions {
    /// How long a replica that stopped answering keeps its sessions, and how long to retry when the database does not answer.
    pub lease: Duration,
    /// The largest number of connections, not counting the one for notifications.
    pub connections: usize,
    /// Whether it is the target of a transfer.
    pub open_mode: OpenMode,
    /// The number of vectors from which on pgvector's index is created, where the database has pgvector.
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

/// A PostgreSQL database. Dropping it waits a moment until the leases are released.
pub(crate) struct PostgresEngine {
    pub(crate) database: Arc<Database>,
    leases: Arc<LeaseTable>,
    /// The thread that renews the leases, which is started when it is first needed.
    renewer: Mutex<Option<JoinHandle<()>>>,
    /// The waiters of this replica.
    queues: Arc<Queues>,
}

impl PostgresEngine {
    /// Returns the database at an address, which is opened, and migrated if necessary, when it is first used.
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
        // A second call changes nothing.
        let _ = self.leases.server.set(identity);
        self.leases.wake.notify_one();
        self.start()
    }

    /// Returns whether a server is connected.
    pub(crate) async fn has_server(&self) -> Result<bool, StoreError> {
        let is_free = self
            .database
            .query_opt(Mode::WriteOne, HAS_NO_SERVER, Vec::new(), |row| row.get(0));
        Ok(is_free.await? != Some(true))
    }

    /// Notifies other replicas. The notification may be lost.
    pub(crate) fn notify(&self, channel: &'static str, subject: &str) {
        if self.start().is_ok() {
            self.leases.notify(channel, subject);
        }
    }

    pub(crate) fn replica(&self) -> &str {
        self.leases.replica()
    }

    /// Returns the lease of a session, valid or not, that this replica has not released.
    pub(crate) fn lease_of(&self, session: &SessionId) -> Option<Arc<Lease>> {
        self.leases.of(session)
    }

    /// Explains why an append under a lease failed: if the lease expired because the database did not answer, that is the reason,
    /// unless another replica has acquired the session since.
    pub(crate) async fn explain(&self, error: StoreError, lease: Option<&Lease>) -> StoreError {
        let Some(lease) = lease.filter(|lease| lease.has_expired()) else {
            return error;
        };
        let detail = match &error {
            StoreError::Unreachable { detail, .. } => detail.clone(),
            StoreError::Lost { .. } => {
                let values = owned(values![lease.session, lease.fence]);
                let read = |_: Row<'_>| Ok(());
                let succeeded = self.database.query_opt(Mode::Read, SUCCEEDED, values, read);
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

/// Notifications of what other replicas changed.
impl Changes for PostgresEngine {
    fn changes(&self) -> BoxStream<'static, Change> {
        let received = self.leases.changed.subscribe();
        // Without the renewer there are no notifications; listeners also poll the store.
        let _ = self.start();
        let changes = stream::unfold(received, |mut received| async move {
            match received.recv().await {
                Ok(change) => Some((change, received)),
                Err(RecvError::Lagged(_)) => Some((Change::Anything, received)),
                Err(RecvError::Closed) => None,
            }
        });
        changes.boxed()
    }
}

fn new_name() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| failed(format!("the system gives no random numbers: {error}")))?;
    Ok(hex(&bytes))
}
