//! The SQLite backend: one file, or a database in memory.
//!
//! One thread owns the only connection that writes. It commits queued work in groups, with at most one disk sync per group, and
//! replies after the sync. Readers have their own connections and see everything committed before they started. Several processes
//! may use one file: each append is checked against the end of the log inside its transaction.

mod connection;
pub(crate) mod error;
mod file;
mod in_memory;
pub(crate) mod lock;
mod maintenance;
mod migrations;
mod readers;
mod wal;
mod writer;

use crate::backend::{BackendError, Durability, Input, Output, Result, Tx, Work, WorkMode};
use crate::tables::OpenMode;
use connection::execute;
#[cfg(test)]
pub(crate) use connection::open_in_memory;
use futures_util::FutureExt as _;
use in_memory::InMemory;
use lango_core::{BoxLease, BusyPolicy, SessionId, StoreError};
use lock::SessionLocks;
use readers::Readers;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use writer::Writer;

/// A SQLite database. Its futures need a tokio runtime. Dropping it finishes queued work, then closes the file.
pub(crate) struct SqliteBackend {
    connections: Connections,
    /// The session locks of this process.
    locks: SessionLocks,
}

enum Connections {
    Memory(InMemory),
    // The fields are dropped in this order: the last connection to close cleans up the write-ahead log.
    File {
        readers: Arc<Readers>,
        writer: Arc<Writer>,
    },
}

impl SqliteBackend {
    /// Creates a backend for the file at this path. The file is opened, and created if necessary, on first use.
    pub(crate) fn at(open_mode: OpenMode, path: &Path) -> Result<Self, StoreError> {
        let writer = Arc::new(Writer::new(file::absolute(path)?, open_mode));
        Ok(Self {
            connections: Connections::File {
                readers: Readers::new(Arc::clone(&writer)),
                writer,
            },
            locks: SessionLocks::default(),
        })
    }

    pub(crate) fn in_memory() -> Self {
        Self {
            connections: Connections::Memory(InMemory::default()),
            locks: SessionLocks::default(),
        }
    }

    /// Runs work on the writer thread or a reader, depending on the mode.
    pub(crate) async fn run<A: Input, T: Output>(
        &self,
        mode: WorkMode,
        args: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError> {
        let durability = match mode {
            WorkMode::Log(durability) => durability,
            _ => Durability::Machine,
        };
        match (&self.connections, mode) {
            (
                Connections::Memory(memory),
                WorkMode::Lookup | WorkMode::Read | WorkMode::Snapshot,
            ) => memory.with(|connection| read(connection, mode, &args, work)),
            (Connections::Memory(memory), _) => memory.with(|connection| {
                execute(connection, "BEGIN")?;
                let result = run_now(connection, &args, work);
                writer::end(connection, result.is_ok())?;
                result
            }),
            (Connections::File { readers, .. }, WorkMode::Lookup) => {
                let read = move |connection: &mut _| read(connection, mode, &args, work);
                readers.look_up(read).await
            }
            (Connections::File { readers, .. }, WorkMode::Read | WorkMode::Snapshot) => {
                let read = move |connection: &mut _| read(connection, mode, &args, work);
                readers.read(read).await
            }
            (Connections::File { writer, .. }, _) => {
                let change = move |connection: &mut _| run_now(connection, &args, work);
                writer.change(durability, change).await
            }
        }
    }

    pub(crate) fn open_now(&self) -> Result<(), StoreError> {
        match &self.connections {
            Connections::Memory(memory) => memory.with(|_| Ok(())),
            Connections::File { writer, .. } => writer.open(),
        }
    }

    /// Opens the database for reading. A file on a read-only file system is not migrated.
    pub(crate) async fn readable(&self) -> Result<(), StoreError> {
        match &self.connections {
            Connections::Memory(_) => self.open_now(),
            Connections::File { readers, .. } => readers.read(|_| Ok(())).await,
        }
    }

    /// Locks a session for one turn at a time.
    pub(crate) async fn lock(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<BoxLease, StoreError> {
        self.locks.lock(self.path(), session, busy_policy).await
    }

    /// Returns the path of the file, or `None` if the database is in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.connections {
            Connections::Memory(_) => None,
            Connections::File { writer, .. } => Some(&writer.path),
        }
    }
}

fn read<A, T>(
    connection: &mut Connection,
    mode: WorkMode,
    args: &A,
    work: Work<A, T>,
) -> Result<T> {
    if mode != WorkMode::Snapshot {
        return run_now(connection, args, work);
    }
    execute(connection, "BEGIN")?;
    let result = run_now(connection, args, work);
    execute(connection, "COMMIT")?;
    result
}

/// Runs work to completion on this thread. Its future is always ready, because SQLite never waits.
fn run_now<A, T>(connection: &mut Connection, args: &A, work: Work<A, T>) -> Result<T> {
    let done = work(&mut Tx::sqlite(connection), args).now_or_never();
    done.unwrap_or_else(|| Err(BackendError::other("work on SQLite must not wait")))
}
