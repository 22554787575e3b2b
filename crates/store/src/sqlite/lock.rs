//! Session locks for all processes of this machine: a turn locks a file next to the database, so only one turn at a time runs in a
//! session. The operating system unlocks the file when the process ends. So a crash leaves no lock behind, a slow or stopped
//! process does not lose its lock, and no fencing is needed.
//!
//! Each waiter locks its own ticket file, whose name starts with the time of its arrival: the earliest ticket that is still locked
//! is next. The tickets are in a folder that exists only while there are waiters, so one system call shows that there are none.
//!
//! After a turn the file stays open and unlocked for the next turn of its session, because creating and deleting files is slow.

use super::error::creation_error;
use crate::backend::text::hex;
use crate::queue::{QueueFront, Queues, busy};
use hashlink::LruCache;
use lango_core::{BoxFuture, BoxLease, BusyPolicy, SessionId, SessionLease, StoreError};
use rustix::process::{Resource, getrlimit};
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Interval at which a waiter checks whether it is next.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// Maximum number of attempts to create a file that other processes keep removing.
const TRIES: usize = 1_000;

/// Maximum number of unlocked files that stay open: the default of `server.maxRunningTasks`, or a quarter of the process's limit
/// of open files if that is less. The least recently used one is removed first.
const MAX_IDLE: usize = 1024;

/// The session locks of this process, and the files that stay open for later locks.
#[derive(Default)]
pub(super) struct SessionLocks {
    queues: Arc<Queues>,
    idle: Arc<IdleFiles>,
}

impl SessionLocks {
    /// Locks a session. `path` is the path of the database, or `None` if it is in memory and no other process can use it.
    pub(super) async fn lock(
        &self,
        path: Option<&Path>,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> Result<BoxLease, StoreError> {
        let place = self.queues.enter(session, busy_policy)?.front().await;
        let lock = match path {
            Some(path) => Some(lock_file(path, session, busy_policy, &self.idle).await?),
            None => None,
        };
        Ok(Box::new(FileLock {
            lock,
            idle: Arc::clone(&self.idle),
            _place: place,
        }))
    }
}

/// Open and unlocked files of sessions.
struct IdleFiles {
    files: Mutex<LruCache<PathBuf, Arc<File>>>,
    capacity: usize,
}

impl Default for IdleFiles {
    fn default() -> Self {
        let allowed = getrlimit(Resource::Nofile).current;
        let quarter = allowed.map_or(usize::MAX, |files| {
            usize::try_from(files / 4).unwrap_or(usize::MAX)
        });
        let capacity = MAX_IDLE.min(quarter);
        Self {
            files: Mutex::new(LruCache::new(capacity)),
            capacity,
        }
    }
}

impl IdleFiles {
    fn take(&self, path: &Path) -> Option<Arc<File>> {
        self.files().remove(path)
    }

    /// Unlocks a file but leaves it open.
    fn put(&self, locked: LockedFile) {
        let (path, file) = locked.unlock();
        let mut files = self.files();
        let oldest = if files.len() < self.capacity {
            None
        } else {
            files.remove_lru()
        };
        files.insert(path, file);
        drop(files);
        if let Some((path, file)) = oldest {
            remove_unlocked(path, file);
        }
    }

    fn files(&self) -> MutexGuard<'_, LruCache<PathBuf, Arc<File>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IdleFiles {
    fn drop(&mut self) {
        for (path, file) in self.files().drain() {
            remove_unlocked(path, file);
        }
    }
}

/// Removes a session's lock file, unless another process has locked it.
fn remove_unlocked(path: PathBuf, file: Arc<File>) {
    if let Ok(Attempt::Locked(locked)) = LockedFile::try_lock(path, file, FileKind::Lock) {
        drop(locked);
    }
}

async fn lock_file(
    path: &Path,
    session: &SessionId,
    busy_policy: BusyPolicy,
    idle: &IdleFiles,
) -> Result<LockedFile, StoreError> {
    let files = LockFiles::of(path, session);
    let failed = |error: io::Error| creation_error(path, &error);
    let mut ticket: Option<LockedFile> = None;
    let mut is_repeated = false;
    loop {
        let before = count_waiters(&files.queue, ticket.as_ref()).map_err(failed)?;
        if before == 0
            && let Some(lock) =
                LockedFile::take(files.lock.clone(), idle.take(&files.lock), FileKind::Lock)
                    .map_err(failed)?
        {
            return Ok(lock);
        }
        match busy_policy {
            // Another process may be removing the unlocked file right now.
            BusyPolicy::Refuse if before == 0 && !is_repeated => {
                is_repeated = true;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            BusyPolicy::Refuse => return Err(busy(session, None)),
            BusyPolicy::Wait { .. } if ticket.is_some() => tokio::time::sleep(CHECK_EVERY).await,
            BusyPolicy::Wait { max_waiters } if before >= max_waiters => {
                return Err(busy(session, Some(before)));
            }
            BusyPolicy::Wait { .. } => {
                ticket =
                    LockedFile::take(files.ticket(), None, FileKind::Ticket).map_err(failed)?;
            }
        }
    }
}

/// The prefix of the lock files of servers. Lock files of sessions never have it.
const SERVER: &str = "server-";

/// The lock of a server on a database. The operating system releases it when the process ends.
pub struct ServerLock(#[allow(dead_code, reason = "it is unlocked when it is dropped")] LockedFile);

/// Marks the database at `path` as used by a server, and removes lock files of killed processes.
pub(super) fn attach_server(path: &Path) -> Result<Option<ServerLock>, StoreError> {
    count(path, LockKind::Session)?;
    let name = format!("{SERVER}{}", std::process::id());
    let file = path.with_extension("locks").join(name);
    let locked = LockedFile::take(file, None, FileKind::Lock)
        .map_err(|error| creation_error(path, &error))?;
    Ok(locked.map(ServerLock))
}

/// The kind of thing that a lock file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockKind {
    /// A session that is locked or has waiters.
    Session,
    Server,
}

/// Counts the locked sessions or the servers of the database at `path`.
pub(super) fn count(path: &Path, kind: LockKind) -> Result<usize, StoreError> {
    let failed = |error: io::Error| creation_error(path, &error);
    let entries = match fs::read_dir(path.with_extension("locks")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed(error)),
    };
    let mut count = 0;
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let is_server = entry.file_name().to_string_lossy().starts_with(SERVER);
        if is_server != (kind == LockKind::Server) {
            continue;
        }
        let path = entry.path();
        let is_in_use = if path.is_dir() {
            count_waiters(&path, None).map(|waiters| waiters > 0)
        } else {
            is_locked(path, FileKind::Lock)
        };
        count += usize::from(is_in_use.map_err(failed)?);
    }
    Ok(count)
}

/// A session that this process has locked.
struct FileLock {
    lock: Option<LockedFile>,
    idle: Arc<IdleFiles>,
    // This is dropped after the file is unlocked, so that the next waiter of this process can lock it.
    _place: QueueFront,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            self.idle.put(lock);
        }
    }
}

impl SessionLease for FileLock {
    fn is_valid(&self) -> bool {
        true
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

struct LockFiles {
    lock: PathBuf,
    /// The folder with the tickets of waiters.
    queue: PathBuf,
}

impl LockFiles {
    fn of(database: &Path, session: &SessionId) -> Self {
        // The id of an imported session may contain characters that a file name cannot.
        let name = hex(&Sha256::digest(session.as_str())[..16]);
        let folder = database.with_extension("locks");
        Self {
            lock: folder.join(&name),
            queue: folder.join(name + "~"),
        }
    }

    /// Returns the path of the ticket of a waiter that arrives now.
    fn ticket(&self) -> PathBuf {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        self.queue.join(format!("{now:020}-{}", std::process::id()))
    }
}

/// Counts the waiters that arrived before the one with this ticket, or all waiters if it is `None`. Removes tickets of dead
/// processes.
fn count_waiters(queue: &Path, own: Option<&LockedFile>) -> io::Result<usize> {
    let entries = match fs::read_dir(queue) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut before = 0;
    for entry in entries {
        let path = entry?.path();
        if own.is_none_or(|own| path < own.path) && is_locked(path, FileKind::Ticket)? {
            before += 1;
        }
    }
    Ok(before)
}

/// Returns whether a process has locked this file. Removes the file if none has.
fn is_locked(path: PathBuf, kind: FileKind) -> io::Result<bool> {
    let file = match OpenOptions::new().write(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match LockedFile::try_lock(path, Arc::new(file), kind)? {
        Attempt::Locked(locked) => {
            drop(locked);
            Ok(false)
        }
        // If a file exists there now, another process has just created it.
        Attempt::Removed(path) => path.try_exists(),
        Attempt::Busy => Ok(true),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Lock,
    /// Removing the last ticket also removes the folder.
    Ticket,
}

/// A locked file, which is removed when this value is dropped.
struct LockedFile {
    /// Empty if the file is unlocked and must not be removed.
    path: PathBuf,
    file: Arc<File>,
    kind: FileKind,
}

/// The result of trying to lock an open file.
enum Attempt {
    Locked(LockedFile),
    /// Another process removed the file before it was locked. Contains the path.
    Removed(PathBuf),
    /// Another process has locked the file.
    Busy,
}

impl LockedFile {
    /// Locks the file at `path`. Uses `open` if it is still the file at that path; otherwise opens or creates the file. Returns
    /// `None` if another process has locked it.
    fn take(path: PathBuf, open: Option<Arc<File>>, kind: FileKind) -> io::Result<Option<Self>> {
        let (mut path, mut open) = (path, open);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        for _ in 0..TRIES {
            let file = match open
                .take()
                .map_or_else(|| options.open(&path).map(Arc::new), Ok)
            {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    create_parent(&path)?;
                    continue;
                }
                file => file?,
            };
            match Self::try_lock(path, file, kind)? {
                Attempt::Locked(locked) => return Ok(Some(locked)),
                Attempt::Removed(same) => path = same,
                Attempt::Busy => return Ok(None),
            }
        }
        let detail = format!("other processes keep removing `{}`", path.display());
        Err(io::Error::other(detail))
    }

    /// Locks an open file. Checks that it is still the file at `path`.
    fn try_lock(path: PathBuf, file: Arc<File>, kind: FileKind) -> io::Result<Attempt> {
        match file.try_lock() {
            Ok(()) if is_at(&file, &path) => Ok(Attempt::Locked(Self { path, file, kind })),
            Ok(()) => Ok(Attempt::Removed(path)),
            Err(TryLockError::WouldBlock) => Ok(Attempt::Busy),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Unlocks the file without removing it.
    fn unlock(mut self) -> (PathBuf, Arc<File>) {
        let _ = self.file.unlock();
        (std::mem::take(&mut self.path), Arc::clone(&self.file))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        // The file is removed while it is still locked, so that this never removes a file of another process.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
        if let (FileKind::Ticket, Some(folder)) = (self.kind, self.path.parent()) {
            // This fails if there are other waiters.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Returns whether the open file is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let is_same = fs::metadata(path).and_then(|other| {
        let own = file.metadata()?;
        Ok((other.dev(), other.ino()) == (own.dev(), own.ino()))
    });
    is_same.unwrap_or(false)
}

fn create_parent(path: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    let folder = folder.recursive(true).mode(0o700);
    path.parent().map_or(Ok(()), |path| folder.create(path))
}
