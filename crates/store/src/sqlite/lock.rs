//! One turn at a time in a session, over all processes of this machine: a turn locks a file beside the database. The system
//! unlocks it when the process ends, however it ends, so that a crash leaves no lock behind, and a process that is only
//! slow, or stopped, keeps it. So it cannot be lost, and needs no fence.
//!
//! A waiter has a file of its own, locked as well, whose name begins with the time of its arrival: the earliest that is still
//! locked is next. These are in a folder that exists while there are waiters, so that a free session is found with one look.

use super::failure::creation_error;
use crate::queue::{QueuePlace, Queues};
use lango_core::{BoxFuture, BoxLease, BusyPolicy, SessionId, SessionLease, StoreError};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Interval between two looks of a waiter.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often a file that others remove just then is created again.
const TRIES: usize = 1_000;

/// Locks a session of the database at `path`.
pub(super) async fn lock(
    path: &Path,
    queues: &Arc<Queues>,
    session: &SessionId,
    busy_policy: BusyPolicy,
) -> Result<BoxLease, StoreError> {
    let place = queues.join(session, busy_policy).await?;
    let files = LockFiles::of(path, session);
    let failed = |error: io::Error| creation_error(path, &error);
    let busy = |waiting| StoreError::Busy {
        id: session.clone(),
        waiting,
    };
    let mut ticket: Option<LockedFile> = None;
    loop {
        let before = waiting_in(&files.queue, ticket.as_ref()).map_err(failed)?;
        let lock = match before {
            0 => LockedFile::take(files.lock.clone(), Kind::Lock).map_err(failed)?,
            _ => None,
        };
        match (lock, busy_policy) {
            (Some(lock), _) => {
                return Ok(Box::new(FileLock {
                    _lock: Some(lock),
                    _place: place,
                }));
            }
            (None, BusyPolicy::Refuse) => return Err(busy(None)),
            (None, BusyPolicy::Wait { max_waiters: most })
                if ticket.is_none() && before >= most =>
            {
                return Err(busy(Some(before)));
            }
            (None, BusyPolicy::Wait { .. }) if ticket.is_none() => {
                ticket = LockedFile::take(files.ticket(), Kind::Ticket).map_err(failed)?;
            }
            (None, BusyPolicy::Wait { .. }) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// Locks a session that only this process can use.
pub(super) async fn lock_here(
    queues: &Arc<Queues>,
    session: &SessionId,
    busy_policy: BusyPolicy,
) -> Result<BoxLease, StoreError> {
    let place = queues.join(session, busy_policy).await?;
    Ok(Box::new(FileLock {
        _lock: None,
        _place: place,
    }))
}

/// Number of sessions of the database at `path` that are locked or waited for.
pub(super) fn count(path: &Path) -> Result<usize, StoreError> {
    let failed = |error: io::Error| creation_error(path, &error);
    let entries = match fs::read_dir(path.with_extension("locks")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed(error)),
    };
    let mut held = 0;
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let in_use = match path.is_dir() {
            true => waiting_in(&path, None).map(|waiting| waiting > 0),
            false => is_alive(path, Kind::Lock),
        };
        held += usize::from(in_use.map_err(failed)?);
    }
    Ok(held)
}

/// A session that this process has locked.
struct FileLock {
    // First the file, then the place: the next waiter of this process finds it free.
    _lock: Option<LockedFile>,
    _place: QueuePlace,
}

impl SessionLease for FileLock {
    fn is_valid(&self) -> bool {
        true
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// Where the files of a session are.
struct LockFiles {
    /// The file that the owner has locked.
    lock: PathBuf,
    /// The folder with the files of the waiters.
    queue: PathBuf,
}

impl LockFiles {
    fn of(database: &Path, session: &SessionId) -> Self {
        // A session that was imported can have any name, and a file cannot.
        let mut name = String::with_capacity(33);
        for byte in &Sha256::digest(session.as_str())[..16] {
            let _ = write!(name, "{byte:02x}");
        }
        let folder = database.with_extension("locks");
        let lock = folder.join(&name);
        name.push('~');
        Self {
            lock,
            queue: folder.join(name),
        }
    }

    /// A file for a waiter that arrives now.
    fn ticket(&self) -> PathBuf {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        self.queue.join(format!("{now:020}-{}", std::process::id()))
    }
}

/// Number of waiters in a queue that arrived before the one with this ticket; without one all did. Files of dead processes
/// are removed.
fn waiting_in(line: &Path, own: Option<&LockedFile>) -> io::Result<usize> {
    let entries = match fs::read_dir(line) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut before = 0;
    for entry in entries {
        let path = entry?.path();
        if own.is_none_or(|own| path < own.path) && is_alive(path, Kind::Ticket)? {
            before += 1;
        }
    }
    Ok(before)
}

/// Whether a process has locked this file; if none has, it is removed.
fn is_alive(path: PathBuf, kind: Kind) -> io::Result<bool> {
    let file = match OpenOptions::new().write(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {
            if is_at(&file, &path) {
                drop(LockedFile { path, file, kind });
                return Ok(false);
            }
            // It was removed before we locked it; one that exists now is another one's.
            path.try_exists()
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lock,
    /// The last one takes the folder with it.
    Ticket,
}

/// A file that exists, and is locked, as long as this lives.
struct LockedFile {
    path: PathBuf,
    file: File,
    kind: Kind,
}

impl LockedFile {
    /// Creates and locks it; none if another one has locked it.
    fn take(path: PathBuf, kind: Kind) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        for _ in 0..TRIES {
            let file = match options.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make_folder_of(&path)?;
                    continue;
                }
                file => file?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The owner before may have removed the file between our opening and our locking it.
            if is_at(&file, &path) {
                return Ok(Some(Self { path, file, kind }));
            }
        }
        let others = format!("`{}` is removed all the time", path.display());
        Err(io::Error::other(others))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // While it is still locked, so that no other one's file is removed.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
        if let (Kind::Ticket, Some(folder)) = (self.kind, self.path.parent()) {
            // One with other waiters stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Whether this is the file at the path.
fn is_at(file: &File, path: &Path) -> bool {
    let is_same = fs::metadata(path).and_then(|there| {
        let own = file.metadata()?;
        Ok((there.dev(), there.ino()) == (own.dev(), own.ino()))
    });
    is_same.unwrap_or(false)
}

fn make_folder_of(path: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    let folder = folder.recursive(true).mode(0o700);
    path.parent().map_or(Ok(()), |path| folder.create(path))
}
