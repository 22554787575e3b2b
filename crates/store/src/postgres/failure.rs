//! From what PostgreSQL and the network say to what a caller can do about it. The one place that reads their codes.

pub(super) use crate::engine::Failure;
use deadpool_postgres::{HookError, PoolError, TimeoutType};
use lango_core::StoreError;
use rustls::CertificateError;
use std::error::Error as _;
use std::io;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What to make of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The server, or the way there, is gone for now.
    Away,
    /// The server undid it and may do it the next time.
    Undone,
    /// We are not let in, or there is no such database.
    Refused,
    /// It may not be written.
    ReadOnly,
    /// There is no room.
    Full,
    /// Anything else.
    Other,
}

impl Failure {
    /// Whether a later try may succeed.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Postgres(error) => matches!(kind(error), Kind::Away | Kind::Undone),
            Self::NoConnection(_) | Self::Silent => true,
            Self::Said(_) | Self::Column { .. } | Self::Sqlite(_) => false,
        }
    }

    /// Whether what was asked for may have been done all the same.
    pub(super) fn is_uncertain(&self) -> bool {
        match self {
            Self::Postgres(error) => kind(error) == Kind::Away,
            Self::Silent => true,
            _ => false,
        }
    }

    /// Whether somebody else has locked what was asked for.
    pub(super) fn is_locked(&self) -> bool {
        let Self::Postgres(error) = self else {
            return false;
        };
        error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Which rule of the schema was broken, if that is what happened.
    pub(super) fn broken_rule(&self) -> Option<&str> {
        let Self::Postgres(error) = self else {
            return None;
        };
        let error = error.as_db_error()?;
        (*error.code() == SqlState::UNIQUE_VIOLATION).then(|| error.constraint())?
    }

    /// Whether something of this name is there already that is not ours.
    pub(super) fn is_taken(&self) -> bool {
        let Self::Postgres(error) = self else {
            return false;
        };
        let codes = [&SqlState::DUPLICATE_TABLE, &SqlState::DUPLICATE_OBJECT];
        error.code().is_some_and(|code| codes.contains(&code))
    }
}

/// PostgreSQL's error in our words.
pub(crate) fn postgres_error(place: String, error: &Error) -> StoreError {
    let detail = described(error);
    match kind(error) {
        Kind::Away | Kind::Undone => StoreError::Unreachable { place, detail },
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
                    Kind::Away | Kind::Undone => Self::NoConnection(described(&error)),
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
        "42501" | "25006" => Kind::ReadOnly,
        "53100" => Kind::Full,
        // Too many connections, shutting down or starting up, or we were silent in a transaction for too long.
        "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Kind::Away,
        "40001" | "40P01" | "55P03" | "57014" => Kind::Undone,
        code if code.starts_with("08") => Kind::Away,
        _ => Kind::Other,
    }
}

/// The driver does not tell its kinds apart in any other way than by their causes and their words.
fn kind_without_code(error: &Error) -> Kind {
    let said = error.to_string();
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    let is_about_trust = |cause: &io::Error| {
        let inner = cause.get_ref();
        inner.is_some_and(|inner| inner.is::<rustls::Error>())
    };
    match cause {
        Some(cause) if !is_about_trust(cause) => Kind::Away,
        None if error.is_closed() || said.contains("timeout waiting") => Kind::Away,
        _ if ["TLS", "authentication", "configuration"]
            .iter()
            .any(|word| said.contains(word)) =>
        {
            Kind::Refused
        }
        _ => Kind::Other,
    }
}

/// What is wrong with the server's certificate, if that is what stands behind an error of the way there.
fn refused_certificate(error: &io::Error) -> Option<&CertificateError> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::InvalidCertificate(error) => Some(error),
        _ => None,
    }
}

/// What was said, down to its cause. PostgreSQL's details quote rows, so its message has to do.
fn described(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        if *said.code() == SqlState::PROGRAM_LIMIT_EXCEEDED {
            return "a name in it is longer than PostgreSQL can look up (54000)".to_owned();
        }
        return format!("{} ({})", said.message(), said.code().code());
    }
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let refused = deeper.downcast_ref().and_then(refused_certificate);
        if let Some(refused) = refused {
            return super::tls::words(refused);
        }
        words.push_str(": ");
        words.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    words
}
