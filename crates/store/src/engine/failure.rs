//! What went wrong below, before it is said in the words of [`StoreError`].

use crate::postgres::failure::postgres_error;
use crate::sqlite::failure::sqlite_error;
use lango_core::{SessionId, StoreError};
use std::ffi::OsStr;

/// What went wrong: still in the words of a database, or said already.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    /// PostgreSQL's words, or those of the way there.
    Postgres(tokio_postgres::Error),
    /// No connection to PostgreSQL was to be had, so that nothing was sent.
    NoConnection(String),
    /// PostgreSQL did not answer in time.
    Silent,
    /// A column of a row has what its type cannot have.
    Column {
        column: usize,
        problem: &'static str,
    },
    /// Ours.
    Said(StoreError),
}

impl Failure {
    /// A failure that only words can describe.
    pub(crate) fn other(detail: impl Into<String>) -> Self {
        Self::Said(StoreError::Failed {
            detail: detail.into(),
        })
    }

    /// In our words, about the database at `place`.
    pub(crate) fn about(self, place: &(impl AsRef<OsStr> + ?Sized)) -> StoreError {
        let place = || place.as_ref().to_string_lossy().into_owned();
        match self {
            Self::Said(error) => error,
            Self::Column { column, problem } => StoreError::Failed {
                detail: format!("a row cannot be read: column {column}: {problem}"),
            },
            Self::NoConnection(detail) => StoreError::Unreachable {
                place: place(),
                detail,
            },
            Self::Silent => StoreError::Unreachable {
                place: place(),
                detail: "there was no answer in time".to_owned(),
            },
            Self::Sqlite(error) => sqlite_error(place(), &error),
            Self::Postgres(error) => postgres_error(place(), &error),
        }
    }

    /// What is wrong with a session, if this is about a column of its event `seq`: one that holds what it cannot is damage.
    pub(crate) fn in_event(self, session: &SessionId, seq: u64) -> Self {
        match self {
            Self::Column { problem, .. } => Self::Said(StoreError::Damaged {
                id: session.clone(),
                seq,
                detail: problem.to_owned(),
            }),
            other => other,
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Said(error)
    }
}
