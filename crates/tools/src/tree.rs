//! Counts everything below a folder, checks that all of it may be deleted, and notices whether it changes.

use crate::change::{is_executable, is_executed};
use crate::entry_kind::EntryKind;
use crate::folder::Folder;
use crate::guard::is_git_directory;
use crate::show;
use cap_std::fs::{Metadata, MetadataExt};
use lango_sandbox::Access;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of entries in a folder tree.
pub(crate) const MAX_ENTRIES: u64 = 100_000;

/// Maximum nesting depth of folders. Every level keeps a handle open.
pub(crate) const MAX_DEPTH: usize = 128;

/// Number of entries that a short preview lists by name.
pub(crate) const PREVIEW_NAMES: usize = 10;

/// Counts of a file or a folder tree.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Number of files, links and other entries that are not folders.
    pub(crate) files: u64,
    pub(crate) folders: u64,
    pub(crate) bytes: u64,
    /// The first entries; folders end with a slash.
    pub(crate) first_names: Vec<String>,
    /// The first entry that other programs act on, relative to the folder.
    pub(crate) guarded: Option<PathBuf>,
    /// The first entry that other programs execute, relative to the folder.
    pub(crate) executed: Option<PathBuf>,
    /// Maximum length of `first_names`.
    max_names: usize,
    /// The hash of the path, kind, size and times of each entry.
    state: Sha256,
}

/// Why a folder cannot be deleted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("it contains `{path}`, which is protected; delete the other entries one by one")]
    Protected { path: String },
    #[error("it contains an entry that you have no access to; delete the other entries one by one")]
    Hidden,
    #[error("it contains more than {MAX_ENTRIES} entries; delete the folders in it one by one")]
    TooMany,
    #[error("its folders are nested more than {MAX_DEPTH} levels deep; delete the innermost first")]
    TooDeep,
    #[error("its contents cannot be read: {0}")]
    Failed(#[from] io::Error),
}

impl Contents {
    pub(crate) fn of_file(bytes: u64) -> Self {
        Self {
            files: 1,
            bytes,
            ..Self::default()
        }
    }

    /// Counts a folder tree and collects the names of the first entries. Fails at the first entry that may not be
    /// changed.
    pub(crate) fn of_folder(folder: &Folder<'_>, max_names: usize) -> Result<Self, Obstacle> {
        let mut contents = Self {
            max_names,
            ..Self::default()
        };
        contents.add(folder, Path::new(""), 1)?;
        Ok(contents)
    }

    /// Returns a hash that differs if an entry was added, removed or changed. It is always the same for a single file.
    pub(crate) fn state(&self) -> Vec<u8> {
        self.state.clone().finalize().to_vec()
    }

    /// Formats the counts: `3 files, 1 folder, 4.2 KB`.
    pub(crate) fn summary(&self) -> String {
        let mut parts = vec![show::count(self.files, "file")];
        if self.folders > 0 {
            parts.push(show::count(self.folders, "folder"));
        }
        parts.push(show::size(self.bytes));
        parts.join(", ")
    }

    /// Returns the number of entries that are not in `first_names`.
    pub(crate) fn unnamed(&self) -> u64 {
        (self.files + self.folders).saturating_sub(self.first_names.len() as u64)
    }

    fn add(&mut self, folder: &Folder<'_>, below: &Path, depth: usize) -> Result<(), Obstacle> {
        if depth > MAX_DEPTH {
            return Err(Obstacle::TooDeep);
        }
        let names = self.names(folder)?;
        if is_git_directory(names.iter().map(OsString::as_os_str)) {
            self.note_guarded(&below.join("HEAD"));
        }
        for name in names {
            let path = below.join(&name);
            match folder.access(&name) {
                Access::Write => {}
                Access::Guarded => self.note_guarded(&path),
                Access::Read => {
                    let path = show::name(path.as_os_str());
                    return Err(Obstacle::Protected { path });
                }
                Access::None => return Err(Obstacle::Hidden),
            }
            let metadata = folder.dir().symlink_metadata(&name)?;
            let kind = EntryKind::from(metadata.file_type());
            let is_executed = kind != EntryKind::Folder
                && is_executed(folder.roots(), &folder.path().join(&name));
            if is_executed || (kind == EntryKind::File && is_executable(&metadata)) {
                self.executed.get_or_insert_with(|| path.clone());
            }
            self.add_state(&path, kind, &metadata);
            if kind == EntryKind::Folder {
                self.folders += 1;
                self.add_name(&path, "/");
                self.add(&folder.child(&name)?, &path, depth + 1)?;
            } else {
                self.files += 1;
                self.bytes += metadata.len();
                self.add_name(&path, "");
            }
        }
        Ok(())
    }

    /// Hashes an entry. The times of a folder change with its entries, which are hashed themselves.
    fn add_state(&mut self, path: &Path, kind: EntryKind, metadata: &Metadata) {
        let path = path.as_os_str().as_encoded_bytes();
        self.state.update(path.len().to_le_bytes());
        self.state.update(path);
        match kind {
            EntryKind::Folder => self.state.update([0]),
            _ => self.state.update(file_state(kind, metadata)),
        }
    }

    fn note_guarded(&mut self, path: &Path) {
        self.guarded.get_or_insert_with(|| path.to_owned());
    }

    /// Returns the sorted names in a folder, including those that the policy hides.
    fn names(&self, folder: &Folder<'_>) -> Result<Vec<OsString>, Obstacle> {
        let mut names = Vec::new();
        for entry in folder.dir().entries()? {
            names.push(entry?.file_name());
            if self.files + self.folders + names.len() as u64 > MAX_ENTRIES {
                return Err(Obstacle::TooMany);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn add_name(&mut self, path: &Path, end: &str) {
        if self.first_names.len() < self.max_names {
            self.first_names
                .push(format!("{}{end}", show::name(path.as_os_str())));
        }
    }
}

/// Returns the kind, size and times of an entry that is not a folder. Unlike the time of the last modification, the time
/// of the last status change cannot be set back.
pub(crate) fn file_state(kind: EntryKind, metadata: &Metadata) -> String {
    format!(
        "{kind} {} {}.{} {}.{}\n",
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec()
    )
}
