//! The store: one database with all that lango stores, whichever database it is.

use crate::archive::verify_record;
use crate::engine::Engine;
use crate::library::nearest::BitsCache;
use crate::live_changes::OwnChanges;
use crate::log::Ends;
use crate::postgres::renewer::EVENTS;
use crate::postgres::{PostgresEngine, PostgresOptions};
use crate::sqlite::SqliteEngine;
use crate::sqlite::lock::ServerLock;
use crate::stored::failed;
use crate::tables::OpenMode;
use futures_util::stream::{self, StreamExt as _};
use lango_core::{AgentName, BoxStream, Change, Changes, SessionId, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sessions, tasks, knowledge and all else that lango stores, in one database.
///
/// Its futures need a tokio runtime. Dropping a store in SQLite finishes what is queued and closes the file; dropping one in
/// PostgreSQL waits a moment for the database to hear which sessions are free again.
pub struct Store {
    pub(crate) engine: Engine,
    /// The signs of vectors that were searched.
    pub(crate) bits: Arc<BitsCache>,
    /// The author of stored messages that are older than authors.
    pub(crate) root_agent: AgentName,
    /// Where logs are known to end.
    pub(crate) ends: Ends,
    pub(crate) own_changes: OwnChanges,
}

impl Store {
    /// The database at `sqlite:PATH` or `postgres://user:password@host/database`. It is opened when it is first used.
    ///
    /// `root_agent` is the author of stored messages that have none because they are older than authors.
    pub fn at(place: &str, root_agent: AgentName) -> Result<Self, StoreError> {
        match place.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Self::sqlite(path, root_agent),
            Some(("postgres" | "postgresql", _)) => {
                Self::postgres_with(place, root_agent, PostgresOptions::default())
            }
            // What else it says may be a secret.
            _ => Err(failed(
                "a database is `sqlite:PATH` or `postgres://user:password@host/database`",
            )),
        }
    }

    /// A new database that ends with the store.
    pub fn in_memory() -> Self {
        let engine = Engine::Sqlite(Arc::new(SqliteEngine::in_memory()));
        // No message in it is older than authors.
        Self::over(engine, AgentName::from("root"))
    }

    fn over(engine: Engine, root_agent: AgentName) -> Self {
        Self {
            engine,
            bits: Arc::default(),
            root_agent,
            ends: Ends::default(),
            own_changes: OwnChanges::default(),
        }
    }

    /// A SQLite file, which is opened, and made if need be, when it is first used: a caller that only might need it leaves
    /// no trace.
    pub fn sqlite(path: impl AsRef<Path>, root_agent: AgentName) -> Result<Self, StoreError> {
        Self::sqlite_with(path, root_agent, OpenMode::Normal)
    }

    /// The same, also as the target of a transfer.
    pub fn sqlite_with(
        path: impl AsRef<Path>,
        root_agent: AgentName,
        open_mode: OpenMode,
    ) -> Result<Self, StoreError> {
        let engine = Engine::Sqlite(Arc::new(SqliteEngine::at(open_mode, path.as_ref())?));
        Ok(Self::over(engine, root_agent))
    }

    /// Opens a SQLite file now, or makes a new one that only its owner can read. Older schemas are brought up to date.
    pub fn open_sqlite(path: impl AsRef<Path>, root_agent: AgentName) -> Result<Self, StoreError> {
        let store = Self::sqlite(path, root_agent)?;
        if let Engine::Sqlite(sqlite) = &store.engine {
            sqlite.open_now()?;
        }
        Ok(store)
    }

    /// The PostgreSQL database at an address such as `postgres://user:password@host:5432/database?sslmode=verify-full`,
    /// which is connected to, and made ready if need be, when it is first used.
    pub fn postgres_with(
        address: &str,
        root_agent: AgentName,
        options: PostgresOptions,
    ) -> Result<Self, StoreError> {
        let engine = Engine::Postgres(Arc::new(PostgresEngine::at(address, options)?));
        Ok(Self::over(engine, root_agent))
    }

    /// Opens the database and brings its schema up to date, if that has not happened yet.
    pub async fn open_now(&self) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.open_now(),
            Engine::Postgres(postgres) => postgres.database.open().await,
        }
    }

    /// Opens the database for a caller that only reads: a SQLite file that cannot be written is read as it is.
    pub async fn open_for_reading(&self) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.readable().await,
            Engine::Postgres(postgres) => postgres.database.open().await,
        }
    }

    /// Moves SQLite's write-ahead log into the database file, so that the file is complete without it. Returns false if another
    /// process is reading and prevents this. Does nothing on PostgreSQL.
    pub async fn checkpoint_log(&self) -> Result<bool, StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.checkpoint_log().await,
            Engine::Postgres(_) => Ok(true),
        }
    }

    /// Copies a SQLite database, as it is at this moment, to a file that does not exist yet. `seen` is told how many pages are
    /// left and how many there are. PostgreSQL's own tools copy its databases.
    pub async fn back_up(
        &self,
        to: PathBuf,
        seen: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.back_up(to, seen).await,
            Engine::Postgres(_) => Err(failed("a database on a server is copied with pg_dump")),
        }
    }

    /// Marks the database as used by a server while the result and the store live. On PostgreSQL the server also takes the replica
    /// name stored in the folder, so that after a crash the next server there takes over its leases at once. Call it before
    /// acquiring the first lease.
    pub fn attach_server(&self, folder: &Path) -> Result<Option<ServerLock>, StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.attach_server(),
            Engine::Postgres(postgres) => postgres.attach_server(folder).map(|()| None),
        }
    }

    /// Returns whether a server uses the database.
    pub async fn has_server(&self) -> Result<bool, StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite.count_servers().await? > 0),
            Engine::Postgres(postgres) => postgres.has_server().await,
        }
    }

    /// Fails with [`StoreError::TooNew`] if a newer version of lango has migrated the schema since the database was opened.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.check_schema().await,
            Engine::Postgres(postgres) => postgres.database.check_schema().await,
        }
    }

    /// Notifies subscribers in this process and in other replicas that a session changed.
    pub(crate) fn notify_session(&self, session: &SessionId) {
        self.own_changes.notify(session);
        self.engine.notify(EVENTS, session.as_str());
    }

    /// Checks a session's log as [`verify_record`] does. Returns the number of its events.
    pub async fn verify(&self, session: &SessionId) -> Result<u64, StoreError> {
        let record = self.session_record(session).await?;
        Ok(verify_record(self, &record, &mut |_| ()).await?.events)
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::in_memory()
    }
}

/// What other replicas change in a PostgreSQL database. See [`LiveChanges`](crate::LiveChanges) for all changes.
impl Changes for Store {
    fn changes(&self) -> BoxStream<'static, Change> {
        match &self.engine {
            Engine::Sqlite(_) => stream::pending().boxed(),
            Engine::Postgres(postgres) => postgres.changes(),
        }
    }
}
