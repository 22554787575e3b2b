//! Converts error codes of SQLite and the operating system to [`StoreError`].

pub(super) use crate::backend::BackendError;
use lango_core::StoreError;
use rusqlite::{Error, ErrorCode, ffi};
use std::io;
use std::path::Path;

impl BackendError {
    /// Returns whether another process has locked the database, so that a later attempt may succeed.
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

pub(crate) fn sqlite_error(place: String, error: &Error) -> StoreError {
    let detail = error.to_string();
    match error.sqlite_error().map(|error| error.extended_code) {
        // The disk was too full to extend the index of the write-ahead log.
        Some(ffi::SQLITE_IOERR_SHMSIZE) => return StoreError::Full { place },
        Some(ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ) => {
            return StoreError::Unreadable { place, detail };
        }
        _ => {}
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { place },
        // A failing disk becomes read-only, which SQLite reports as an I/O error.
        Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => {
            StoreError::ReadOnly { place, detail }
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::CannotOpen) => {
            StoreError::Unreadable { place, detail }
        }
        // A later attempt may succeed, as after a lost connection.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Unreachable {
            place,
            detail: "another process has been writing to it for too long".to_owned(),
        },
        _ => StoreError::Failed { detail },
    }
}

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

pub(super) fn place_of(path: &Path) -> String {
    path.display().to_string()
}
