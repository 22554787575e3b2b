//! Sessions in a PostgreSQL database, for many copies of lango at once.
//!
//! Every statement is one round trip on one of a few connections. A session is held by a lease on the database's clock, with
//! a number that only this hold has, and every append is conditional on it. A connection that breaks and a server that
//! restarts are ridden out for a bounded time.

mod address;
mod append;
mod approvals;
mod batch;
mod changes;
mod database;
mod effects;
mod end;
pub(crate) mod failure;
mod hold;
mod import;
pub(crate) mod keeper;
mod leases;
mod migrations;
mod password;
pub(crate) mod pgvector;
#[cfg(test)]
mod plans;
mod rows;
mod sessions;
pub(crate) mod statements;
mod text;
mod tls;

use crate::engine::{Mode, Tx, Work};
use crate::library::VectorSearch;
use crate::tables::OpenMode;
use address::Address;
pub use address::without_password;
use append::Appender;
use database::{Database, Purpose};
use end::Ends;
use failure::Failure;
use hold::Holds;
use keeper::Keeper;
use lango_core::{AgentName, StoreError};
use leases::Leases;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

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
    /// The number of vectors that are not in memory and that a search scans at most, where pgvector's index can be used
    /// instead; 64 times as many if nothing has changed since the last search, because they stay in memory.
    pub max_scanned_vectors: u64,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            connections: 8,
            open_mode: OpenMode::Normal,
            max_scanned_vectors: 20_000,
        }
    }
}

/// Sessions in a PostgreSQL database.
///
/// Its futures need a tokio runtime. Dropping the store waits a moment for the database to hear of what was let go of.
pub(crate) struct PostgresEngine {
    database: Arc<Database>,
    root_agent: AgentName,
    holds: Holds,
    /// Where logs are known to end.
    ends: Arc<Ends>,
}

impl PostgresEngine {
    /// The database at an address, which is connected to, and made ready if need be, when it is first used.
    pub fn with(
        address: &str,
        root_agent: AgentName,
        options: PostgresOptions,
    ) -> Result<Self, StoreError> {
        let address = Address::parse(address)?;
        let database = Database::at(address.clone(), options)?;
        let database = Arc::new(database);
        let leases = Arc::new(Leases::new(new_name()?, options.lease));
        let holds = Holds {
            database: Arc::clone(&database),
            keeper: Keeper::new(leases, address),
            lines: Arc::default(),
        };
        Ok(Self {
            database,
            root_agent,
            holds,
            ends: Arc::default(),
        })
    }

    /// Connects and brings the schema up to date, if that has not happened yet.
    pub async fn open_now(&self) -> Result<(), StoreError> {
        self.database.open().await
    }

    pub(crate) fn max_scanned_vectors(&self) -> u64 {
        self.database.max_scanned_vectors
    }

    /// Creates the index of vectors; see [`pgvector`].
    pub(crate) async fn index_vectors(&self) -> Result<VectorSearch, StoreError> {
        self.database.open().await?;
        let created = pgvector::create_index(&self.database).await;
        created.map_err(|failure| self.database.said(failure))
    }

    fn leases(&self) -> &Arc<Leases> {
        &self.holds.keeper.leases
    }

    /// Tells other copies about something. It is a hint, so where nobody can tell it nothing is amiss.
    pub(crate) fn tell(&self, channel: &'static str, what: &str) {
        if self.holds.keeper.start().is_ok() {
            self.leases().tell(channel, what);
        }
    }

    fn appender(&self) -> Appender {
        Appender {
            database: Arc::clone(&self.database),
            leases: Arc::clone(self.leases()),
            ends: Arc::clone(&self.ends),
        }
    }

    /// The values of rows.
    fn values<T>(
        &self,
        rows: &[Row],
        value: impl Fn(&Row) -> Result<T, Failure>,
    ) -> Result<Vec<T>, StoreError> {
        let values = rows.iter().map(value).collect::<Result<_, _>>();
        values.map_err(|failure| self.database.said(failure))
    }
}

/// A name that no other copy has.
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

impl PostgresEngine {
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
        let given = &Arc::new(given);
        let purpose = match mode {
            Mode::Read | Mode::WriteOne => {
                let each = self.database.each(move |client, is_repeated| {
                    let given = Arc::clone(given);
                    Box::pin(
                        async move { work(&mut Tx::client(client, is_repeated), &given).await },
                    )
                });
                return each.await;
            }
            Mode::Snapshot => Purpose::Look,
            Mode::Write => Purpose::Change,
            Mode::WriteTwice => Purpose::RepeatableChange,
        };
        let transaction = self.database.transaction(purpose, move |transaction| {
            let given = Arc::clone(given);
            Box::pin(async move { work(&mut Tx::transaction(transaction), &given).await })
        });
        transaction.await
    }
}
