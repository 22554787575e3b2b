//! Sessions in a PostgreSQL database, for many copies of lango at once.
//!
//! Every statement is one round trip on one of a few connections. A session is held by a lease on the database's clock, with
//! a number that only this hold has, and every append is conditional on it. A connection that breaks and a server that
//! restarts are ridden out for a bounded time.

mod address;
mod asking;
mod database;
mod failure;
mod graph;
mod library;
mod memory;
mod migrations;
mod statements;
mod text;
mod tls;

use crate::library::nearest::BitsInMemory;
use address::Address;
use database::Database;
use lango_core::{AgentName, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// What can be chosen about a [`PostgresStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOptions {
    /// How long a session stays held by a copy that is not heard of any more, and for how long a database that does not
    /// answer is waited for.
    pub lease: Duration,
    /// How many connections there are at most, beside one for what other copies say.
    pub connections: usize,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            connections: 8,
        }
    }
}

/// Sessions in a PostgreSQL database.
///
/// Its futures need a tokio runtime.
pub struct PostgresStore {
    database: Arc<Database>,
    root_agent: AgentName,
    /// The signs of vectors that were searched.
    bits: Arc<BitsInMemory>,
}

impl PostgresStore {
    /// The database at an address such as `postgres://user:password@host:5432/database?sslmode=verify-full`, which is
    /// connected to, and made ready if need be, when it is first used.
    ///
    /// `root_agent` is the author of stored messages that have none because they are older than authors.
    pub fn at(address: &str, root_agent: AgentName) -> Result<Self, StoreError> {
        Self::with(address, root_agent, PostgresOptions::default())
    }

    /// The same with other options.
    pub fn with(
        address: &str,
        root_agent: AgentName,
        options: PostgresOptions,
    ) -> Result<Self, StoreError> {
        let address = Address::parse(address)?;
        let database = Database::at(address, options.connections, options.lease)?;
        Ok(Self {
            database: Arc::new(database),
            root_agent,
            bits: Arc::default(),
        })
    }

    /// Connects and brings the schema up to date, if that has not happened yet.
    pub async fn open_now(&self) -> Result<(), StoreError> {
        self.database.open().await
    }
}
