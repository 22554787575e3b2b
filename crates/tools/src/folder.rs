//! An opened folder that knows where it is, so that whatever is taken from it is first held against the policy.
//!
//! Names in it are single names; none is followed if it is a link.

use crate::kind::Kind;
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
pub(crate) enum NotOpened {
    /// It is something else.
    Kind(Kind),
    Failed(io::Error),
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl<'a> Folder<'a> {
    /// `path` is absolute and free of links.
    pub(crate) fn new(roots: &'a Roots, dir: Dir, path: PathBuf) -> Self {
        Self { roots, dir, path }
    }

    pub(crate) fn roots(&self) -> &'a Roots {
        self.roots
    }

    /// Its path, absolute and free of links when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The handle. What is done through it is not held against the policy.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The same folder once more.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(
            self.roots,
            self.dir.try_clone()?,
            self.path.clone(),
        ))
    }

    /// What may be done with the entry of this name.
    pub(crate) fn access(&self, name: &OsStr) -> Access {
        self.roots.access(&self.path.join(name))
    }

    /// The folder of this name in it.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Self> {
        self.expect_visible(name)?;
        let dir = self.dir.open_dir_nofollow(name)?;
        Ok(Self::new(self.roots, dir, self.path.join(name)))
    }

    /// The entries that may be seen.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<DirEntry>>> {
        Ok(self.dir.entries()?.filter(|entry| match entry {
            Ok(entry) => self.access(&entry.file_name()) != Access::None,
            Err(_) => true,
        }))
    }

    /// Opens the regular file of this name for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Result<(File, Metadata), NotOpened> {
        self.expect_visible(name)?;
        // Opening a device can have effects of its own, so the kind is looked at first; what was opened is looked
        // at again, and without blocking, because something else may have taken the name in between.
        expect_file(&self.dir.symlink_metadata(name)?)?;
        let options = OpenOptions::new()
            .read(true)
            .nonblock(true)
            .follow(FollowSymlinks::No)
            .clone();
        let file = self.dir.open_with(name, &options)?;
        let metadata = file.metadata()?;
        expect_file(&metadata)?;
        Ok((file, metadata))
    }

    fn expect_visible(&self, name: &OsStr) -> io::Result<()> {
        match self.access(name) {
            Access::None => Err(io::ErrorKind::NotFound.into()),
            Access::Read | Access::Guarded | Access::Write => Ok(()),
        }
    }
}

fn expect_file(metadata: &Metadata) -> Result<(), NotOpened> {
    match Kind::from(metadata.file_type()) {
        Kind::File => Ok(()),
        kind => Err(NotOpened::Kind(kind)),
    }
}
