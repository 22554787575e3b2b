//! Conversion of the error codes of PostgreSQL and the network to [`StoreError`].

pub(super) use crate::engine::Failure;
use deadpool_postgres::{HookError, PoolError, TimeoutType};
use lango_core::StoreError;
use std::error::Error as _;
use std::{io, iter};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The server or the network is down.
    Unreachable,
    /// The server rolled it back and may accept it the next time.
    RolledBack,
    /// The server rejects the connection, or the database does not exist.
    Refused,
    ReadOnly,
    Full,
    Other,
}

impl Failure {
    /// Returns whether a later attempt may succeed.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Postgres(error) => matches!(kind(error), Kind::Unreachable | Kind::RolledBack),
            Self::NoConnection(_) | Self::Timeout => true,
            Self::Store(_) | Self::Column { .. } | Self::Sqlite(_) => false,
        }
    }

    /// Returns whether the work may have been committed although it failed.
    pub(super) fn is_uncertain(&self) -> bool {
        match self {
            Self::Postgres(error) => kind(error) == Kind::Unreachable,
            Self::Timeout => true,
            _ => false,
        }
    }

    /// Returns whether it is an error of the server with this code.
    pub(super) fn is(&self, code: &SqlState) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(code))
    }

    /// Returns the unique constraint that was violated.
    pub(crate) fn broken_rule(&self) -> Option<&str> {
        match self {
            Self::Postgres(error) if self.is(&SqlState::UNIQUE_VIOLATION) => {
                error.as_db_error()?.constraint()
            }
            _ => None,
        }
    }
}

pub(crate) fn postgres_error(place: String, error: &Error) -> StoreError {
    let detail = described(error);
    match kind(error) {
        Kind::Unreachable | Kind::RolledBack => StoreError::Unreachable { place, detail },
        Kind::Refused => StoreError::Unreadable { place, detail },
        Kind::ReadOnly => StoreError::ReadOnly { place, detail },
        Kind::Full => StoreError::Full { place },
        Kind::Other => StoreError::Failed { detail },
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                match kind(&error) {
                    Kind::Unreachable | Kind::RolledBack => Self::NoConnection(described(&error)),
                    _ => Self::Postgres(error),
                }
            }
            PoolError::Timeout(TimeoutType::Wait) => {
                Self::NoConnection("all connections to it are in use".to_owned())
            }
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                Self::NoConnection("no connection could be made in time".to_owned())
            }
            other => Self::other(other.to_string()),
        }
    }
}

fn kind(error: &Error) -> Kind {
    let Some(code) = error.code() else {
        return kind_without_code(error);
    };
    match code.code() {
        "28000" | "28P01" | "3D000" => Kind::Refused,
        "42501" => Kind::ReadOnly,
        "53100" => Kind::Full,
        // Too many connections, a server that starts or stops, or a transaction that was idle for too long.
        "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Kind::Unreachable,
        // The last two are a server that is in recovery, or a standby that was not promoted yet.
        "40001" | "40P01" | "55P03" | "57014" | "55000" | "25006" => Kind::RolledBack,
        code if code.starts_with("08") => Kind::Unreachable,
        _ => Kind::Other,
    }
}

/// Classifies errors that the driver tells apart only by their causes and texts.
fn kind_without_code(error: &Error) -> Kind {
    let text = error.to_string();
    let has_any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let cause: Option<&io::Error> = error.source().and_then(|cause| cause.downcast_ref());
    let inner = cause.and_then(io::Error::get_ref);
    match cause {
        Some(_) if !inner.is_some_and(|inner| inner.is::<rustls::Error>()) => Kind::Unreachable,
        None if error.is_closed() || has_any(&["timeout waiting"]) => Kind::Unreachable,
        _ if has_any(&["TLS", "authentication", "configuration"]) => Kind::Refused,
        _ => Kind::Other,
    }
}

/// Describes an error and its causes. PostgreSQL's details quote rows, so only its message is used.
fn described(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        if *error.code() == SqlState::PROGRAM_LIMIT_EXCEEDED {
            return "a name in it is longer than PostgreSQL can look up (54000)".to_owned();
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
