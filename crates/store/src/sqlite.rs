//! The store in one SQLite file, or in memory.
//!
//! One thread owns the only connection that writes. It commits queued work in groups, with one disk sync for each group, and
//! answers after that sync. Readers have connections of their own and see what was committed before they started. Several
//! processes may use one file: each append is checked against the end of the log inside its transaction.

mod connection;
pub(crate) mod failure;
mod in_memory;
pub(crate) mod lock;
mod migrations;
mod place;
mod readers;
mod upkeep;
mod wal;
mod writer;

use crate::engine::{Durability, Failure, Input, Mode, Output, Result, Tx, Work};
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
pub(crate) struct SqliteEngine {
    connections: Connections,
    /// The waiters of this process.
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

impl SqliteEngine {
    /// Returns the database at this path, which is opened, and created if necessary, when it is first used.
    pub(crate) fn at(open_mode: OpenMode, path: &Path) -> Result<Self, StoreError> {
        let writer = Arc::new(Writer::new(place::absolute(path)?, open_mode));
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

    /// Runs work on the writer thread, or on a reader.
    pub(crate) async fn run<A: Input, T: Output>(
        &self,
        mode: Mode,
        given: A,
        work: Work<A, T>,
    ) -> Result<T, StoreError> {
        let durability = match mode {
            Mode::Log(durability) => durability,
            _ => Durability::Machine,
        };
        match (&self.connections, mode) {
            (Connections::Memory(memory), Mode::Lookup | Mode::Read | Mode::Snapshot) => {
                memory.with(|connection| read(connection, mode, &given, work))
            }
            (Connections::Memory(memory), _) => memory.with(|connection| {
                execute(connection, "BEGIN")?;
                let result = now(connection, &given, work);
                writer::end(connection, result.is_ok())?;
                result
            }),
            (Connections::File { readers, .. }, Mode::Lookup) => {
                let read = move |connection: &mut _| read(connection, mode, &given, work);
                readers.look_up(read).await
            }
            (Connections::File { readers, .. }, Mode::Read | Mode::Snapshot) => {
                let read = move |connection: &mut _| read(connection, mode, &given, work);
                readers.read(read).await
            }
            (Connections::File { writer, .. }, _) => {
                let change = move |connection: &mut _| now(connection, &given, work);
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

    /// Opens it for reading. A file on a read-only file system is read as it is.
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

    /// Returns the path of the file; `None` if the database is in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.connections {
            Connections::Memory(_) => None,
            Connections::File { writer, .. } => Some(&writer.path),
        }
    }
}

fn read<A, T>(connection: &mut Connection, mode: Mode, given: &A, work: Work<A, T>) -> Result<T> {
    if mode != Mode::Snapshot {
        return now(connection, given, work);
    }
    execute(connection, "BEGIN")?;
    let result = now(connection, given, work);
    execute(connection, "COMMIT")?;
    result
}

/// Runs work, whose future is always ready.
fn now<A, T>(connection: &mut Connection, given: &A, work: Work<A, T>) -> Result<T> {
    let done = work(&mut Tx::sqlite(connection), given).now_or_never();
    done.unwrap_or_else(|| Err(Failure::other("work on SQLite waits for something else")))
}
