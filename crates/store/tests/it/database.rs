//! An empty database for a test. The same tests run on each kind of database.

use lango_store::{PostgresOptions, Store};
use lango_testkit::postgres;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// The name of a root agent, different from every default.
pub(crate) const ROOT: &str = "custom-root";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    Sqlite,
    Postgres,
    /// PostgreSQL with pgvector, whose index is created for any number of vectors.
    Pgvector,
}

/// An empty database, for one test.
pub(crate) struct TestDatabase {
    _folder: TempDir,
    kind: DatabaseKind,
    pub address: String,
}

impl TestDatabase {
    pub(crate) fn new(kind: DatabaseKind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = match kind {
            DatabaseKind::Sqlite => format!("sqlite:{}", folder.path().join("lango.db").display()),
            DatabaseKind::Postgres => postgres::fresh_schema(),
            DatabaseKind::Pgvector => postgres::fresh_schema_with_pgvector(),
        };
        Self {
            _folder: folder,
            kind,
            address,
        }
    }

    /// Opens another replica of lango on the database.
    pub(crate) fn open(&self) -> Arc<Store> {
        match self.kind {
            DatabaseKind::Sqlite | DatabaseKind::Postgres => open(&self.address),
            DatabaseKind::Pgvector => Arc::new(indexing(&self.address)),
        }
    }

    /// Runs a query with one column and returns its rows as text.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        match self.address.strip_prefix("sqlite:") {
            Some(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                let mut statement = connection.prepare(query).unwrap();
                let rows = statement.query_map([], |row| row.get(0)).unwrap();
                rows.collect::<Result<_, _>>().unwrap()
            }
            None => query_postgres(self.address.clone(), query.to_owned()),
        }
    }
}

/// Opens a replica of lango on the database at an address.
pub(crate) fn open(address: &str) -> Arc<Store> {
    Arc::new(Store::at(address, ROOT.into()).unwrap())
}

/// Opens a replica on PostgreSQL that creates the vector index for any number of vectors.
pub(crate) fn indexing(address: &str) -> Store {
    let options = PostgresOptions {
        min_indexed_vectors: 0,
        ..PostgresOptions::default()
    };
    Store::postgres_with(address, ROOT.into(), options).unwrap()
}

/// Runs a query on PostgreSQL. Uses a separate thread, because the caller may be inside a runtime, which must not block.
fn query_postgres(address: String, query: String) -> Vec<String> {
    let run = async move {
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let answer = client.simple_query(&query).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        let rows = answer.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let thread = std::thread::spawn(move || runtime.block_on(run));
    thread.join().unwrap()
}
