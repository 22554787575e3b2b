//! Opens and configures connections to the file: one that writes, and several that read.

use super::error::{BackendError, place_of};
use super::file::{self, APPLICATION_ID};
use super::maintenance::refuse_unfinished;
use super::migrations;
use crate::backend::Result;
use lango_core::StoreError;
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use rustix::fs::StatVfsMountFlags;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a connection waits for a lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between attempts where SQLite does not wait by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Number of prepared statements that a connection caches. It exceeds the number of statements that exist.
const STATEMENTS: usize = 96;

/// Opens the database for the writer: creates the file if necessary, checks that it is a database of lango, and migrates it.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    let give_up = Instant::now() + BUSY_TIMEOUT;
    loop {
        match try_open(path) {
            // While another process creates the same database, SQLite fails immediately instead of waiting.
            Err(failure) if failure.is_busy() && Instant::now() < give_up => {
                thread::sleep(BUSY_PAUSE)
            }
            result => return result.map_err(|failure| failure.about(path)),
        }
    }
}

/// Opens the database for writing. Fails if it is the target of an unfinished transfer.
pub(super) fn open_complete(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = open_writer(path)?;
    refuse_unfinished(&mut connection, path).map_err(|failure| failure.about(path))?;
    Ok(connection)
}

fn try_open(path: &Path) -> Result<Connection> {
    file::prepare(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if connection.is_readonly(MAIN_DB)? {
        let detail = "the file cannot be written".to_owned();
        return Err(StoreError::ReadOnly {
            place: place_of(path),
            detail,
        }
        .into());
    }
    migrations::refuse_newer(&connection, path)?;
    set_up(&connection, path)?;
    migrations::migrate(&mut connection)?;
    Ok(connection)
}

pub(crate) fn open_in_memory() -> rusqlite::Result<Connection> {
    /// An empty database with the newest schema. Copying it takes a tenth of the time of a migration.
    static TEMPLATE: Mutex<Option<Connection>> = Mutex::new(None);
    let mut connection = Connection::open_in_memory()?;
    configure(&connection)?;
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY")?;
    let mut template = TEMPLATE.lock().unwrap_or_else(PoisonError::into_inner);
    let template = match &mut *template {
        Some(template) => template,
        None => {
            let mut new = Connection::open_in_memory()?;
            migrations::migrate(&mut new)?;
            template.insert(new)
        }
    };
    Backup::new(template, &mut connection)?.run_to_completion(i32::MAX, Duration::ZERO, None)?;
    Ok(connection)
}

/// Opens a read-only connection. The writer must have opened the database before.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch("PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY")?;
    Ok(connection)
}

/// Opens a database on a read-only file system, such as a backup on read-only media, without creating any files. Fails with
/// `refusal`, the error of opening it for writing, unless the file contains all its data and has the current schema.
pub(super) fn open_immutable(path: &Path, refusal: StoreError) -> Result<Connection, StoreError> {
    let is_read_only = rustix::fs::statvfs(path)
        .is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY));
    let has_log = file::with_suffix(path, "-wal")
        .metadata()
        .is_ok_and(|log| log.len() > 0);
    if !is_read_only || has_log {
        return Err(refusal);
    }
    let open = || {
        let mut connection = file::connect_immutable(path)?;
        if file::application_id(&connection)? != APPLICATION_ID {
            return Ok(None);
        }
        migrations::refuse_newer(&connection, path)?;
        if !migrations::is_current(&connection)? {
            return Ok(None);
        }
        refuse_unfinished(&mut connection, path)?;
        Ok(Some(connection))
    };
    open()
        .map_err(|failure: BackendError| failure.about(path))?
        .ok_or(refusal)
}

/// Runs a statement without values or rows, and caches it.
pub(super) fn execute(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([])?;
    Ok(())
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    configure(&connection)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // Makes plans independent of bound values. Otherwise SQLite plans many cached statements again for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

fn set_up(connection: &Connection, path: &Path) -> Result<()> {
    // This checks again, because a process that crashed while creating the file may have left a page with this id and a journal
    // that rolls it back.
    let owner =
        "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id";
    let (id, tables): (i32, i64) =
        connection.query_row(owner, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if id != APPLICATION_ID {
        if tables > 0 {
            return Err(file::foreign(path).into());
        }
        // The id is written before write-ahead logging is turned on, so that it is in the first page of the file itself.
        connection.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
    }
    let journal: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if journal != "wal" {
        return Err(BackendError::other(
            "SQLite's write-ahead log does not work on this file system, which may be a network share; \
             use a local disk",
        ));
    }
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -2048;
         PRAGMA journal_size_limit = 4194304;",
    )?;
    Ok(())
}
