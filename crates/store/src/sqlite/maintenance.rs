//! Maintenance of the file: compaction, checkpoints of the write-ahead log, backups, and checks for servers and locks.

use super::SqliteBackend;
use super::connection::{open_complete, open_reader};
use super::error::{BackendError, creation_error, place_of};
use super::file::{create_file, with_suffix};
use super::lock::{self, LockKind, ServerLock};
use super::migrations::refuse_newer;
use crate::archive::WipeOutcome;
use crate::backend::{Result, Tx};
use crate::decode::failed;
use crate::tables::checkpoint;
use futures_util::FutureExt as _;
use lango_core::StoreError;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

/// Number of pages that a backup copies in one step.
const PAGES: i32 = 2000;
/// Maximum number of retries of a backup while another process has locked the database.
const TRIES: usize = 500;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

impl SqliteBackend {
    /// Rewrites the file, so that no deleted data is left in it. The duration grows with the file's size, and all writers wait.
    pub(crate) async fn compact(&self) -> Result<WipeOutcome, StoreError> {
        self.on_file(Ok(WipeOutcome::Clean), compact).await
    }

    /// Checkpoints and truncates the write-ahead log. Returns false if another connection prevented it.
    pub(crate) async fn checkpoint_log(&self) -> Result<bool, StoreError> {
        self.on_file(Ok(true), |path| {
            let connection = open_complete(path)?;
            checkpoint_log(&connection).map_err(|failure| failure.about(path))
        })
        .await
    }

    /// Counts the sessions that this or another process has locked.
    pub(crate) async fn count_locks(&self) -> Result<usize, StoreError> {
        self.on_file(Ok(0), |path| lock::count(path, LockKind::Session))
            .await
    }

    pub(crate) async fn count_servers(&self) -> Result<usize, StoreError> {
        self.on_file(Ok(0), |path| lock::count(path, LockKind::Server))
            .await
    }

    /// Marks the file as used by a server.
    pub(crate) fn attach_server(&self) -> Result<Option<ServerLock>, StoreError> {
        self.path().map_or(Ok(None), lock::attach_server)
    }

    /// Fails with [`StoreError::TooNew`] if a newer version of lango has migrated the file since it was opened.
    pub(crate) async fn check_schema(&self) -> Result<(), StoreError> {
        let check = |path: &Path| {
            let connection = open_reader(path).map_err(BackendError::from);
            let checked = connection.and_then(|connection| refuse_newer(&connection, path));
            checked.map_err(|failure| failure.about(path))
        };
        self.on_file(Ok(()), check).await
    }

    /// Returns the address of the database to show to users.
    pub(crate) fn shown_place(&self) -> String {
        self.path()
            .map_or_else(|| "sqlite::memory:".to_owned(), shown_place)
    }

    /// Copies a snapshot of the database to a new file. Calls `on_progress` with the number of pages left and the total number of
    /// pages.
    pub(crate) async fn back_up(
        &self,
        to: PathBuf,
        on_progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<(), StoreError> {
        let in_memory = Err(failed("an in-memory database cannot be backed up"));
        self.on_file(in_memory, move |path| back_up(path, &to, &on_progress))
            .await
    }

    /// Runs blocking work on the file. Returns `in_memory` if the database is in memory.
    async fn on_file<T: Send + 'static>(
        &self,
        in_memory: Result<T, StoreError>,
        work: impl FnOnce(&Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(path) = self.path().map(Path::to_owned) else {
            return in_memory;
        };
        let done = tokio::task::spawn_blocking(move || work(&path)).await;
        done.map_err(|error| {
            failed(format!(
                "work on the database file was interrupted: {error}"
            ))
        })?
    }
}

/// Fails if the database is the target of an unfinished transfer.
pub(super) fn refuse_unfinished(connection: &mut Connection, path: &Path) -> Result<()> {
    let found = checkpoint(&mut Tx::sqlite(connection)).now_or_never();
    match found.transpose()?.flatten() {
        Some(found) => Err(found.refusal(place_of(path), &shown_place(path)).into()),
        None => Ok(()),
    }
}

fn shown_place(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn checkpoint_log(connection: &Connection) -> Result<bool> {
    // The first column is 1 if another connection blocked the checkpoint.
    let is_busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(!is_busy)
}

fn compact(path: &Path) -> Result<WipeOutcome, StoreError> {
    let connection = open_complete(path)?;
    let rewrite = || -> Result<bool> {
        connection.execute_batch("VACUUM")?;
        checkpoint_log(&connection)
    };
    match rewrite() {
        Ok(true) => Ok(WipeOutcome::Clean),
        Ok(false) => Ok(WipeOutcome::InUse),
        Err(failure) if failure.is_busy() => Ok(WipeOutcome::InUse),
        Err(failure) => Err(failure.about(path)),
    }
}

fn back_up(path: &Path, to: &Path, on_progress: &dyn Fn(u64, u64)) -> Result<(), StoreError> {
    // This connection migrates an older schema. It is closed last, because unlike the reader it can remove the write-ahead log.
    let _writer = open_complete(path)?;
    let not_created = |error| creation_error(to, &error);
    if to.try_exists().map_err(not_created)? {
        return Err(failed(format!("`{}` already exists", to.display())));
    }
    // The copy has a temporary name until it is complete.
    let part = with_suffix(to, &format!(".{}.part", std::process::id()));
    let remove = || {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(with_suffix(&part, suffix));
        }
    };
    // An earlier process with the same id may have left one.
    remove();
    let copied =
        copy(path, &part, on_progress).and_then(|()| rename(&part, to).map_err(not_created));
    if copied.is_err() {
        remove();
    }
    copied
}

fn copy(path: &Path, part: &Path, on_progress: &dyn Fn(u64, u64)) -> Result<(), StoreError> {
    create_file(part).map_err(|error| creation_error(part, &error))?;
    let source = open_reader(path).map_err(|error| BackendError::from(error).about(path))?;
    let copied = || -> Result<()> {
        // The transaction keeps one snapshot while other connections write.
        source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        let mut target = Connection::open(part)?;
        copy_pages(&source, &mut target, on_progress)?;
        let check = "PRAGMA quick_check(1)";
        let problem: String = target.query_row(check, [], |row| row.get(0))?;
        match problem.as_str() {
            "ok" => Ok(()),
            problem => Err(BackendError::other(format!(
                "the copy is damaged: {problem}"
            ))),
        }
    };
    copied().map_err(|failure| failure.about(part))
}

fn copy_pages(
    source: &Connection,
    target: &mut Connection,
    on_progress: &dyn Fn(u64, u64),
) -> Result<()> {
    let backup = Backup::new(source, target)?;
    let mut tries = 0;
    loop {
        let step = backup.step(PAGES)?;
        let progress = backup.progress();
        let number = |pages| u64::try_from(pages).unwrap_or_default();
        on_progress(number(progress.remaining), number(progress.pagecount));
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => tries = 0,
            _ if tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            _ => return Err(BackendError::other("the database is busy; try again")),
        }
    }
}

/// Renames the finished copy and syncs the folder. Fails if a file with that name exists by now.
fn rename(part: &Path, to: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    if to.try_exists()? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(part, to)?;
    let folder = to.parent().filter(|folder| *folder != "");
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
