//! The writer thread.
//!
//! It takes a group of queued jobs, up to a limit, and runs them in one transaction. If a job fails, which is rare, all
//! of them run again, each in its own savepoint, so that only the failing job is rolled back. The first run has no
//! savepoints because each costs a copy of every page that the job changes. One commit, with at most one disk sync,
//! serves the whole group. The jobs are answered after the commit; if it fails, all of them get that error and none is
//! stored.
//!
//! The thread syncs the write-ahead log itself, because only some commits need it. Changing `PRAGMA synchronous` between commits
//! would work too, but SQLite parses the statement each time.

use super::connection::{execute, open_complete, open_writer};
use super::error::{BackendError, place_of, sqlite_error};
use super::wal::WriteAheadLog;
use crate::backend::{Durability, Result};
use crate::decode::failed;
use crate::tables::OpenMode;
use lango_core::StoreError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of queued jobs. Further senders wait.
const QUEUE: usize = 256;

/// Maximum number of jobs in one transaction.
const GROUP: usize = 64;

/// How long the writer waits for another process. Compacting the file takes a while, and turns should not fail because of it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(120);

/// A change to the database. It may run twice, because its group may run again.
type Change = Box<dyn Fn(&mut Connection) -> Result<()> + Send>;

pub(super) struct Work {
    change: Change,
    durability: Durability,
}

struct Job {
    work: Work,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

/// A handle to the writer thread. Dropping it finishes the queued jobs and waits for the thread to end.
pub(super) struct Writer {
    pub path: PathBuf,
    open_mode: OpenMode,
    thread: Mutex<Option<WriterThread>>,
}

struct WriterThread {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

impl WriterThread {
    /// Opens and migrates the database, and starts the thread.
    fn start(path: &Path, open_mode: OpenMode) -> Result<Self, StoreError> {
        let mut connection = match open_mode {
            OpenMode::Normal => open_complete(path)?,
            OpenMode::TransferTarget => open_writer(path)?,
        };
        connection
            .busy_timeout(BUSY_TIMEOUT)
            .map_err(|error| sqlite_error(place_of(path), &error))?;
        let mut wal = WriteAheadLog::take_over(&connection, path)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        let path = path.to_owned();
        let thread = thread::Builder::new()
            .name("lango-writer".to_owned())
            .spawn(move || write_until_closed(&mut connection, &path, &mut wal, queue))
            .map_err(|error| failed(format!("cannot start the writer thread: {error}")))?;
        Ok(Self { jobs, thread })
    }
}

impl Writer {
    pub(super) fn new(path: PathBuf, open_mode: OpenMode) -> Self {
        Self {
            path,
            open_mode,
            thread: Mutex::new(None),
        }
    }

    pub(super) fn open(&self) -> Result<(), StoreError> {
        self.jobs().map(drop)
    }

    fn jobs(&self) -> Result<mpsc::Sender<Job>, StoreError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = match &*thread {
            Some(thread) => thread,
            None => thread.insert(WriterThread::start(&self.path, self.open_mode)?),
        };
        Ok(thread.jobs.clone())
    }

    /// Makes a change in a transaction and returns its result once it is durable. A queued change is made even if the future is
    /// dropped. It must be short: turns wait behind it.
    pub(super) async fn change<T, F>(
        &self,
        durability: Durability,
        change: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&mut Connection) -> Result<T> + Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let change: Change = Box::new(move |connection| {
            let result = change(connection)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            Ok(())
        });
        let stopped = || failed("the writer thread has stopped");
        let work = Work { change, durability };
        let (answer, answered) = oneshot::channel();
        let sent = self.jobs()?.send(Job { work, answer }).await;
        sent.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())??;
        let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
        result.take().ok_or_else(stopped)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let thread = self.thread.get_mut();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(WriterThread { jobs, thread }) = thread {
            // Dropping the last sender closes the queue.
            drop(jobs);
            // A writer that panicked has nothing left to finish.
            let _ = thread.join();
        }
    }
}

fn write_until_closed(
    connection: &mut Connection,
    path: &Path,
    wal: &mut WriteAheadLog,
    mut queue: mpsc::Receiver<Job>,
) {
    let mut jobs = Vec::with_capacity(GROUP);
    while queue.blocking_recv_many(&mut jobs, GROUP) > 0 {
        let group: Vec<&Work> = jobs.iter().map(|job| &job.work).collect();
        let results = store_group(connection, path, wal, &group);
        for (job, result) in jobs.drain(..).zip(results) {
            // The caller may have stopped waiting.
            let _ = job.answer.send(result);
        }
    }
}

/// Runs a group of jobs in one transaction. Returns one result per job, in the same order.
fn store_group(
    connection: &mut Connection,
    path: &Path,
    wal: &mut WriteAheadLog,
    group: &[&Work],
) -> Vec<Result<(), StoreError>> {
    if wal.check().is_err() {
        return group.iter().map(|_| wal.check()).collect();
    }
    match try_group(connection, group) {
        Ok(results) => {
            let is_written = results.iter().any(Result::is_ok);
            if is_written && durability_of(group) == Durability::Machine && wal.sync().is_err() {
                return group.iter().map(|_| wal.check()).collect();
            }
            results
                .into_iter()
                .map(|result| result.map_err(|failure| failure.about(path)))
                .collect()
        }
        Err(error) => {
            if !connection.is_autocommit() {
                // If this fails too, the `BEGIN` of the next group fails, and its `ROLLBACK` tries again.
                let _ = execute(connection, "ROLLBACK");
            }
            group
                .iter()
                .map(|_| Err(sqlite_error(place_of(path), &error)))
                .collect()
        }
    }
}

/// Returns the durability of a group: that of its most demanding job.
fn durability_of(group: &[&Work]) -> Durability {
    let needs_sync = |work: &&Work| work.durability == Durability::Machine;
    if group.iter().any(needs_sync) {
        Durability::Machine
    } else {
        Durability::Process
    }
}

fn try_group(connection: &mut Connection, group: &[&Work]) -> rusqlite::Result<Vec<Result<()>>> {
    execute(connection, "BEGIN IMMEDIATE")?;
    if let [work] = group {
        let result = (work.change)(connection);
        end(connection, result.is_ok())?;
        return Ok(vec![result]);
    }
    let is_done = group.iter().all(|work| (work.change)(connection).is_ok());
    end(connection, is_done)?;
    if is_done {
        return Ok(group.iter().map(|_| Ok(())).collect());
    }
    execute(connection, "BEGIN IMMEDIATE")?;
    let results = group
        .iter()
        .map(|work| run_in_savepoint(connection, work))
        .collect::<rusqlite::Result<_>>()?;
    execute(connection, "COMMIT")?;
    Ok(results)
}

/// Commits the transaction if `is_ok`, otherwise rolls it back.
pub(super) fn end(connection: &Connection, is_ok: bool) -> rusqlite::Result<()> {
    if is_ok {
        execute(connection, "COMMIT")
    } else if connection.is_autocommit() {
        // SQLite has already rolled back by itself.
        Ok(())
    } else {
        execute(connection, "ROLLBACK")
    }
}

/// Runs a job in a savepoint. An outer error means that the whole transaction was rolled back.
fn run_in_savepoint(connection: &mut Connection, work: &Work) -> rusqlite::Result<Result<()>> {
    execute(connection, "SAVEPOINT job")?;
    let result = (work.change)(connection);
    match result {
        // SQLite rolls back everything by itself when the disk is full or fails.
        Err(BackendError::Sqlite(error)) if connection.is_autocommit() => return Err(error),
        Err(_) => execute(connection, "ROLLBACK TO job")?,
        Ok(()) => {}
    }
    execute(connection, "RELEASE job")?;
    Ok(result)
}

#[cfg(test)]
mod tests;
