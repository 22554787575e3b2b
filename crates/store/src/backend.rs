//! One API over SQLite and PostgreSQL: statements, values, rows and transactions. The other modules of the store use it, so each
//! is written once for both databases.
//!
//! Work is a function of a [`Tx`] and its arguments. SQLite runs it on the writer thread, in one commit with other queued work, or
//! on a reader thread. PostgreSQL runs it on a pooled connection, and runs it again from the start if the server rolled it back or
//! the connection was lost.

pub(crate) mod error;
#[cfg(test)]
pub(crate) mod plans;
mod row;
mod sql;
pub(crate) mod text;
mod tx;
mod value;

pub(crate) use error::BackendError;
pub(crate) use row::{FromRow, Row, records};
pub(crate) use sql::{Sql, dialect, sql, statements};
pub(crate) use tx::Tx;
pub(crate) use value::checked_i64;
pub(crate) use value::{ToValue, Value, bulk_row, values};

use crate::StoreFuture;
use crate::decode::failed;
use crate::postgres::PostgresBackend;
use crate::sqlite::SqliteBackend;
use lango_core::BoxFuture;
use std::sync::Arc;

pub(crate) type Result<T, E = BackendError> = std::result::Result<T, E>;

/// Work on a transaction with its arguments. It may run more than once.
pub(crate) type Work<A, T> =
    for<'t, 'c> fn(&'t mut Tx<'c>, &'t A) -> BoxFuture<'t, Result<T, BackendError>>;

/// Runs [`Work`] with a tuple of arguments: `work!(self.backend.write(args), |tx, user, row| { … })`.
macro_rules! work {
    ($($backend:ident).+($args:expr), |$tx:ident, $argument:ident| $body:block) => {
        $($backend).+($args, |$tx, $argument| Box::pin(async move $body))
    };
    ($($backend:ident).+($args:expr), |$tx:ident, $($argument:ident),+| $body:block) => {
        $($backend).+($args, |$tx, ($($argument),+)| Box::pin(async move $body))
    };
}
pub(crate) use work;

/// The arguments of a piece of work, which are sent to the thread that runs it.
pub(crate) trait Input: Send + Sync + 'static {}
impl<T: Send + Sync + 'static> Input for T {}

/// The result of a piece of work, which is sent back from the thread that ran it.
pub(crate) trait Output: Send + 'static {}
impl<T: Send + 'static> Output for T {}

/// The isolation of the statements of one piece of work; see the methods of [`Backend`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkMode {
    Lookup,
    Read,
    Snapshot,
    Write,
    WriteIdempotent,
    WriteAutocommit,
    Log(Durability),
}

/// The kind of crash that an acknowledged write survives. PostgreSQL always waits for its disk, so its writes survive a crash of
/// the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A crash of the process: the write is in the file, but not necessarily synced to disk.
    Process,
    /// A crash of the machine: this write and all earlier ones are synced to disk.
    Machine,
}

/// A database that is opened on first use.
#[derive(Clone)]
pub(crate) enum Backend {
    Sqlite(Arc<SqliteBackend>),
    Postgres(Arc<PostgresBackend>),
}

impl Backend {
    /// Reads a few rows by key. SQLite does this on the caller's thread, which is faster than waking a reader thread.
    pub(crate) fn lookup<A: Input, T: Output>(
        &self,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        self.run(WorkMode::Lookup, args, work)
    }

    /// Reads without a transaction: each statement sees the latest commits, and costs PostgreSQL one round trip.
    pub(crate) fn read<A: Input, T: Output>(
        &self,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        self.run(WorkMode::Read, args, work)
    }

    /// Reads in one transaction, so that all statements see the same snapshot.
    pub(crate) fn snapshot<A: Input, T: Output>(
        &self,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        self.run(WorkMode::Snapshot, args, work)
    }

    /// Writes in a transaction. Fails with [`Unreachable`](lango_core::StoreError::Unreachable) if the reply to
    /// PostgreSQL's commit is lost; it is then unknown whether the transaction was committed.
    pub(crate) fn write<A: Input, T: Output>(
        &self,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        self.run(WorkMode::Write, args, work)
    }

    /// Writes in a transaction that may safely run twice: it runs again if the reply to PostgreSQL's commit is lost.
    pub(crate) fn write_idempotent<A: Input, T: Output>(
        &self,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        self.run(WorkMode::WriteIdempotent, args, work)
    }

    /// Writes with one statement, or with several that may be committed separately. PostgreSQL starts no transaction, which saves
    /// two round trips. The work runs again if a reply is lost; [`Tx::is_repeated`] is true then.
    pub(crate) fn write_autocommit<A: Input, T: Output>(
        &self,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        self.run(WorkMode::WriteAutocommit, args, work)
    }

    /// Writes the log of a session as [`write_autocommit`](Self::write_autocommit) does. With PostgreSQL the work completes even
    /// if the caller drops the future, and the timeout of an attempt is short enough to retry before the lease expires.
    pub(crate) fn write_log<A: Input, T: Output>(
        &self,
        durability: Durability,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        let mode = WorkMode::Log(durability);
        let Self::Postgres(postgres) = self else {
            return self.run(mode, args, work);
        };
        let postgres = Arc::clone(postgres);
        Box::pin(async move {
            let written =
                tokio::spawn(async move { postgres.database.run(mode, args, work).await });
            written.await.map_err(|error| {
                failed(format!(
                    "the write to the session's log did not finish: {error}"
                ))
            })?
        })
    }

    /// Reads the rows of one statement.
    pub(crate) fn query<T: Output>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        read: impl Fn(Row<'_>) -> Result<T> + Input,
    ) -> StoreFuture<'_, Vec<T>> {
        self.read((sql, owned(values), read), |tx, (sql, values, read)| {
            Box::pin(tx.query(*sql, values, read))
        })
    }

    /// Reads the first row of one statement, or `None` if it has no rows.
    pub(crate) fn query_opt<T: Output>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        read: impl Fn(Row<'_>) -> Result<T> + Input,
    ) -> StoreFuture<'_, Option<T>> {
        self.read((sql, owned(values), read), |tx, (sql, values, read)| {
            Box::pin(tx.query_opt(*sql, values, read))
        })
    }

    /// Runs one statement that may safely run twice. Returns the number of rows it changed.
    pub(crate) fn execute(&self, sql: Sql, values: &[Value<'_>]) -> StoreFuture<'_, u64> {
        self.write_autocommit((sql, owned(values)), |tx, (sql, values)| {
            Box::pin(tx.execute(*sql, values))
        })
    }

    fn run<A: Input, T: Output>(
        &self,
        mode: WorkMode,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        match self {
            Self::Sqlite(sqlite) => Box::pin(sqlite.run(mode, args, work)),
            Self::Postgres(postgres) => Box::pin(postgres.database.run(mode, args, work)),
        }
    }

    /// Notifies other replicas, best effort: nothing depends on the notification being delivered.
    pub(crate) fn notify(&self, channel: &'static str, subject: &str) {
        if let Self::Postgres(postgres) = self {
            postgres.notify(channel, subject);
        }
    }

    /// Deletes rows in a transaction that may safely run twice. SQLite also overwrites the deleted bytes.
    pub(crate) fn erase<A: Input, T: Output>(
        &self,
        args: A,
        work: Work<A, T>,
    ) -> StoreFuture<'_, T> {
        self.write_idempotent((args, work), |tx, (args, work)| {
            Box::pin(async move {
                tx.overwrite_deleted(true)?;
                let erased = work(tx, args).await;
                tx.overwrite_deleted(false)?;
                erased
            })
        })
    }
}

pub(crate) fn owned(values: &[Value<'_>]) -> Vec<Value<'static>> {
    values.iter().cloned().map(Value::into_owned).collect()
}
