//! The one thread that writes.
//!
//! It takes whatever is queued, up to a limit, and runs it in one transaction, each job in a savepoint of its own: a job
//! that fails undoes itself and nobody else. One commit, and with it one disk sync, serves the whole group. Only then is
//! anybody answered; when the commit fails, everybody gets that error and nothing of the group is stored.

use super::failure::{Failure, sqlite_error};
use super::log;
use lango_core::{Batch, NewSession, StoreError};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};

/// How many jobs can wait; a sender beyond that waits for room.
const QUEUE: usize = 256;

/// How many jobs one transaction takes.
const GROUP: usize = 64;

/// Something to store.
#[derive(Debug)]
pub(super) enum Work {
    /// A new session.
    Create(NewSession),
    /// Events of one session.
    Append(Batch),
}

struct Job {
    work: Work,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

/// The handle to the thread. Dropping it finishes what is queued and waits for the thread to end.
pub(super) struct Writer {
    /// Always there until the drop, which closes the queue by taking it.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread on a connection that can write.
    pub(super) fn start(connection: Connection, path: PathBuf) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new()
            .name("lango-writer".to_owned())
            .spawn(move || write_until_closed(&connection, &path, queue))
            .map_err(|error| StoreError::Failed { detail: format!("cannot start the writer: {error}") })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Has the work done, and resolves when it is durable. Work that was queued is done even if nobody waits for it.
    pub(super) async fn submit(&self, work: Work) -> Result<(), StoreError> {
        let stopped = || StoreError::Failed { detail: "the writer has stopped".to_owned() };
        let (answer, answered) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(Job { work, answer }).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs.take();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has nothing left to finish.
            let _ = thread.join();
        }
    }
}

fn write_until_closed(connection: &Connection, path: &Path, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(GROUP);
    while queue.blocking_recv_many(&mut jobs, GROUP) > 0 {
        let group: Vec<&Work> = jobs.iter().map(|job| &job.work).collect();
        let results = store_group(connection, path, &group);
        for (job, result) in jobs.drain(..).zip(results) {
            // Whoever stopped waiting does not want to know.
            let _ = job.answer.send(result);
        }
    }
}

/// Stores a group with one commit and gives the result of each job, in their order.
fn store_group(connection: &Connection, path: &Path, group: &[&Work]) -> Vec<Result<(), StoreError>> {
    match try_group(connection, group) {
        Ok(results) => results.into_iter().map(|result| result.map_err(|failure| failure.about(path))).collect(),
        Err(error) => {
            if !connection.is_autocommit() {
                // If this fails too, the next group's `BEGIN` does, and its `ROLLBACK` is the next try.
                let _ = execute(connection, "ROLLBACK");
            }
            group.iter().map(|_| Err(sqlite_error(path, &error))).collect()
        }
    }
}

fn try_group(connection: &Connection, group: &[&Work]) -> rusqlite::Result<Vec<Result<(), Failure>>> {
    execute(connection, "BEGIN IMMEDIATE")?;
    let results = group.iter().map(|work| try_job(connection, work)).collect::<rusqlite::Result<_>>()?;
    execute(connection, "COMMIT")?;
    Ok(results)
}

/// Runs one job. The outer error is one that took the whole transaction with it.
fn try_job(connection: &Connection, work: &Work) -> rusqlite::Result<Result<(), Failure>> {
    execute(connection, "SAVEPOINT job")?;
    let result = match work {
        Work::Create(session) => log::create(connection, session),
        Work::Append(events) => log::append(connection, events),
    };
    match result {
        // SQLite rolls back everything by itself when it runs out of room or cannot read and write.
        Err(Failure::Sqlite(error)) if connection.is_autocommit() => return Err(error),
        Err(_) => execute(connection, "ROLLBACK TO job")?,
        Ok(()) => {}
    }
    execute(connection, "RELEASE job")?;
    Ok(result)
}

fn execute(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([])?;
    Ok(())
}
