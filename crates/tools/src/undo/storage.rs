//! The folder with the records of all turns: finds them, and deletes the oldest when they take too much space.

use super::files::{TurnFolder, append_line, create_folder, folder_name, folder_size, found};
use super::original::MAX_FILE_BYTES;
use super::record::{RECORD_FILE, RecordLine, RecordedTurn, TurnLine, TurnRecord, timestamp};
use crate::replace::sync_folder;
use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Permissions, PermissionsExt};
use lango_core::{SessionId, Timestamp, TurnId};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
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
    pub fn turns(&self) -> Result<Vec<RecordedTurn>, UndoError> {
        let folders = self.folders()?.into_iter();
        let mut turns: Vec<RecordedTurn> = folders
            .filter_map(|folder| RecordedTurn::read(&folder.open().ok()?).ok().flatten())
            .collect();
        turns.sort_by(|a, b| (b.updated(), b.turn()).cmp(&(a.updated(), a.turn())));
        Ok(turns)
    }

    /// Returns the record of a turn, if it changed files.
    pub fn turn(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<Option<TurnRecord>, UndoError> {
        let record = TurnRecord::read(TurnFolder::of(&self.folder, session, turn))?;
        Ok(record.filter(|record| record.session() == session && record.turn() == turn))
    }

    /// Deletes everything that was saved for a session.
    pub fn forget_session(&self, session: &SessionId) -> Result<(), UndoError> {
        let Some(folder) = self.open_existing()? else {
            return Ok(());
        };
        Ok(found(folder.remove_dir_all(folder_name(session.as_str())))?)
    }

    pub(super) fn limits(&self) -> &UndoLimits {
        &self.limits
    }

    /// Locks a turn, so that its calls record and make their changes one after the other.
    pub(crate) fn lock(&self, turn: &TurnId) -> MutexGuard<'_, ()> {
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
        self.drop_oldest(None)?;
        let session = create_folder(&folder, &folder_name(turn.session.as_str()))?;
        let dir = create_folder(&session, &folder_name(turn.turn.as_str()))?;
        append_line(&dir, &RecordLine::Turn(turn.clone()))?;
        for dir in [&dir, &session, &folder] {
            sync_folder(dir)?;
        }
        let record = self.turn(&turn.session, &turn.turn)?;
        Ok(record.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?)
    }

    /// Returns the size of the originals of a turn.
    pub(super) fn size_of(record: &TurnRecord) -> Result<u64, UndoError> {
        Ok(folder_size(&record.open()?)?)
    }

    /// Notes that so many bytes were saved for a turn. If that is much, drops the oldest other turns.
    pub(super) fn note_saved(&self, turn: &TurnLine, bytes: u64) -> Result<(), UndoError> {
        let saved = self.unchecked_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if saved > self.limits.turn_bytes {
            let current = TurnFolder::of(&self.folder, &turn.session, &turn.turn);
            self.drop_oldest(Some(&current))?;
        }
        Ok(())
    }

    /// Drops turns that are too old, and the oldest ones until a whole turn fits in the limit. Never drops `current`.
    fn drop_oldest(&self, current: Option<&TurnFolder>) -> io::Result<()> {
        self.unchecked_bytes.store(0, Ordering::Relaxed);
        let Some(folder) = self.open_existing()? else {
            return Ok(());
        };
        let mut entries: Vec<Entry> = self.folders()?.into_iter().filter_map(Entry::of).collect();
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
            let fits = bytes <= most && count < self.limits.turns && entry.updated >= oldest;
            if fits || current == Some(&entry.folder) {
                continue;
            }
            let TurnFolder { session, turn, .. } = &entry.folder;
            found(folder.remove_dir_all(Path::new(session).join(turn)))?;
            // Fails if the session has other turns.
            let _ = folder.remove_dir(session);
            bytes -= entry.bytes;
            count -= 1;
        }
        Ok(())
    }

    /// Lists the folders of all turns. Another process may remove some of them meanwhile.
    fn folders(&self) -> io::Result<Vec<TurnFolder>> {
        let Some(folder) = self.open_existing()? else {
            return Ok(Vec::new());
        };
        let mut folders = Vec::new();
        for session in folder.entries()? {
            let session = session?.file_name();
            let Ok(turns) = folder
                .open_dir_nofollow(&session)
                .and_then(|dir| dir.entries())
            else {
                continue;
            };
            for turn in turns.flatten() {
                let names = (session.clone(), turn.file_name());
                folders.push(TurnFolder::named(&self.folder, names.0, names.1));
            }
        }
        Ok(folders)
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

/// The folder of a turn, with what decides whether it is dropped.
struct Entry {
    folder: TurnFolder,
    updated: Timestamp,
    bytes: u64,
}

impl Entry {
    /// Reads the entry; `None` if another process has removed it. A folder without a record was just created, unless it
    /// is old.
    fn of(folder: TurnFolder) -> Option<Self> {
        let dir = folder.open().ok()?;
        let record = dir.metadata(RECORD_FILE);
        let metadata = record.or_else(|_| dir.dir_metadata());
        let modified = metadata.and_then(|metadata| metadata.modified()).ok()?;
        Some(Self {
            folder,
            updated: timestamp(modified.into_std()),
            bytes: folder_size(&dir).unwrap_or_default(),
        })
    }
}
