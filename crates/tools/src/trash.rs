//! The trash: lango's private folder for deleted files, from which they can be restored.
//!
//! Each item is stored under a short id, next to a small JSON record that describes it. An item is moved in one step if
//! possible, and copied otherwise. Restoring is restricted like writing a file, and never overwrites anything.

mod copy;
mod error;
mod transfer;

use crate::Workspace;
use crate::file_error::FileError;
use crate::replace::{is_temporary, random_number, sync_folder, write_temporary};
use crate::requested_path::RequestedPath;
use crate::target_path::TargetPath;
use crate::tree::Contents;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, OpenOptions};
pub use error::TrashError;
use lango_core::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transfer::{Source, TransferError, transfer};

/// Characters of ids, without those that look alike.
const ID_ALPHABET: &[u8; 30] = b"23456789abcdefghjkmnpqrstvwxyz";

/// Length of ids. More than half a billion ids are possible, so two random ids rarely collide.
const ID_LENGTH: usize = 6;

/// Number of other random ids to try if an id is taken.
const MAX_RETRIES: usize = 8;

/// Maximum size of an item that has to be copied because it cannot be moved.
const MAX_COPIED_BYTES: u64 = 1 << 30;

/// The age at which an incomplete copy counts as left over from a crash.
const MAX_COPY_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The trash in a given folder, which is created when the first item is deleted.
#[derive(Debug, Clone)]
pub struct Trash {
    folder: PathBuf,
}

/// A deleted file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashItem {
    pub id: String,
    /// The original path, absolute and without links.
    pub path: PathBuf,
    /// Number of files, not counting folders.
    pub files: u64,
    /// Total size of the files.
    pub bytes: u64,
    pub deleted_at: Timestamp,
}

impl Trash {
    /// Uses this folder as the trash.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Lists the items, latest first. Skips items whose record cannot be read.
    pub fn list(&self) -> Result<Vec<TrashItem>, TrashError> {
        let Some(folder) = self.open_existing()? else {
            return Ok(Vec::new());
        };
        let mut items = Vec::new();
        for entry in folder.entries().map_err(|cause| self.failed(cause))? {
            let name = entry.map_err(|cause| self.failed(cause))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            items.extend(id.and_then(|id| read_record(&folder, id)));
        }
        items.sort_by(|a, b| (b.deleted_at, &b.id).cmp(&(a.deleted_at, &a.id)));
        Ok(items)
    }

    /// Moves an item back to its original path. Fails if the workspace's policy does not allow writing there.
    pub fn restore(&self, workspace: &Workspace, id: &str) -> Result<TrashItem, TrashError> {
        let unknown = || TrashError::NotFound { id: id.to_owned() };
        let folder = self.open_existing()?.ok_or_else(unknown)?;
        let item = read_record(&folder, id).ok_or_else(unknown)?;
        let target = self.restore_target(workspace, &item)?;
        let Some((parent, name)) = target.parent_and_name() else {
            return Err(TrashError::Occupied { path: item.path });
        };
        transfer(
            ((&folder, id.as_ref()), Source::Private),
            (parent.dir(), name),
            MAX_COPIED_BYTES,
        )
        .map_err(|error| self.explain(error, &item))?;
        folder
            .remove_file(record_name(id))
            .map_err(|cause| self.failed(cause))?;
        Ok(item)
    }

    /// Permanently deletes all items and returns how many there were. Also deletes incomplete copies that a crash left.
    pub fn empty(&self) -> Result<usize, TrashError> {
        let items = self.list()?;
        if let Some(folder) = self.open_existing()? {
            for item in &items {
                transfer::remove(&folder, item.id.as_ref())
                    .and_then(|()| transfer::remove(&folder, record_name(&item.id).as_ref()))
                    .map_err(|cause| self.failed(cause))?;
            }
            remove_abandoned(&folder, SystemTime::now()).map_err(|cause| self.failed(cause))?;
        }
        Ok(items.len())
    }

    /// Whether the item with this id is here, and came from this path.
    pub(crate) fn has(&self, id: &str, path: &Path) -> bool {
        let folder = self.open_existing().ok().flatten();
        let item = folder.and_then(|folder| read_record(&folder, id));
        item.is_some_and(|item| item.path == path)
    }

    /// Moves the file or folder at `target` to the trash. Calls `record` before it does; if that fails, nothing is
    /// moved.
    pub(crate) fn put<E: From<TrashError>>(
        &self,
        target: &TargetPath<'_>,
        contents: &Contents,
        record: impl FnOnce(&TrashItem) -> Result<(), E>,
    ) -> Result<TrashItem, E> {
        let path = target.path();
        let folder = self.open_or_create().map_err(|cause| self.failed(cause))?;
        let Some((parent, name)) = target.parent_and_name() else {
            let cause = io::ErrorKind::InvalidInput.into();
            return Err(self.failed(cause).into());
        };
        let item = self.reserve(&folder, path, contents)?;
        if let Err(error) = record(&item) {
            // That error is the one to report.
            let _ = folder.remove_file(record_name(&item.id));
            return Err(error);
        }
        let moved = transfer(
            ((parent.dir(), name), Source::Shared),
            (&folder, item.id.as_ref()),
            MAX_COPIED_BYTES,
        );
        match moved {
            Ok(()) => Ok(item),
            Err(error) => {
                if !matches!(error, TransferError::NotRemoved(_)) {
                    // The failure to move it is the one to report.
                    let _ = folder.remove_file(record_name(&item.id));
                }
                Err(self.explain(error, &item).into())
            }
        }
    }

    /// Stores a version of a file that is no longer at this path.
    pub(crate) fn put_version(
        &self,
        path: &Path,
        content: &[u8],
        mode: u32,
    ) -> Result<TrashItem, TrashError> {
        let folder = self.open_or_create().map_err(|cause| self.failed(cause))?;
        let contents = Contents::of_file(content.len() as u64);
        let item = self.reserve(&folder, path.to_owned(), &contents)?;
        let stored = write_temporary(&folder, content, Some(mode))
            .map_err(TransferError::from)
            .and_then(|(temporary, _)| {
                let from = ((&folder, temporary.as_ref()), Source::Private);
                transfer(from, (&folder, item.id.as_ref()), MAX_COPIED_BYTES)
            })
            .and_then(|()| Ok(sync_folder(&folder)?));
        match stored {
            Ok(()) => Ok(item),
            Err(error) => {
                // The failure to store it is the one to report.
                let _ = folder.remove_file(record_name(&item.id));
                Err(self.explain(error, &item))
            }
        }
    }

    /// Whether the trash itself is at or below `path`, which has no links.
    pub(crate) fn is_within(&self, path: &Path) -> bool {
        let folder = self.folder.canonicalize();
        folder.is_ok_and(|folder| folder.starts_with(path))
    }

    /// Resolves the original path of an item and creates its parents. Fails if the path now contains a link: there was
    /// none when the item was deleted, so the link leads to a different location.
    fn restore_target<'a>(
        &self,
        workspace: &'a Workspace,
        item: &TrashItem,
    ) -> Result<TargetPath<'a>, TrashError> {
        let refused = |error: FileError| TrashError::Refused {
            path: item.path.clone(),
            reason: error.to_string(),
        };
        let path = item.path.to_str().unwrap_or_default();
        let requested = RequestedPath::new(workspace.roots(), path).map_err(refused)?;
        let mut target = requested.entry().map_err(refused)?;
        if target.path() != item.path {
            return Err(TrashError::Refused {
                path: item.path.clone(),
                reason: "its path now contains a link; remove the link first".to_owned(),
            });
        }
        target.expect_changeable().map_err(refused)?;
        if target.kind().map_err(refused)?.is_some() {
            let path = item.path.clone();
            return Err(TrashError::Occupied { path });
        }
        target.create_parents().map_err(refused)?;
        Ok(target)
    }

    /// Picks a free id and writes the item's record under it.
    fn reserve(
        &self,
        folder: &Dir,
        path: PathBuf,
        contents: &Contents,
    ) -> Result<TrashItem, TrashError> {
        let mut item = TrashItem {
            id: String::new(),
            path,
            files: contents.files,
            bytes: contents.bytes,
            deleted_at: now(),
        };
        let options = OpenOptions::new().write(true).create_new(true).clone();
        let mut attempts = 0;
        let write = |item: &TrashItem| {
            // Fails for a path that is not UTF-8.
            let record = serde_json::to_vec(item)?;
            let mut file = folder.open_with(record_name(&item.id), &options)?;
            file.write_all(&record)?;
            file.sync_all()
        };
        loop {
            item.id = fresh_id();
            match write(&item) {
                Ok(()) => return Ok(item),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && attempts < MAX_RETRIES =>
                {
                    attempts += 1;
                }
                Err(cause) => return Err(self.failed(cause)),
            }
        }
    }

    fn open_existing(&self) -> Result<Option<Dir>, TrashError> {
        match Dir::open_ambient_dir(&self.folder, ambient_authority()) {
            Ok(folder) => Ok(Some(folder)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(self.failed(cause)),
        }
    }

    /// Creates the folder with access for its owner only: deleted files may have been private.
    fn open_or_create(&self) -> io::Result<Dir> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        std::fs::set_permissions(&self.folder, Permissions::from_mode(0o700))?;
        Dir::open_ambient_dir(&self.folder, ambient_authority())
    }

    fn failed(&self, cause: io::Error) -> TrashError {
        TrashError::Failed {
            folder: self.folder.clone(),
            cause,
        }
    }
}

/// Reads the record of an item; `None` if the id is invalid or the item itself is missing.
fn read_record(folder: &Dir, id: &str) -> Option<TrashItem> {
    let is_id = id.len() == ID_LENGTH && id.bytes().all(|byte| ID_ALPHABET.contains(&byte));
    if !is_id {
        return None;
    }
    folder.symlink_metadata(id).ok()?;
    let record = folder.read(record_name(id)).ok()?;
    let item: TrashItem = serde_json::from_slice(&record).ok()?;
    (item.id == id).then_some(item)
}

/// Removes the incomplete copies that a crash left, but not those that another process may be making now.
fn remove_abandoned(folder: &Dir, now: SystemTime) -> io::Result<()> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    for entry in folder.entries()? {
        let name = entry?.file_name();
        if !is_temporary(&name) {
            continue;
        }
        // The time of the last modification may be that of the original.
        let changed = match folder.symlink_metadata(&name) {
            Ok(metadata) => Duration::from_secs(metadata.ctime().unsigned_abs()),
            // It has its own name by now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if now.saturating_sub(changed) > MAX_COPY_TIME {
            transfer::remove(folder, &name)?;
        }
    }
    Ok(())
}

fn record_name(id: &str) -> String {
    format!("{id}.json")
}

fn fresh_id() -> String {
    let mut number = random_number();
    let mut letter = || {
        let at = (number % ID_ALPHABET.len() as u64) as usize;
        number /= ID_ALPHABET.len() as u64;
        char::from(ID_ALPHABET[at])
    };
    (0..ID_LENGTH).map(|_| letter()).collect()
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_millis() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_copy_is_removed_only_when_it_is_too_old_to_be_in_progress() {
        let path = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(path.path(), ambient_authority()).unwrap();
        let copy = ".0123456789abcdef.lango-new";
        folder.create_dir(copy).unwrap();
        folder.write(format!("{copy}/part"), "").unwrap();
        folder.write("other", "").unwrap();
        let now = SystemTime::now();
        remove_abandoned(&folder, now).unwrap();
        assert!(folder.exists(copy));
        remove_abandoned(&folder, now + MAX_COPY_TIME + Duration::from_secs(2)).unwrap();
        assert!(!folder.exists(copy) && folder.exists("other"));
    }
}
