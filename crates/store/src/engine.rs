//! SQLite and PostgreSQL behind one API: statements, values, rows and transactions, with which every module of the store is
//! written once.
//!
//! Work is a function of a [`Tx`] and its arguments. SQLite runs it on the writer thread, in one commit with other queued work, or
//! on a reader thread. PostgreSQL runs it on a pooled connection, and from the start again when the server rolled it back or the
//! connection was lost.

pub(crate) mod failure;
#[cfg(test)]
pub(crate) mod plans;
mod row;
mod sql;
pub(crate) mod text;
mod tx;
mod value;

pub(crate) use failure::Failure;
pub(crate) use row::{FromRow, Row, records};
pub(crate) use sql::{Sql, dialect, sql, statements};
pub(crate) use tx::Tx;
pub(crate) use value::stored;
pub(crate) use value::{ToValue, Value, bulk_row, values};

use crate::Answer;
use crate::postgres::PostgresEngine;
use crate::sqlite::SqliteEngine;
use crate::stored::failed;
use lango_core::BoxFuture;
use std::sync::Arc;

/// A result of statements.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Work on a transaction with its arguments. It may run more than once.
pub(crate) type Work<A, T> =
    for<'t, 'c> fn(&'t mut Tx<'c>, &'t A) -> BoxFuture<'t, Result<T, Failure>>;

/// Runs [`Work`] with a tuple of arguments: `work!(self.engine.write(given), |tx, user, row| { … })`.
macro_rules! work {
    ($($engine:ident).+($given:expr), |$tx:ident, $argument:ident| $body:block) => {
        $($engine).+($given, |$tx, $argument| Box::pin(async move $body))
    };
    ($($engine:ident).+($given:expr), |$tx:ident, $($argument:ident),+| $body:block) => {
        $($engine).+($given, |$tx, ($($argument),+)| Box::pin(async move $body))
    };
}
pub(crate) use work;

/// Arguments of work, which may run on another thread.
pub(crate) trait Input: Send + Sync + 'static {}
impl<T: Send + Sync + 'static> Input for T {}

/// A result of work, which may come from another thread.
pub(crate) trait Output: Send + 'static {}
impl<T: Send + 'static> Output for T {}

/// The isolation of the statements of one piece of work; see the methods of [`Engine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Lookup,
    Read,
    Snapshot,
    Write,
    WriteTwice,
    WriteOne,
    Log(Durability),
}

/// What an acknowledged change survives. In PostgreSQL that is a crash of the machine, by the server's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A crash of the process: the change is in the file.
    Process,
    /// A crash of the machine: the change is on the disk, and all earlier ones too.
    Machine,
}

/// A database, which is opened when it is first used.
#[derive(Clone)]
pub(crate) enum Engine {
    Sqlite(Arc<SqliteEngine>),
    Postgres(Arc<PostgresEngine>),
}

impl Engine {
    /// Reads a few rows by key. SQLite does this on the caller's thread: that is faster than waking a reader thread.
    pub(crate) fn lookup<A: Input, T: Output>(&self, given: A, work: Work<A, T>) -> Answer<'_, T> {
        self.run(Mode::Lookup, given, work)
    }

    /// Reads without a common snapshot. Each statement is one round trip to PostgreSQL.
    pub(crate) fn read<A: Input, T: Output>(&self, given: A, work: Work<A, T>) -> Answer<'_, T> {
        self.run(Mode::Read, given, work)
    }

    /// Reads one snapshot.
    pub(crate) fn snapshot<A: Input, T: Output>(
        &self,
        given: A,
        work: Work<A, T>,
    ) -> Answer<'_, T> {
        self.run(Mode::Snapshot, given, work)
    }

    /// Writes in a transaction. Fails with [`Unreachable`](lango_core::StoreError::Unreachable) if the reply to PostgreSQL's commit
    /// is lost: whether it was committed is unknown.
    pub(crate) fn write<A: Input, T: Output>(&self, given: A, work: Work<A, T>) -> Answer<'_, T> {
        self.run(Mode::Write, given, work)
    }

    /// Writes in a transaction, which runs again if the reply to PostgreSQL's commit is lost.
    pub(crate) fn write_twice<A: Input, T: Output>(
        &self,
        given: A,
        work: Work<A, T>,
    ) -> Answer<'_, T> {
        self.run(Mode::WriteTwice, given, work)
    }

    /// Writes with one statement, or with several that may be committed on their own: PostgreSQL runs no transaction, which saves
    /// two round trips. The work runs again if a reply is lost, which [`Tx::is_repeated`] tells it.
    pub(crate) fn write_one<A: Input, T: Output>(
        &self,
        given: A,
        work: Work<A, T>,
    ) -> Answer<'_, T> {
        self.run(Mode::WriteOne, given, work)
    }

    /// Writes the log of a session as [`write_one`](Self::write_one) does. In PostgreSQL the work is finished even if the caller
    /// drops the future, and one attempt is short enough for another one while a lease lasts.
    pub(crate) fn write_log<A: Input, T: Output>(
        &self,
        durability: Durability,
        given: A,
        work: Work<A, T>,
    ) -> Answer<'_, T> {
        let mode = Mode::Log(durability);
        let Self::Postgres(postgres) = self else {
            return self.run(mode, given, work);
        };
        let postgres = Arc::clone(postgres);
        Box::pin(async move {
            let written =
                tokio::spawn(async move { postgres.database.run(mode, given, work).await });
            written.await.map_err(|error| {
                failed(format!(
                    "the runtime ended while a log was written: {error}"
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
    ) -> Answer<'_, Vec<T>> {
        self.read((sql, owned(values), read), |tx, (sql, values, read)| {
            Box::pin(tx.query(*sql, values, read))
        })
    }

    /// Reads the first row of one statement, if there is one.
    pub(crate) fn query_opt<T: Output>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        read: impl Fn(Row<'_>) -> Result<T> + Input,
    ) -> Answer<'_, Option<T>> {
        self.read((sql, owned(values), read), |tx, (sql, values, read)| {
            Box::pin(tx.query_opt(*sql, values, read))
        })
    }

    /// Runs one statement that may run twice; returns the number of rows that it changed.
    pub(crate) fn execute(&self, sql: Sql, values: &[Value<'_>]) -> Answer<'_, u64> {
        self.write_one((sql, owned(values)), |tx, (sql, values)| {
            Box::pin(tx.execute(*sql, values))
        })
    }

    fn run<A: Input, T: Output>(&self, mode: Mode, given: A, work: Work<A, T>) -> Answer<'_, T> {
        match self {
            Self::Sqlite(sqlite) => Box::pin(sqlite.run(mode, given, work)),
            Self::Postgres(postgres) => Box::pin(postgres.database.run(mode, given, work)),
        }
    }

    /// Notifies other replicas. This is a hint: a lost notification does no harm.
    pub(crate) fn notify(&self, channel: &'static str, subject: &str) {
        if let Self::Postgres(postgres) = self {
            postgres.notify(channel, subject);
        }
    }

    /// Deletes rows in a transaction that may run twice. SQLite overwrites their bytes.
    pub(crate) fn erase<A: Input, T: Output>(&self, given: A, work: Work<A, T>) -> Answer<'_, T> {
        self.write_twice((given, work), |tx, (given, work)| {
            Box::pin(async move {
                tx.overwrite_deleted(true)?;
                let erased = work(tx, given).await;
                tx.overwrite_deleted(false)?;
                erased
            })
        })
    }
}

pub(crate) fn owned(values: &[Value<'_>]) -> Vec<Value<'static>> {
    values.iter().cloned().map(Value::into_owned).collect()
}
