//! Sessions in one SQLite file.
//!
//! One thread owns the only connection that writes and commits what is queued in groups, one disk sync for all of them;
//! an append is answered after that sync. Readers stand beside it on connections of their own, opened when first needed,
//! and see what was committed before they began. Several processes may use one file: each append is checked against
//! the end of the log inside its transaction.

mod connection;
pub(crate) mod failure;
mod in_memory;
mod lock;
mod migrations;
mod place;
mod read_only;
mod readers;
#[cfg(test)]
pub(crate) mod statements;
mod upkeep;
mod writer;

use crate::engine::{Durability, Failure, Mode, Tx, Work};
use crate::queue::Queues;
use crate::tables::OpenMode;
use connection::execute;
use futures_util::FutureExt as _;
use in_memory::InMemory;
use lango_core::{BoxLease, BusyPolicy, SessionId, StoreError};
use readers::Readers;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use writer::Writer;

/// Sessions in one SQLite file.
///
/// Its futures need a tokio runtime. Dropping the store finishes what is queued, then closes the file.
pub(crate) struct SqliteEngine {
    // The readers go first: the last connection to close is the one that can tidy up the write-ahead log.
    readers: Arc<Readers>,
    writer: Arc<Writer>,
    /// The waiters of this process.
    queues: Arc<Queues>,
}

impl SqliteEngine {
    /// The database at this place, which is opened, and made if need be, when it is first used.
    pub(crate) fn at(open_mode: OpenMode, path: &Path) -> Result<Self, StoreError> {
        let path = place::absolute(path)?;
        let writer = Arc::new(Writer::at(path.clone(), open_mode));
        Ok(Self {
            readers: Readers::new(path, Arc::clone(&writer)),
            writer,
            queues: Arc::default(),
        })
    }
}

impl SqliteEngine {
    /// A database that ends with the process.
    pub(crate) fn in_memory() -> Self {
        let memory = Arc::<InMemory>::default();
        let writer = Arc::new(Writer::in_memory(Arc::clone(&memory)));
        Self {
            readers: Readers::in_memory(memory, Arc::clone(&writer)),
            writer,
            queues: Arc::default(),
        }
    }

    /// Runs work on the thread that writes, or on one that reads.
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
        match mode {
            Mode::Read => {
                let read = move |connection: &mut Connection| now(connection, &given, work);
                self.readers.read(read).await
            }
            Mode::Snapshot => {
                let read = move |connection: &mut Connection| {
                    execute(connection, "BEGIN")?;
                    let result = now(connection, &given, work);
                    execute(connection, "COMMIT")?;
                    result
                };
                self.readers.read(read).await
            }
            Mode::Write | Mode::WriteTwice | Mode::WriteOne | Mode::Log(_) => {
                let durability = match mode {
                    Mode::Log(durability) => durability,
                    _ => Durability::Machine,
                };
                let change = move |connection: &mut Connection| now(connection, &given, work);
                self.writer.change(durability, change).await
            }
        }
    }
}

/// Does work that never has to wait.
fn now<A, T>(connection: &mut Connection, given: &A, work: Work<A, T>) -> Result<T, Failure> {
    let done = work(&mut Tx::sqlite(connection), given).now_or_never();
    done.unwrap_or_else(|| Err(Failure::other("work on SQLite waits for something else")))
}

impl SqliteEngine {
    pub(crate) fn open_now(&self) -> Result<(), StoreError> {
        self.writer.open()
    }

    /// Locks a session for one turn at a time.
    pub(crate) async fn lock(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<BoxLease, StoreError> {
        if self.writer.is_in_memory() {
            return lock::lock_here(&self.queues, session, busy_policy).await;
        }
        lock::lock(self.writer.path(), &self.queues, session, busy_policy).await
    }

    /// Opens it for reading; one that is where nobody can write is read as it is.
    pub(crate) async fn readable(&self) -> Result<(), StoreError> {
        self.readers.read(|_| Ok(())).await
    }
}
