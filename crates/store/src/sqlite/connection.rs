//! Connections to the file and how they are set up: one that writes, and any number that read.

use super::failure::{Failure, place_of};
use super::migrations;
use super::place::{self, APPLICATION_ID};
use lango_core::StoreError;
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a connection waits for another process before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the writer waits for another process once the database is open: one that writes the whole file anew, so that
/// nothing of what was deleted is left in it, may take a while, and no turn is to break off because of it.
pub(super) const WRITER_PATIENCE: Duration = Duration::from_secs(120);

/// How long it waits between two tries where SQLite does not wait by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Whose the file is, and how many tables it has, as of one moment.
const WHOSE: &str =
    "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id";

/// How many prepared statements a connection keeps; more than there are.
const STATEMENTS: usize = 96;

/// Opens the database for the writer: finds or makes the file, checks that it is ours, and migrates it.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    let give_up = Instant::now() + BUSY_TIMEOUT;
    loop {
        match try_open(path) {
            // While another process makes the same database, SQLite says so at once instead of waiting.
            Err(failure) if failure.is_busy() && Instant::now() < give_up => {
                thread::sleep(BUSY_PAUSE)
            }
            result => return result.map_err(|failure| failure.about(path)),
        }
    }
}

fn try_open(path: &Path) -> Result<Connection, Failure> {
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

/// Opens a database that ends with its connection.
pub(super) fn prepare_in_memory() -> rusqlite::Result<Connection> {
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

/// An empty database with the newest schema: copying it takes a tenth of the time that migrating does.
static TEMPLATE: Mutex<Option<Connection>> = Mutex::new(None);

/// Opens a connection that can only read. The writer's must be open already.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch("PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY")?;
    Ok(connection)
}

/// Runs a statement without values or rows, kept prepared for the next time.
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
    // Plans that do not depend on bound values; else SQLite plans many a cached statement anew for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

fn set_up(connection: &Connection, path: &Path) -> Result<(), Failure> {
    // What this connection sees counts: a process that died while it made the file may have left a page that says it is
    // ours, and a journal that takes it back.
    let (id, tables): (i32, i64) =
        connection.query_row(WHOSE, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if id != APPLICATION_ID {
        if tables > 0 {
            return Err(place::foreign(path).into());
        }
        // Before the write-ahead log is turned on, so that the file itself says whose it is from its first page on.
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
