//! The one thread that writes.
//!
//! It takes whatever is queued, up to a limit, and runs it in one transaction, each job in a savepoint of its own: a job
//! that fails undoes itself and nobody else. One commit, and with it at most one disk sync, serves the whole group. Only
//! then is anybody answered; when the commit fails, everybody gets that error and nothing of the group is stored.

use super::connection::{WRITER_PATIENCE, execute, open_writer};
use super::failure::{Failure, place_of, sqlite_error};
use super::in_memory::{self, InMemory};
use super::upkeep::refuse_unfinished;
use crate::engine::Durability;
use crate::tables::OpenMode;
use lango_core::StoreError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};

/// How many jobs can wait; a sender beyond that waits for room.
const QUEUE: usize = 256;

/// How many jobs one transaction takes.
const GROUP: usize = 64;

/// What is written. It may be run again if its group has to be.
type Change = Box<dyn Fn(&mut Connection) -> Result<(), Failure> + Send>;

/// Something to store.
pub(super) struct Work {
    change: Change,
    durability: Durability,
}

struct Job {
    work: Work,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

/// The handle to the thread. Dropping it finishes what is queued and waits for the thread to end.
pub(super) struct Writer {
    path: PathBuf,
    open_mode: OpenMode,
    running: Mutex<Option<Running>>,
    /// The database, if it is in memory: work is done on the caller's thread then.
    memory: Option<Arc<InMemory>>,
}

/// The thread, once it is started.
struct Running {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Opens the database, which brings its schema up to date, and starts the thread.
    fn start(path: &Path, open_mode: OpenMode) -> Result<Self, StoreError> {
        let mut connection = match open_mode {
            OpenMode::Normal => open_whole(path)?,
            OpenMode::TransferTarget => open_writer(path)?,
        };
        connection
            .busy_timeout(WRITER_PATIENCE)
            .map_err(|error| sqlite_error(place_of(path), &error))?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        let path = path.to_owned();
        let thread = thread::Builder::new()
            .name("lango-writer".to_owned())
            .spawn(move || write_until_closed(&mut connection, &path, queue))
            .map_err(|error| StoreError::Failed {
                detail: format!("cannot start the writer: {error}"),
            })?;
        Ok(Self { jobs, thread })
    }
}

/// Opens the database for writing, unless it is the target of an unfinished transfer.
pub(super) fn open_whole(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = open_writer(path)?;
    refuse_unfinished(&mut connection, path).map_err(|failure| failure.about(path))?;
    Ok(connection)
}

impl Writer {
    /// A writer of this database, which is opened when it is first needed.
    pub(super) fn at(path: PathBuf, open_mode: OpenMode) -> Self {
        Self {
            path,
            open_mode,
            running: Mutex::new(None),
            memory: None,
        }
    }

    /// A writer of a database in memory.
    pub(super) fn in_memory(memory: Arc<InMemory>) -> Self {
        let mut writer = Self::at(PathBuf::from(in_memory::PLACE), OpenMode::Normal);
        writer.memory = Some(memory);
        writer
    }

    /// Whether there is no file.
    pub(super) fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Where the database is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the database, unless it is open.
    pub(super) fn open(&self) -> Result<(), StoreError> {
        match &self.memory {
            Some(memory) => memory.with(|_| Ok(())),
            None => self.jobs().map(drop),
        }
    }

    fn jobs(&self) -> Result<mpsc::Sender<Job>, StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match &*running {
            Some(running) => running,
            None => running.insert(Running::start(&self.path, self.open_mode)?),
        };
        Ok(running.jobs.clone())
    }

    /// Has the work done, and resolves when it is durable. Work that was queued is done even if nobody waits for it.
    async fn submit(&self, work: Work) -> Result<(), StoreError> {
        if let Some(memory) = &self.memory {
            return memory.with(|connection| {
                execute(connection, "BEGIN")?;
                alone(connection, &work)?
            });
        }
        let stopped = || StoreError::Failed {
            detail: "the writer has stopped".to_owned(),
        };
        let (answer, answered) = oneshot::channel();
        let jobs = self.jobs()?;
        jobs.send(Job { work, answer })
            .await
            .map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// Has a change made, in a transaction, and gives what it found out. It must be short: turns wait behind it.
    pub(super) async fn change<T, F>(
        &self,
        durability: Durability,
        change: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&mut Connection) -> Result<T, Failure> + Send + 'static,
    {
        let found = Arc::new(Mutex::new(None));
        let place = Arc::clone(&found);
        let change: Change = Box::new(move |connection| {
            let result = change(connection)?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            Ok(())
        });
        self.submit(Work { change, durability }).await?;
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.take().ok_or_else(|| StoreError::Failed {
            detail: "a change gave nothing back".to_owned(),
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let running = self
            .running
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(Running { jobs, thread }) = running.take() {
            // Without anybody to send, the queue ends.
            drop(jobs);
            // A writer that panicked has nothing left to finish.
            let _ = thread.join();
        }
    }
}

fn write_until_closed(connection: &mut Connection, path: &Path, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(GROUP);
    let mut sync = Sync::Disk;
    while queue.blocking_recv_many(&mut jobs, GROUP) > 0 {
        let group: Vec<&Work> = jobs.iter().map(|job| &job.work).collect();
        let results = store_group(connection, path, &group, &mut sync);
        for (job, result) in jobs.drain(..).zip(results) {
            // Whoever stopped waiting does not want to know.
            let _ = job.answer.send(result);
        }
    }
}

/// What a commit waits for. Each is in the file before it is answered, and so outlives the process. Only one that binds
/// lango waits for the disk as well, and that brings everything before it there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    File,
    Disk,
}

impl Sync {
    fn needed_by(group: &[&Work]) -> Self {
        let binds = |work: &&Work| work.durability == Durability::Machine;
        if group.iter().any(binds) {
            Self::Disk
        } else {
            Self::File
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Self::File => "PRAGMA synchronous = NORMAL",
            Self::Disk => "PRAGMA synchronous = FULL",
        }
    }
}

/// Stores a group with one commit and gives the result of each job, in their order.
fn store_group(
    connection: &mut Connection,
    path: &Path,
    group: &[&Work],
    sync: &mut Sync,
) -> Vec<Result<(), StoreError>> {
    match try_group(connection, group, sync) {
        Ok(results) => results
            .into_iter()
            .map(|result| result.map_err(|failure| failure.about(path)))
            .collect(),
        Err(error) => {
            if !connection.is_autocommit() {
                // If this fails too, the next group's `BEGIN` does, and its `ROLLBACK` is the next try.
                let _ = execute(connection, "ROLLBACK");
            }
            group
                .iter()
                .map(|_| Err(sqlite_error(place_of(path), &error)))
                .collect()
        }
    }
}

fn try_group(
    connection: &mut Connection,
    group: &[&Work],
    sync: &mut Sync,
) -> rusqlite::Result<Vec<Result<(), Failure>>> {
    let needed = Sync::needed_by(group);
    if *sync != needed {
        execute(connection, needed.statement())?;
        *sync = needed;
    }
    execute(connection, "BEGIN IMMEDIATE")?;
    if let [work] = group {
        return alone(connection, work).map(|result| vec![result]);
    }
    let results = group
        .iter()
        .map(|work| beside_others(connection, work))
        .collect::<rusqlite::Result<_>>()?;
    execute(connection, "COMMIT")?;
    Ok(results)
}

/// Runs a job that has the transaction to itself.
fn alone(connection: &mut Connection, work: &Work) -> rusqlite::Result<Result<(), Failure>> {
    let result = (work.change)(connection);
    match result {
        Ok(()) => execute(connection, "COMMIT")?,
        Err(_) if connection.is_autocommit() => {}
        Err(_) => execute(connection, "ROLLBACK")?,
    }
    Ok(result)
}

/// Runs a job in a savepoint. The outer error is one that took the whole transaction with it.
fn beside_others(
    connection: &mut Connection,
    work: &Work,
) -> rusqlite::Result<Result<(), Failure>> {
    execute(connection, "SAVEPOINT job")?;
    let result = (work.change)(connection);
    match result {
        // SQLite rolls back everything by itself when it runs out of room or cannot read and write.
        Err(Failure::Sqlite(error)) if connection.is_autocommit() => return Err(error),
        Err(_) => execute(connection, "ROLLBACK TO job")?,
        Ok(()) => {}
    }
    execute(connection, "RELEASE job")?;
    Ok(result)
}

#[cfg(test)]
mod tests;
