//! Converts error codes of PostgreSQL and the network to [`StoreError`].

pub(super) use crate::backend::BackendError;
use deadpool_postgres::{HookError, PoolError, TimeoutType};
use lango_core::StoreError;
use std::error::Error as _;
use std::{io, iter};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorKind {
    /// The server or the network is down.
    Unreachable,
    /// The server rolled back the work, but may accept it the next time.
    RolledBack,
    /// The server rejected the connection, or the database does not exist.
    Refused,
    ReadOnly,
    Full,
    Other,
}

impl BackendError {
    /// Returns whether a later attempt may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Postgres(error) => {
                matches!(kind(error), ErrorKind::Unreachable | ErrorKind::RolledBack)
            }
            Self::NoConnection(_) | Self::Timeout => true,
            Self::Store(_) | Self::Column { .. } | Self::Sqlite(_) => false,
        }
    }

    /// Returns whether the work may have been committed although it failed.
    pub(super) fn may_be_committed(&self) -> bool {
        match self {
            Self::Postgres(error) => kind(error) == ErrorKind::Unreachable,
            Self::Timeout => true,
            _ => false,
        }
    }

    /// Returns whether it is an error of the server with this code.
    pub(super) fn has_code(&self, code: &SqlState) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(code))
    }

    /// Returns the name of the unique constraint that was violated.
    pub(crate) fn violated_constraint(&self) -> Option<&str> {
        match self {
            Self::Postgres(error) if self.has_code(&SqlState::UNIQUE_VIOLATION) => {
                error.as_db_error()?.constraint()
            }
            _ => None,
        }
    }
}

pub(crate) fn postgres_error(place: String, error: &Error) -> StoreError {
    let detail = describe(error);
    match kind(error) {
        ErrorKind::Unreachable | ErrorKind::RolledBack => StoreError::Unreachable { place, detail },
        ErrorKind::Refused => StoreError::Unreadable { place, detail },
        ErrorKind::ReadOnly => StoreError::ReadOnly { place, detail },
        ErrorKind::Full => StoreError::Full { place },
        ErrorKind::Other => StoreError::Failed { detail },
    }
}

impl From<PoolError> for BackendError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                match kind(&error) {
                    ErrorKind::Unreachable | ErrorKind::RolledBack => {
                        Self::NoConnection(describe(&error))
                    }
                    _ => Self::Postgres(error),
                }
            }
            PoolError::Timeout(TimeoutType::Wait) => {
                Self::NoConnection("all connections in the pool are in use".to_owned())
            }
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                Self::NoConnection("connecting timed out".to_owned())
            }
            other => Self::other(other.to_string()),
        }
    }
}

fn kind(error: &Error) -> ErrorKind {
    let Some(code) = error.code() else {
        return kind_without_code(error);
    };
    match code.code() {
        "28000" | "28P01" | "3D000" => ErrorKind::Refused,
        "42501" => ErrorKind::ReadOnly,
        "53100" => ErrorKind::Full,
        // Too many connections, a server that is starting or stopping, or a transaction that was idle for too long.
        "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => ErrorKind::Unreachable,
        // Serialization failures, locks and timeouts. The last two come from a server in
        // recovery and from a standby that is not promoted yet.
        "40001" | "40P01" | "55P03" | "57014" | "55000" | "25006" => ErrorKind::RolledBack,
        code if code.starts_with("08") => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    }
}

/// Classifies errors that can be told apart only by their causes and texts.
fn kind_without_code(error: &Error) -> ErrorKind {
    let text = error.to_string();
    let has_any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let cause: Option<&io::Error> = error.source().and_then(|cause| cause.downcast_ref());
    let inner = cause.and_then(io::Error::get_ref);
    match cause {
        Some(_) if !inner.is_some_and(|inner| inner.is::<rustls::Error>()) => {
            ErrorKind::Unreachable
        }
        None if error.is_closed() || has_any(&["timeout waiting"]) => ErrorKind::Unreachable,
        _ if has_any(&["TLS", "authentication", "configuration"]) => ErrorKind::Refused,
        _ => ErrorKind::Other,
    }
}

/// Describes an error and its causes. For an error from the server, includes only the message, because the details
/// quote rows.
fn describe(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        if *error.code() == SqlState::PROGRAM_LIMIT_EXCEEDED {
            return "a name is too long for PostgreSQL's indexes (54000)".to_owned();
        }
        return format!("{} ({})", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    for cause in iter::successors(error.source(), |&cause| cause.source()) {
        let inner = cause.downcast_ref().and_then(io::Error::get_ref);
        if let Some(rustls::Error::InvalidCertificate(error)) =
            inner.and_then(|inner| inner.downcast_ref())
        {
            return super::tls::describe(error);
        }
        text = format!("{text}: {cause}");
    }
    text
}
