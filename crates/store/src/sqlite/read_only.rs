//! Databases on a file system that nobody can write, such as a backup on read-only media: read as they are, without a lock,
//! a log or an index beside them.

use super::failure::Failure;
use super::migrations;
use super::place::APPLICATION_ID;
use super::upkeep::refuse_unfinished;
use lango_core::StoreError;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::StatVfsMountFlags;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Opens a database that cannot be opened for writing, or gives back why it could not. It must be whole: with nothing in a
/// write-ahead log that is not in the file, and of the schema that is known, since it cannot be brought up to date.
pub(super) fn open_instead(path: &Path, refusal: StoreError) -> Result<Connection, StoreError> {
    let is_fixed = rustix::fs::statvfs(path)
        .is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY));
    if !is_fixed || has_log(path) {
        return Err(refusal);
    }
    match open(path) {
        Ok(Some(connection)) => Ok(connection),
        Ok(None) => Err(refusal),
        Err(failure) => Err(failure.about(path)),
    }
}

fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

fn open(path: &Path) -> Result<Option<Connection>, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(address(path), flags)?;
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id != APPLICATION_ID {
        return Ok(None);
    }
    migrations::refuse_newer(&connection, path)?;
    if !migrations::is_current(&connection)? {
        return Ok(None);
    }
    refuse_unfinished(&mut connection, path)?;
    Ok(Some(connection))
}

/// The path as an address that says that the file does not change.
fn address(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes().iter();
    let path: String = bytes
        .map(|byte| match byte {
            b'/' | b'.' | b'_' | b'-' => char::from(*byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
            byte => format!("%{byte:02x}"),
        })
        .collect();
    format!("file:{path}?immutable=1")
}
