//! Care for the file as a whole: leaving nothing of what was deleted in it, and a copy of it while it is in use.

use super::SqliteEngine;
use super::connection::open_reader;
use super::failure::{Failure, creation_error, place_of};
use super::lock;
use super::writer::open_whole;
use crate::archive::WipeOutcome;
use crate::engine::Tx;
use crate::tables::checkpoint;
use futures_util::FutureExt as _;
use lango_core::StoreError;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// What is rewritten so that pages hold nothing but what they should.
const REWRITE: &str = "VACUUM";

/// The write-ahead log is written to the file and emptied; tells first whether somebody was in the way.
const EMPTY_LOG: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// A copy that is not well says so here.
const CHECK: &str = "PRAGMA quick_check(1)";

/// How many pages of a copy are made at once, and how long it waits for somebody who is in the way.
const PAGES: i32 = 2000;
const PAUSE: Duration = Duration::from_millis(20);
const TRIES: usize = 500;

impl SqliteEngine {
    /// Writes the file anew, so that nothing of what was deleted is left in any part of it. It takes as long as the file is
    /// large, and nobody writes meanwhile.
    pub async fn compact(&self) -> Result<WipeOutcome, StoreError> {
        if self.writer.is_in_memory() {
            return Ok(WipeOutcome::Clean);
        }
        let path = self.writer.path().to_owned();
        blocking(move || compact(&path)).await
    }

    /// Counts the sessions that a process, this one or another, has locked.
    pub(crate) async fn count_locks(&self) -> Result<usize, StoreError> {
        let path = self.writer.path().to_owned();
        blocking(move || lock::count(&path)).await
    }

    /// Returns the address of the file for users.
    pub(crate) fn shown_place(&self) -> String {
        shown_place(self.writer.path())
    }

    /// Copies the database, as it is at this moment, to a file that is not there yet. `seen` hears how many pages are left
    /// and how many there are.
    pub async fn back_up(
        &self,
        to: PathBuf,
        seen: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<(), StoreError> {
        if self.writer.is_in_memory() {
            return Err(StoreError::Failed {
                detail: "a database in memory cannot be copied".to_owned(),
            });
        }
        let path = self.writer.path().to_owned();
        blocking(move || back_up(&path, &to, &seen)).await
    }
}

/// Refuses the target of an unfinished transfer.
pub(super) fn refuse_unfinished(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    match checkpoint(&mut Tx::sqlite(connection)).now_or_never() {
        Some(Ok(None)) | None => Ok(()),
        Some(Ok(Some(found))) => Err(found.refusal(place_of(path), &shown_place(path)).into()),
        Some(Err(failure)) => Err(failure),
    }
}

fn shown_place(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Failed {
        detail: format!("it was cut off: {error}"),
    })?
}

fn compact(path: &Path) -> Result<WipeOutcome, StoreError> {
    let connection = open_whole(path)?;
    let rewrite = || -> Result<bool, Failure> {
        connection.execute_batch(REWRITE)?;
        Ok(connection.query_row(EMPTY_LOG, [], |row| row.get(0))?)
    };
    match rewrite() {
        Ok(false) => Ok(WipeOutcome::Clean),
        Ok(true) => Ok(WipeOutcome::InUse),
        Err(failure) if failure.is_busy() => Ok(WipeOutcome::InUse),
        Err(failure) => Err(failure.about(path)),
    }
}

fn back_up(path: &Path, to: &Path, seen: &dyn Fn(u64, u64)) -> Result<(), StoreError> {
    // An older schema is brought up to date first.
    drop(open_whole(path)?);
    if to
        .try_exists()
        .map_err(|error| creation_error(to, &error))?
    {
        return Err(StoreError::Failed {
            detail: format!("`{}` is there already", to.display()),
        });
    }
    let part = part_of(to);
    let copied = copy(path, &part, seen)
        .and_then(|()| place(&part, to).map_err(|error| creation_error(to, &error)));
    if copied.is_err() {
        // Whatever is there of it is of no use.
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut name = part.as_os_str().to_owned();
            name.push(suffix);
            let _ = fs::remove_file(PathBuf::from(name));
        }
    }
    copied
}

/// The name under which a file is written until it is whole.
fn part_of(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    name.into()
}

fn copy(path: &Path, part: &Path, seen: &dyn Fn(u64, u64)) -> Result<(), StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(part)
        .map_err(|error| creation_error(part, &error))?;
    let source = open_reader(path).map_err(|error| Failure::from(error).about(path))?;
    let copied = || -> Result<(), Failure> {
        // One moment for all of it, however much is written meanwhile.
        source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        let mut target = Connection::open(part)?;
        copy_pages(&source, &mut target, seen)?;
        let said: String = target.query_row(CHECK, [], |row| row.get(0))?;
        match said.as_str() {
            "ok" => Ok(()),
            other => Err(Failure::other(format!("the copy is not well: {other}"))),
        }
    };
    copied().map_err(|failure| failure.about(part))
}

fn copy_pages(
    source: &Connection,
    target: &mut Connection,
    seen: &dyn Fn(u64, u64),
) -> Result<(), Failure> {
    let backup = Backup::new(source, target)?;
    let mut tries = 0;
    loop {
        let step = backup.step(PAGES)?;
        let progress = backup.progress();
        let number = |pages| u64::try_from(pages).unwrap_or_default();
        seen(number(progress.remaining), number(progress.pagecount));
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => tries = 0,
            _ if tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            _ => return Err(Failure::other("the database is busy; try again")),
        }
    }
}

/// Gives the finished file its name, on the disk as well. A name that was taken meanwhile is left alone.
fn place(part: &Path, to: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    if to.try_exists()? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(part, to)?;
    match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}
