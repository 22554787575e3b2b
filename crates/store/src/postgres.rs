//! What only PostgreSQL has: connections that may be lost, leases of sessions among replicas, and an index for vectors.
//!
//! Every statement is one round trip on one of a few connections. A session has an owner by a lease on the database's clock,
//! with a fence that only this lease has, and every append is conditional on it. A lost connection and a restart of the server
//! are retried for a bounded time.

mod acquire;
mod address;
mod changes;
mod database;
pub(crate) mod failure;
pub(crate) mod leases;
mod migrations;
mod password;
pub(crate) mod pgvector;
#[cfg(test)]
mod plans;
pub(crate) mod renewer;
pub(crate) mod statements;
mod tls;

use crate::engine::{Mode, Work, values};
use crate::library::VectorSearch;
use crate::tables::OpenMode;
use acquire::SessionLeases;
use address::Address;
pub use address::without_password;
use database::Database;
use lango_core::{BoxLease, BusyPolicy, SessionId, StoreError};
use leases::{Lease, LeaseTable};
use renewer::LeaseRenewer;
use statements::leases::SUCCEEDED;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// What can be chosen about a store in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOptions {
    /// How long a session stays held by a copy that is not heard of any more, and for how long a database that does not
    /// answer is waited for.
    pub lease: Duration,
    /// How many connections there are at most, beside one for what other copies say.
    pub connections: usize,
    /// What it is opened for.
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
    database: Arc<Database>,
    leases: SessionLeases,
}

impl PostgresEngine {
    /// The database at an address, which is connected to, and made ready if need be, when it is first used.
    pub(crate) fn at(address: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let address = Address::parse(address)?;
        let database = Database::at(address.clone(), options)?;
        let database = Arc::new(database);
        let table = Arc::new(LeaseTable::new(new_name()?, options.lease));
        let leases = SessionLeases {
            database: Arc::clone(&database),
            renewer: LeaseRenewer::new(table, address),
            queues: Arc::default(),
        };
        Ok(Self { database, leases })
    }

    /// Connects and brings the schema up to date, if that has not happened yet.
    pub async fn open_now(&self) -> Result<(), StoreError> {
        self.database.open().await
    }

    pub(crate) fn min_indexed_vectors(&self) -> u64 {
        self.database.min_indexed_vectors
    }

    /// Creates the index of vectors; see [`pgvector`].
    pub(crate) async fn index_vectors(&self) -> Result<VectorSearch, StoreError> {
        self.database.open().await?;
        let created = pgvector::create_index(&self.database).await;
        created.map_err(|failure| self.database.error(failure))
    }

    fn table(&self) -> &Arc<LeaseTable> {
        &self.leases.renewer.leases
    }

    /// Runs work on a connection, again if it has to be.
    pub(crate) async fn run<A, T>(
        &self,
        mode: Mode,
        given: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.database.run(mode, given, work).await
    }

    /// Notifies other replicas. It is a hint, which may be lost.
    pub(crate) fn notify(&self, channel: &'static str, subject: &str) {
        if self.start().is_ok() {
            self.table().notify(channel, subject);
        }
    }

    /// Returns the address of the database without its password.
    pub(crate) fn shown_place(&self) -> String {
        self.database.shown().to_owned()
    }

    /// Returns the fence of the lease that this replica has of a session.
    pub(crate) fn fence_of(&self, session: &SessionId) -> Option<i64> {
        self.table().of(session).map(|lease| lease.fence)
    }

    /// This replica's name among all.
    pub(crate) fn replica(&self) -> &str {
        &self.table().replica
    }

    /// Takes a session's lease.
    pub(crate) async fn lease(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<BoxLease, StoreError> {
        self.leases.acquire(session, busy_policy).await
    }

    /// The lease that this replica has on a session, or had and did not give up.
    pub(crate) fn lease_of(&self, session: &SessionId) -> Option<Arc<Lease>> {
        self.table().of(session)
    }

    /// Starts to renew leases and to notify other replicas, if that has not happened yet.
    pub(crate) fn start(&self) -> Result<(), StoreError> {
        self.leases.renewer.start()
    }

    /// Why nothing was stored under a lease: if it ran out because the database did not answer, that is the reason, unless
    /// another replica has taken the session since.
    pub(crate) async fn explain(&self, error: StoreError, lease: Option<&Lease>) -> StoreError {
        let Some(lease) = lease.filter(|lease| lease.has_run_out()) else {
            return error;
        };
        let detail = match &error {
            StoreError::Unreachable { detail, .. } => detail.clone(),
            StoreError::Lost { .. } => {
                let given = (lease.session.clone(), lease.fence);
                let succeeded = self.run(Mode::Read, given, |tx, (session, fence)| {
                    Box::pin(async move {
                        tx.query_opt(SUCCEEDED, values![session, fence], |_| Ok(()))
                            .await
                    })
                });
                match succeeded.await {
                    Ok(Some(())) => return error,
                    Ok(None) => "there was no word from it for too long".to_owned(),
                    Err(error) => return error,
                }
            }
            _ => return error,
        };
        let (session, length) = (&lease.session, self.table().length);
        StoreError::Unreachable {
            place: self.database.place().to_owned(),
            detail: format!(
                "{detail}; session `{session}` was not renewed for {length:?} and is not held here any more"
            ),
        }
    }
}

/// A name that no other replica has.
fn new_name() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Failed {
        detail: format!("the system gives no random numbers: {error}"),
    })?;
    let mut name = String::with_capacity(32);
    for byte in bytes {
        // A string takes whatever is written.
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}
