//! The two databases behind one face: statements, values, rows and transactions that every module of the store is written
//! with once.
//!
//! Work is a function of a [`Tx`] and of what was given for it. SQLite runs it on the thread that writes, together with the
//! work of others in one commit, or on a thread that reads. PostgreSQL runs it on a connection of its pool, again from the
//! beginning when the server undid it or the connection was lost.

pub(crate) mod failure;
#[cfg(test)]
pub(crate) mod plans;
mod row;
mod sql;
pub(crate) mod text;
mod tx;
mod value;

pub(crate) use failure::Failure;
pub(crate) use row::Row;
pub(crate) use sql::{Sql, dialect, sql};
pub(crate) use tx::Tx;
pub(crate) use value::stored;
pub(crate) use value::{ToValue, Value, bulk_row, values};

use crate::database::Answer;
use crate::postgres::PostgresEngine;
use crate::sqlite::SqliteEngine;
use lango_core::BoxFuture;
use std::sync::Arc;

/// What is done with what was given for it. It may be done again from the beginning.
pub(crate) type Work<A, T> =
    for<'t, 'c> fn(&'t mut Tx<'c>, &'t A) -> BoxFuture<'t, Result<T, Failure>>;

/// How the statements of a piece of work belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They read, each as of its own moment.
    Read,
    /// They read, all as of one moment.
    Snapshot,
    /// They change something, all of it or nothing.
    Write,
    /// The same for a change that does no harm when it is made twice.
    WriteTwice,
    /// Each of them changes something by itself in PostgreSQL, which saves two round trips.
    WriteOne,
}

/// A database that was opened, or will be when it is first used.
#[derive(Clone)]
pub(crate) enum Engine {
    Sqlite(Arc<SqliteEngine>),
    Postgres(Arc<PostgresEngine>),
}

impl Engine {
    /// Reads with statements that each see their own moment. One round trip to PostgreSQL for each.
    pub(crate) fn read<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Mode::Read, given, work)
    }

    /// Reads with statements that all see one moment.
    pub(crate) fn snapshot<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Mode::Snapshot, given, work)
    }

    /// Changes something in a transaction. If the answer to PostgreSQL's commit is lost, that is
    /// [`Unreachable`](lango_core::StoreError::Unreachable): nobody knows whether it was made.
    pub(crate) fn write<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Mode::Write, given, work)
    }

    /// Changes something in a transaction that may be made twice: it is, if the answer to PostgreSQL's commit is lost.
    pub(crate) fn write_twice<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Mode::WriteTwice, given, work)
    }

    /// Changes something with one statement, or with several that each may stand alone; PostgreSQL gets no transaction for
    /// it. The work is done again if an answer is lost, and can know: [`Tx::is_repeated`].
    pub(crate) fn write_one<A, T>(&self, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Mode::WriteOne, given, work)
    }

    fn run<A, T>(&self, mode: Mode, given: A, work: Work<A, T>) -> Answer<'_, T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        match self {
            Self::Sqlite(sqlite) => Box::pin(sqlite.run(mode, given, work)),
            Self::Postgres(postgres) => Box::pin(postgres.run(mode, given, work)),
        }
    }

    /// Tells other replicas about something. It is a hint: where nobody can tell it nothing is amiss.
    pub(crate) fn notify(&self, channel: &'static str, subject: &str) {
        if let Self::Postgres(postgres) = self {
            postgres.tell(channel, subject);
        }
    }
}
