//! Connections to the file and how they are configured: one that writes, and any number that read.

use super::failure::{Failure, place_of};
use super::migrations;
use super::place::{self, APPLICATION_ID};
use super::upkeep::refuse_unfinished;
use crate::engine::Result;
use lango_core::StoreError;
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use rustix::fs::StatVfsMountFlags;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a connection waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between two attempts where SQLite does not wait by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Number of prepared statements that a connection caches; more than there are.
const STATEMENTS: usize = 96;

/// Opens the database for the writer: creates the file if necessary, checks that it is a database of lango, and migrates it.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    let give_up = Instant::now() + BUSY_TIMEOUT;
    loop {
        match try_open(path) {
            // While another process creates the same database, SQLite fails at once instead of waiting.
            Err(failure) if failure.is_busy() && Instant::now() < give_up => {
                thread::sleep(BUSY_PAUSE)
            }
            result => return result.map_err(|failure| failure.about(path)),
        }
    }
}

/// Opens the database for writing, unless it is the target of an unfinished transfer.
pub(super) fn open_whole(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = open_writer(path)?;
    refuse_unfinished(&mut connection, path).map_err(|failure| failure.about(path))?;
    Ok(connection)
}

fn try_open(path: &Path) -> Result<Connection> {
    place::prepare(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if connection.is_readonly(MAIN_DB)? {
        let detail = "it can be read but not written".to_owned();
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
    /// An empty database with the newest schema: copying it takes a tenth of the time that migrating does.
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

/// Opens a connection that only reads. The writer must have opened the database before.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch("PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY")?;
    Ok(connection)
}

/// Opens a database on a read-only file system, such as a backup on read-only media, without a lock, a log or an index beside
/// it. Returns `refusal`, why it could not be opened for writing, unless the file has all its data and the current schema.
pub(super) fn open_immutable(path: &Path, refusal: StoreError) -> Result<Connection, StoreError> {
    let is_read_only = rustix::fs::statvfs(path)
        .is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY));
    let has_log = place::beside(path, "-wal")
        .metadata()
        .is_ok_and(|log| log.len() > 0);
    if !is_read_only || has_log {
        return Err(refusal);
    }
    let open = || {
        let mut connection = place::connect_immutable(path)?;
        if place::application_id(&connection)? != APPLICATION_ID {
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
        .map_err(|failure: Failure| failure.about(path))?
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
    // Plans that do not depend on bound values; otherwise SQLite plans many cached statements again for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

fn set_up(connection: &Connection, path: &Path) -> Result<()> {
    // Checked again on this connection: a process that died while it created the file may have left a page with this id, and a
    // journal that rolls it back.
    let owner =
        "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id";
    let (id, tables): (i32, i64) =
        connection.query_row(owner, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if id != APPLICATION_ID {
        if tables > 0 {
            return Err(place::foreign(path).into());
        }
        // Before the write-ahead log is turned on, so that the first page of the file itself has the id.
        connection.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
    }
    let journal: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if journal != "wal" {
        return Err(Failure::other(
            "write-ahead logging does not work on this file system; is it a network share?",
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
