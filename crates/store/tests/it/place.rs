//! Where a test's database is. The same tests run over each kind that there is.

use lango_store::{PostgresOptions, Store};
use lango_testkit::postgres;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A root agent whose name is no default of anything.
pub const ROOT: &str = "house-keeper";

/// What keeps the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
    /// PostgreSQL with pgvector, whose index is asked whenever it can tell.
    Pgvector,
}

/// An empty database, for one test.
pub struct Place {
    _folder: TempDir,
    kind: Kind,
    pub address: String,
}

impl Place {
    pub fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = match kind {
            Kind::Sqlite => format!("sqlite:{}", folder.path().join("lango.db").display()),
            Kind::Postgres => postgres::empty(),
            Kind::Pgvector => postgres::empty_with_pgvector(),
        };
        Self {
            _folder: folder,
            kind,
            address,
        }
    }

    /// One more copy of lango over it.
    pub fn open(&self) -> Arc<Store> {
        match self.kind {
            Kind::Sqlite | Kind::Postgres => open(&self.address),
            Kind::Pgvector => Arc::new(indexing(&self.address)),
        }
    }

    /// What the only column of a query gives, as text.
    pub fn rows(&self, query: &str) -> Vec<String> {
        match self.address.strip_prefix("sqlite:") {
            Some(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                let mut statement = connection.prepare(query).unwrap();
                let rows = statement.query_map([], |row| row.get(0)).unwrap();
                rows.collect::<Result<_, _>>().unwrap()
            }
            None => asked(self.address.clone(), query.to_owned()),
        }
    }
}

/// A copy of lango over the database at an address.
pub fn open(address: &str) -> Arc<Store> {
    Arc::new(Store::at(address, ROOT.into()).unwrap())
}

/// A replica over PostgreSQL that creates the index of any number of vectors.
pub fn indexing(address: &str) -> Store {
    let options = PostgresOptions {
        min_indexed_vectors: 0,
        ..PostgresOptions::default()
    };
    Store::postgres_with(address, ROOT.into(), options).unwrap()
}

/// A test may be within a runtime, which does not wait; a thread of its own does.
fn asked(address: String, query: String) -> Vec<String> {
    let ask = async move {
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
    let waiting = std::thread::spawn(move || runtime.block_on(ask));
    waiting.join().unwrap()
}
