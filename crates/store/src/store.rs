//! [`Store`]: one database, SQLite or PostgreSQL, with everything that lango stores.

use crate::archive::verify_record;
use crate::backend::Backend;
use crate::decode::failed;
use crate::library::nearest::BitsCache;
use crate::live_changes::OwnChanges;
use crate::log::LogEndCache;
use crate::postgres::renewer::EVENTS;
use crate::postgres::{PostgresBackend, PostgresOptions};
use crate::sqlite::SqliteBackend;
use crate::sqlite::lock::ServerLock;
use crate::tables::OpenMode;
use futures_util::stream::{self, StreamExt as _};
use lango_core::{AgentName, BoxStream, ChangeFeed, SessionId, StoreChange, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sessions, tasks, knowledge and everything else that lango stores, in one database.
///
/// Its futures need a tokio runtime. Dropping a SQLite store finishes the queued work and closes the file. Dropping a PostgreSQL
/// store waits briefly for the database to confirm that its leases are released.
pub struct Store {
    pub(crate) backend: Backend,
    /// Cached sign bits of the vectors that searches have compared.
    pub(crate) bits: Arc<BitsCache>,
    /// The author to assume for old stored messages without an author.
    pub(crate) root_agent: AgentName,
    pub(crate) log_ends: LogEndCache,
    pub(crate) own_changes: OwnChanges,
}

impl Store {
    /// Creates a store for `sqlite:PATH` or `postgres://user:password@host/database`. The database is opened on first use.
    ///
    /// `root_agent` is the author to assume for old stored messages without an author.
    pub fn at(place: &str, root_agent: AgentName) -> Result<Self, StoreError> {
        match place.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Self::sqlite(path, root_agent),
            Some(("postgres" | "postgresql", _)) => {
                Self::postgres_with(place, root_agent, PostgresOptions::default())
            }
            // The error does not repeat the address, which may contain a password.
            _ => Err(failed(
                "a database address is `sqlite:PATH` or `postgres://user:password@host/database`",
            )),
        }
    }

    /// Creates an in-memory database that is gone when the store is dropped.
    pub fn in_memory() -> Self {
        let backend = Backend::Sqlite(Arc::new(SqliteBackend::in_memory()));
        // Every message in a new database has an author, so this one is never used.
        Self::over(backend, AgentName::from("root"))
    }

    fn over(backend: Backend, root_agent: AgentName) -> Self {
        Self {
            backend,
            bits: Arc::default(),
            root_agent,
            log_ends: LogEndCache::default(),
            own_changes: OwnChanges::default(),
        }
    }

    /// Creates a store for a SQLite file. The file is opened on first use, and created then if it does not exist: a store that is
    /// never used leaves no file behind.
    pub fn sqlite(path: impl AsRef<Path>, root_agent: AgentName) -> Result<Self, StoreError> {
        Self::sqlite_with(path, root_agent, OpenMode::Normal)
    }

    /// Creates a store for a SQLite file, as [`sqlite`](Self::sqlite) does, optionally as the target of a transfer.
    pub fn sqlite_with(
        path: impl AsRef<Path>,
        root_agent: AgentName,
        open_mode: OpenMode,
    ) -> Result<Self, StoreError> {
        let backend = Backend::Sqlite(Arc::new(SqliteBackend::at(open_mode, path.as_ref())?));
        Ok(Self::over(backend, root_agent))
    }

    /// Opens a SQLite file immediately and migrates an older schema. Creates the file, readable only by its owner, if it does not
    /// exist.
    pub fn open_sqlite(path: impl AsRef<Path>, root_agent: AgentName) -> Result<Self, StoreError> {
        let store = Self::sqlite(path, root_agent)?;
        if let Backend::Sqlite(sqlite) = &store.backend {
            sqlite.open_now()?;
        }
        Ok(store)
    }

    /// Creates a store for the PostgreSQL database at an address such as
    /// `postgres://user:password@host:5432/database?sslmode=verify-full`. It connects, and migrates the schema, on first use.
    pub fn postgres_with(
        address: &str,
        root_agent: AgentName,
        options: PostgresOptions,
    ) -> Result<Self, StoreError> {
        let backend = Backend::Postgres(Arc::new(PostgresBackend::at(address, options)?));
        Ok(Self::over(backend, root_agent))
    }

    /// Opens the database and migrates its schema, unless it is already open.
    pub async fn open_now(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.open_now(),
            Backend::Postgres(postgres) => postgres.database.open().await,
        }
    }

    /// Opens the database for a caller that only reads. A SQLite file that cannot be written is opened read-only, without
    /// migrating it.
    pub async fn open_for_reading(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.readable().await,
            Backend::Postgres(postgres) => postgres.database.open().await,
        }
    }

    /// Moves SQLite's write-ahead log into the database file, so that the file is complete without it. Returns false if another
    /// process is reading and prevents this. Does nothing on PostgreSQL.
    pub async fn checkpoint_log(&self) -> Result<bool, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.checkpoint_log().await,
            Backend::Postgres(_) => Ok(true),
        }
    }

    /// Copies the current state of a SQLite database to a file that must not exist yet. Calls `on_progress` with the number of
    /// pages left and the total number of pages. Fails for PostgreSQL, which has its own tool for this.
    pub async fn back_up(
        &self,
        to: PathBuf,
        on_progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.back_up(to, on_progress).await,
            Backend::Postgres(_) => Err(failed("use pg_dump to back up a PostgreSQL database")),
        }
    }

    /// Marks the database as used by a server for as long as both the returned lock and the store exist. On PostgreSQL the server
    /// also takes the replica name stored in the folder, so that after a crash the next server there takes over its leases
    /// immediately. Call this before acquiring the first lease.
    pub fn attach_server(&self, folder: &Path) -> Result<Option<ServerLock>, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.attach_server(),
            Backend::Postgres(postgres) => postgres.attach_server(folder).map(|()| None),
        }
    }

    /// Returns whether a server uses the database.
    pub async fn has_server(&self) -> Result<bool, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => Ok(sqlite.count_servers().await? > 0),
            Backend::Postgres(postgres) => postgres.has_server().await,
        }
    }

    /// Fails with [`StoreError::TooNew`] if a newer version of lango has migrated the schema since the database was opened.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.check_schema().await,
            Backend::Postgres(postgres) => postgres.database.check_schema().await,
        }
    }

    /// Notifies subscribers in this process and in other replicas that a session changed.
    pub(crate) fn notify_session(&self, session: &SessionId) {
        self.own_changes.notify(session);
        self.backend.notify(EVENTS, session.as_str());
    }

    /// Verifies a session's log as [`verify_record`] does. Returns the number of events.
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

/// Changes that other replicas make in a PostgreSQL database. [`LiveChanges`](crate::LiveChanges) also reports those of
/// this process.
impl ChangeFeed for Store {
    fn subscribe(&self) -> BoxStream<'static, StoreChange> {
        match &self.backend {
            Backend::Sqlite(_) => stream::pending().boxed(),
            Backend::Postgres(postgres) => postgres.subscribe(),
        }
    }
}
