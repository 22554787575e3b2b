//! Internal database errors, before they are converted to a [`StoreError`].

use crate::decode::{damaged, failed};
use crate::postgres::error::postgres_error;
use crate::sqlite::error::sqlite_error;
use lango_core::{SessionId, StoreError};
use std::ffi::OsStr;

#[derive(Debug)]
pub(crate) enum BackendError {
    Sqlite(rusqlite::Error),
    /// An error of PostgreSQL or of the connection.
    Postgres(tokio_postgres::Error),
    /// No connection to PostgreSQL could be opened, so nothing was sent.
    NoConnection(String),
    /// PostgreSQL did not answer in time.
    Timeout,
    /// A column's value does not have the expected type.
    Column {
        column: usize,
        problem: &'static str,
    },
    Store(StoreError),
}

impl BackendError {
    pub(crate) fn other(detail: impl Into<String>) -> Self {
        Self::Store(failed(detail))
    }

    /// Converts the error to a [`StoreError`] that names the database at `place`.
    pub(crate) fn about(self, place: &(impl AsRef<OsStr> + ?Sized)) -> StoreError {
        let place = || place.as_ref().to_string_lossy().into_owned();
        match self {
            Self::Store(error) => error,
            Self::Column { column, problem } => {
                failed(format!("a row cannot be read: column {column}: {problem}"))
            }
            Self::NoConnection(detail) => StoreError::Unreachable {
                place: place(),
                detail,
            },
            Self::Timeout => StoreError::Unreachable {
                place: place(),
                detail: "it did not answer in time".to_owned(),
            },
            Self::Sqlite(error) => sqlite_error(place(), &error),
            Self::Postgres(error) => postgres_error(place(), &error),
        }
    }

    /// Converts an unreadable column of event `seq` to [`StoreError::Damaged`].
    pub(crate) fn in_event(self, session: &SessionId, seq: u64) -> Self {
        match self {
            Self::Column { problem, .. } => damaged(session, seq, problem).into(),
            other => other,
        }
    }
}

impl From<rusqlite::Error> for BackendError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<tokio_postgres::Error> for BackendError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for BackendError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
