//! An open folder that knows its path, so that every entry opened from it is first checked against the policy.
//!
//! Its methods take single names, never paths, and do not follow links.

use crate::entry_kind::EntryKind;
use crate::roots::Roots;
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, DirEntry, File, Metadata, OpenOptions};
use lango_sandbox::Access;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// A folder inside one of the roots.
#[derive(Debug)]
pub(crate) struct Folder<'a> {
    roots: &'a Roots,
    dir: Dir,
    path: PathBuf,
}

/// Why a file was not opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The entry is not a regular file.
    NotAFile(EntryKind),
    Failed(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl<'a> Folder<'a> {
    /// Wraps an open directory; `path` must be absolute and free of links.
    pub(crate) fn new(roots: &'a Roots, dir: Dir, path: PathBuf) -> Self {
        Self { roots, dir, path }
    }

    pub(crate) fn roots(&self) -> &'a Roots {
        self.roots
    }

    /// Returns the absolute path, which had no links when the folder was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the raw handle. Operations on it are not checked against the policy.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(
            self.roots,
            self.dir.try_clone()?,
            self.path.clone(),
        ))
    }

    /// Returns what the policy allows for the entry with this name.
    pub(crate) fn access(&self, name: &OsStr) -> Access {
        self.roots.access(&self.path.join(name))
    }

    /// Opens the subfolder with this name.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Self> {
        self.expect_visible(name)?;
        let dir = self.dir.open_dir_nofollow(name)?;
        Ok(Self::new(self.roots, dir, self.path.join(name)))
    }

    /// Lists the entries, without those that the policy hides.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<DirEntry>>> {
        Ok(self.dir.entries()?.filter(|entry| match entry {
            Ok(entry) => self.access(&entry.file_name()) != Access::None,
            Err(_) => true,
        }))
    }

    /// Opens the regular file with this name for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Result<(File, Metadata), OpenError> {
        self.expect_visible(name)?;
        open_file(&self.dir, name)
    }

    fn expect_visible(&self, name: &OsStr) -> io::Result<()> {
        match self.access(name) {
            Access::None => Err(io::ErrorKind::NotFound.into()),
            Access::Read | Access::Guarded | Access::Write => Ok(()),
        }
    }
}

/// Opens the regular file with this name for reading, without a check against the policy. Does not follow a link.
pub(crate) fn open_regular(dir: &Dir, name: &OsStr) -> io::Result<(File, Metadata)> {
    open_file(dir, name).map_err(|error| match error {
        OpenError::NotAFile(kind) => io::Error::other(format!("it is a {kind}")),
        OpenError::Failed(error) => error,
    })
}

/// Like [`open_regular`], and says if there is something else than a file.
pub(crate) fn open_file(dir: &Dir, name: &OsStr) -> Result<(File, Metadata), OpenError> {
    // Opening a device can have side effects, so check the kind first. Check the opened file again, and open it
    // without blocking, because another process may have replaced the entry in between.
    expect_file(&dir.symlink_metadata(name)?)?;
    let options = OpenOptions::new()
        .read(true)
        .nonblock(true)
        .follow(FollowSymlinks::No)
        .clone();
    let file = dir.open_with(name, &options)?;
    let metadata = file.metadata()?;
    expect_file(&metadata)?;
    Ok((file, metadata))
}

fn expect_file(metadata: &Metadata) -> Result<(), OpenError> {
    match EntryKind::from(metadata.file_type()) {
        EntryKind::File => Ok(()),
        kind => Err(OpenError::NotAFile(kind)),
    }
}
