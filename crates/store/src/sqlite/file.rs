//! The database file: resolves its path, restricts access to its owner, and checks that it belongs to lango.
//!
//! A file of another program is never changed. The header is read through SQLite, on a connection that takes no locks
//! and creates no files. lango must not open the file itself, because closing it would release the locks that this
//! process may have on it.

use super::error::{creation_error, place_of, sqlite_error};
use lango_core::StoreError;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The application id in the header of lango's databases: `lang` in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x6c61_6e67;

/// Returns the absolute path with symbolic links resolved, so that processes that use different names of the file find the same
/// lock files next to it.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    let path = std::path::absolute(path).map_err(|error| unreadable(path, error.to_string()))?;
    for existing in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(existing), path.strip_prefix(existing)) {
            return Ok(real.iter().chain(rest).collect());
        }
    }
    Ok(path)
}

/// Checks that the file is a database of lango, or creates an empty file, and restricts access to its owner.
pub(super) fn prepare(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_folder_of(path)?;
            create(path).map_err(|error| creation_error(path, &error))?;
        }
        Err(error) => return Err(unreadable(path, error.to_string())),
        Ok(file) if file.is_dir() => return Err(unreadable(path, "it is a folder")),
        Ok(file) if file.len() == 0 => {}
        Ok(_) => check_owner(path)?,
    }
    for suffix in ["", "-wal", "-shm"] {
        restrict_to_owner(&with_suffix(path, suffix))
            .map_err(|error| creation_error(path, &error))?;
    }
    Ok(())
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn create_folder_of(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(folder);
    created.map_err(|error| match creation_error(path, &error) {
        full @ StoreError::Full { .. } => full,
        _ => StoreError::ReadOnly {
            place: place_of(path),
            detail: format!("the folder `{}` cannot be created", folder.display()),
        },
    })
}

fn create(path: &Path) -> io::Result<()> {
    match create_file(path) {
        // Another process has just created it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

/// Creates an empty file that only its owner can read.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn restrict_to_owner(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(file) if file.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(path, Permissions::from_mode(0o600))
        }
        _ => Ok(()),
    }
}

fn check_owner(path: &Path) -> Result<(), StoreError> {
    let id = connect_immutable(path).and_then(|connection| {
        // While part of the database is only in its write-ahead log, the file is shorter than its header says. This setting keeps
        // SQLite from reporting the file as malformed.
        connection.execute_batch("PRAGMA writable_schema = ON")?;
        application_id(&connection)
    });
    match id {
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

pub(super) fn foreign(path: &Path) -> StoreError {
    StoreError::Foreign {
        place: place_of(path),
        detail: "it is a SQLite database of another program".to_owned(),
    }
}

pub(super) fn application_id(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// Opens a connection that reads only the file itself, without locks and without its write-ahead log.
pub(super) fn connect_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let path = percent_encode(path.as_os_str().as_bytes(), NON_ALPHANUMERIC);
    Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)
}

fn unreadable(path: &Path, detail: impl Into<String>) -> StoreError {
    StoreError::Unreadable {
        place: place_of(path),
        detail: detail.into(),
    }
}
