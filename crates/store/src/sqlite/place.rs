//! The file: where it is, that only its owner can read it, and whether it is ours.
//!
//! A file that is not ours is looked at and left as it is. SQLite itself does the looking, on a connection that takes no
//! locks and makes no files; reading the header by hand would release the locks that this process may hold on it.

use super::failure::{creation_error, place_of, sqlite_error};
use lango_core::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What a database of lango carries in its header: `lang`.
pub(super) const APPLICATION_ID: i32 = 0x6c61_6e67;

const OWNER_ONLY: u32 = 0o600;
const OWNER_ONLY_FOLDER: u32 = 0o700;

/// The path from the root, so that no later change of folder or reading as an address can give it another meaning. Links
/// are followed as far as they lead, because whoever comes by another name has to find the same locks beside it.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    let path = std::path::absolute(path).map_err(|error| unreadable(path, error.to_string()))?;
    for there in path.ancestors() {
        if let Ok(real) = fs::canonicalize(there) {
            return Ok(match path.strip_prefix(there) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                _ => real,
            });
        }
    }
    Ok(path)
}

/// Finds the database or makes an empty file for it, and sees to it that only the owner can read it.
pub(super) fn prepare(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path).map_err(|error| creation_error(path, &error))?;
        }
        Err(error) => return Err(unreadable(path, error.to_string())),
        Ok(file) if file.is_dir() => return Err(unreadable(path, "it is a folder")),
        Ok(file) if file.len() == 0 => {}
        Ok(_) => recognise(path)?,
    }
    for suffix in ["", "-wal", "-shm"] {
        close_to_others(&beside(path, suffix)).map_err(|error| creation_error(path, &error))?;
    }
    Ok(())
}

/// The file that SQLite keeps beside the database under this suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY_FOLDER)
            .create(folder)?;
    }
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(path)
    {
        // Another process that starts at the same moment made it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

fn close_to_others(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(file) if file.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY))
        }
        _ => Ok(()),
    }
}

fn recognise(path: &Path) -> Result<(), StoreError> {
    match application_id(path) {
        Ok(APPLICATION_ID) => Ok(()),
        Ok(_) => Err(foreign(path)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(StoreError::Foreign {
                place: place_of(path),
                detail: "it is not a SQLite database".to_owned(),
            })
        }
        Err(error) => Err(sqlite_error(place_of(path), &error)),
    }
}

/// A database that is not ours.
pub(super) fn foreign(path: &Path) -> StoreError {
    StoreError::Foreign {
        place: place_of(path),
        detail: "it is the SQLite database of another program".to_owned(),
    }
}

fn application_id(path: &Path) -> rusqlite::Result<i32> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(immutable_address(path), flags)?;
    // The file may be shorter than it says while the rest is still in its write-ahead log. This keeps SQLite from
    // calling that malformed before it has looked at the log.
    connection.execute_batch("PRAGMA writable_schema = ON")?;
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// The path as an address that tells SQLite to read the file as it is, without locks and without its log.
fn immutable_address(path: &Path) -> String {
    let mut address = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02x}"));
        }
    }
    address.push_str("?immutable=1");
    address
}

fn unreadable(path: &Path, detail: impl Into<String>) -> StoreError {
    StoreError::Unreadable {
        place: place_of(path),
        detail: detail.into(),
    }
}
