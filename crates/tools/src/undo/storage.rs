//! The folder with the records of all turns: finds them, and deletes the oldest when they take too much space.

use super::original::MAX_FILE_BYTES;
use super::record::{RECORD_FILE, RecordLine, TurnLine, TurnRecord, timestamp};
use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
};
use lango_core::{SessionId, Timestamp, TurnId};
use rustix::fs::{Mode, OFlags, fsync, openat};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Number of locks. Calls of different turns rarely share one.
const LOCKS: usize = 32;

/// The limits of what is saved. A change beyond them is made, but cannot be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoLimits {
    /// Maximum size of a saved file. At most 4 MiB.
    pub file_bytes: u64,
    /// Maximum size of the saved files of a turn.
    pub turn_bytes: u64,
    /// Maximum number of changes of a turn that can be undone.
    pub turn_files: usize,
    /// Maximum size of everything; the oldest turns are dropped first.
    pub total_bytes: u64,
    /// Maximum number of turns.
    pub turns: usize,
    /// The time after which a turn is dropped.
    pub age: Duration,
}

impl Default for UndoLimits {
    fn default() -> Self {
        Self {
            file_bytes: MAX_FILE_BYTES,
            turn_bytes: 32 << 20,
            turn_files: 200,
            total_bytes: 256 << 20,
            turns: 500,
            age: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

/// Why the originals cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the originals of changed files cannot be used: {cause}")]
pub struct UndoError {
    #[from]
    cause: io::Error,
}

/// The originals of files that turns changed, in a private folder that is created when the first is saved. Clones share
/// their locks.
#[derive(Debug, Clone)]
pub struct UndoStore {
    folder: PathBuf,
    limits: UndoLimits,
    locks: Arc<[Mutex<()>; LOCKS]>,
    /// Bytes saved since the last look at the size of everything.
    unchecked_bytes: Arc<AtomicU64>,
}

impl UndoStore {
    /// Uses this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            limits: UndoLimits::default(),
            locks: Arc::new(std::array::from_fn(|_| Mutex::default())),
            unchecked_bytes: Arc::default(),
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(self, limits: UndoLimits) -> Self {
        Self { limits, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Lists the turns with recorded changes, the most recently changed first. Skips records that cannot be read.
    pub fn turns(&self) -> Result<Vec<TurnRecord>, UndoError> {
        let Some(folder) = self.open_existing()? else {
            return Ok(Vec::new());
        };
        let mut records = Vec::new();
        for entry in entries(&folder)? {
            let session = folder.open_dir_nofollow(&entry.session)?;
            let dir = session.open_dir_nofollow(&entry.turn)?;
            records.extend(TurnRecord::read(dir)?);
        }
        records.sort_by(|a, b| (b.updated(), b.turn()).cmp(&(a.updated(), a.turn())));
        Ok(records)
    }

    /// Returns the record of a turn, if it changed files.
    pub fn turn(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<Option<TurnRecord>, UndoError> {
        let Some(folder) = self.open_existing()? else {
            return Ok(None);
        };
        let dir = folder.open_dir_nofollow(folder_name(session.as_str()));
        let dir = dir.and_then(|dir| dir.open_dir_nofollow(folder_name(turn.as_str())));
        let record = match dir {
            Ok(dir) => TurnRecord::read(dir)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(record.filter(|record| record.session() == session && record.turn() == turn))
    }

    /// Deletes everything that was saved for a session.
    pub fn forget_session(&self, session: &SessionId) -> Result<(), UndoError> {
        let Some(folder) = self.open_existing()? else {
            return Ok(());
        };
        Ok(found(folder.remove_dir_all(folder_name(session.as_str())))?)
    }

    /// Marks a turn as undone, and deletes the originals of the files that were restored: all but those numbered in
    /// `kept`.
    pub(super) fn finish(
        record: &TurnRecord,
        kept: &[u32],
        now: Timestamp,
    ) -> Result<(), UndoError> {
        append_line(record.dir(), &RecordLine::Undone { time: now })?;
        for number in (1..=record.counts().1).filter(|number| !kept.contains(number)) {
            found(record.dir().remove_file(number.to_string()))?;
        }
        Ok(())
    }

    pub(super) fn limits(&self) -> &UndoLimits {
        &self.limits
    }

    /// Locks a turn, so that its calls record and make their changes one after the other.
    pub(super) fn lock(&self, turn: &TurnId) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        turn.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        // The lock protects no data.
        self.locks[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the record of a turn; creates it if the turn has none.
    pub(super) fn open_or_create(&self, turn: &TurnLine) -> Result<TurnRecord, UndoError> {
        if let Some(record) = self.turn(&turn.session, &turn.turn)? {
            return Ok(record);
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode_owner_only()
            .create(&self.folder)?;
        let folder = Dir::open_ambient_dir(&self.folder, ambient_authority())?;
        folder.set_permissions(".", Permissions::from_mode(0o700))?;
        self.drop_oldest(&folder, None)?;
        let session = create_folder(&folder, &folder_name(turn.session.as_str()))?;
        let dir = create_folder(&session, &folder_name(turn.turn.as_str()))?;
        append_line(&dir, &RecordLine::Turn(turn.clone()))?;
        for dir in [&dir, &session, &folder] {
            sync_folder(dir)?;
        }
        let record = TurnRecord::read(dir)?;
        Ok(record.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?)
    }

    /// Returns the size of the originals of a turn.
    pub(super) fn size_of(record: &TurnRecord) -> Result<u64, UndoError> {
        Ok(folder_size(record.dir())?)
    }

    /// Notes that so many bytes were saved for a turn. If that is much, drops the oldest other turns.
    pub(super) fn note_saved(&self, turn: &TurnLine, bytes: u64) -> Result<(), UndoError> {
        let saved = self.unchecked_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if saved > self.limits.turn_bytes
            && let Some(folder) = self.open_existing()?
        {
            let names = [turn.session.as_str(), turn.turn.as_str()].map(folder_name);
            self.drop_oldest(&folder, Some(&names))?;
        }
        Ok(())
    }

    /// Drops turns that are too old, and the oldest ones until a whole turn fits in the limit. Never drops `current`.
    fn drop_oldest(&self, folder: &Dir, current: Option<&[String; 2]>) -> io::Result<()> {
        self.unchecked_bytes.store(0, Ordering::Relaxed);
        let mut entries = entries(folder)?;
        entries.sort_by_key(|entry| entry.updated);
        let mut count = entries.len();
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let most = self
            .limits
            .total_bytes
            .saturating_sub(self.limits.turn_bytes);
        let oldest = SystemTime::now().checked_sub(self.limits.age);
        let oldest = oldest.map_or(Timestamp(0), timestamp);
        for entry in entries {
            let is_current = current.is_some_and(|[session, turn]| {
                entry.session == session.as_str() && entry.turn == turn.as_str()
            });
            let fits = bytes <= most && count < self.limits.turns && entry.updated >= oldest;
            if fits || is_current {
                continue;
            }
            found(folder.remove_dir_all(Path::new(&entry.session).join(&entry.turn)))?;
            // Fails if the session has other turns.
            let _ = folder.remove_dir(&entry.session);
            bytes -= entry.bytes;
            count -= 1;
        }
        Ok(())
    }

    fn open_existing(&self) -> io::Result<Option<Dir>> {
        match Dir::open_ambient_dir(&self.folder, ambient_authority()) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

trait OwnerOnly {
    fn mode_owner_only(&mut self) -> &mut Self;
}

impl OwnerOnly for std::fs::DirBuilder {
    fn mode_owner_only(&mut self) -> &mut Self {
        std::os::unix::fs::DirBuilderExt::mode(self, 0o700)
    }
}

/// The folder of a turn.
struct Entry {
    session: OsString,
    turn: OsString,
    updated: Timestamp,
    bytes: u64,
}

/// Lists the folders of all turns. Another process may remove some of them meanwhile.
fn entries(folder: &Dir) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for session in folder.entries()? {
        let session = session?.file_name();
        let Ok(dir) = folder.open_dir_nofollow(&session) else {
            continue;
        };
        for turn in dir.entries()? {
            let turn = turn?.file_name();
            let Ok(dir) = dir.open_dir_nofollow(&turn) else {
                continue;
            };
            let modified = dir
                .metadata(RECORD_FILE)
                .and_then(|record| record.modified());
            let session = session.clone();
            entries.push(Entry {
                session,
                turn,
                updated: modified.map_or(Timestamp(0), |time| timestamp(time.into_std())),
                bytes: folder_size(&dir).unwrap_or_default(),
            });
        }
    }
    Ok(entries)
}

fn folder_size(dir: &Dir) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in dir.entries()? {
        bytes += entry?.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}

/// Returns the name of the folder for an id. Ids may come from clients, so they are not used as names.
fn folder_name(id: &str) -> String {
    base16ct::lower::encode_string(&Sha256::digest(id)[..16])
}

fn create_folder(parent: &Dir, name: &str) -> io::Result<Dir> {
    match parent.create_dir_with(name, DirBuilder::new().mode(0o700)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    parent.open_dir_nofollow(name)
}

/// Writes a private file and waits until it is on the disk.
pub(super) fn save(dir: &Dir, name: &str, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = dir.open_with(name, &options)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Appends a line to the record in a folder and waits until it is on the disk. A line that was cut off is ended first.
pub(super) fn append_line(dir: &Dir, line: &RecordLine) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let mut file = dir.open_with(RECORD_FILE, &options)?;
    let mut text = Vec::new();
    if file.seek(SeekFrom::End(-1)).is_ok() {
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != [b'\n'] {
            text.push(b'\n');
        }
    }
    serde_json::to_writer(&mut text, line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()
}

/// Waits until the names in a folder are on the disk.
pub(super) fn sync_folder(dir: &Dir) -> io::Result<()> {
    // The handle itself is only a reference to the folder.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(dir, ".", flags, Mode::empty())?;
    Ok(fsync(opened)?)
}

/// Ignores that something does not exist.
fn found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
