//! From what SQLite and the system say to what a caller can do about it. The one place that reads their codes.

pub(super) use crate::engine::Failure;
use lango_core::StoreError;
use rusqlite::{Error, ErrorCode, ffi};
use std::io;
use std::path::Path;

impl Failure {
    /// Whether another process is in the way, so that a later try may succeed.
    pub(super) fn is_busy(&self) -> bool {
        let Self::Sqlite(error) = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        )
    }
}

/// SQLite's error in our words.
pub(crate) fn sqlite_error(place: String, error: &Error) -> StoreError {
    let detail = error.to_string();
    if error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
    {
        // The index of the write-ahead log could not grow.
        return StoreError::Full { place };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { place },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { place, detail },
        Some(ErrorCode::SystemIoFailure) if is_about_reading(error) => {
            StoreError::Unreadable { place, detail }
        }
        // A disk that fails turns read-only, which SQLite says in these words too.
        Some(ErrorCode::SystemIoFailure) => StoreError::ReadOnly { place, detail },
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::CannotOpen) => {
            StoreError::Unreadable { place, detail }
        }
        // It may pass, as the loss of a connection may.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Unreachable {
            place,
            detail: "another process has been writing to it for too long".to_owned(),
        },
        _ => StoreError::Failed { detail },
    }
}

fn is_about_reading(error: &Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(
        code,
        Some(ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ)
    )
}

/// The system's error on making the file, in our words.
pub(super) fn creation_error(path: &Path, error: &io::Error) -> StoreError {
    let (place, detail) = (place_of(path), error.to_string());
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            StoreError::ReadOnly { place, detail }
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { place },
        _ => StoreError::Unreadable { place, detail },
    }
}

/// The file as errors name it.
pub(super) fn place_of(path: &Path) -> String {
    path.display().to_string()
}
