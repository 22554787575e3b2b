//! Where a path led: a folder's handle and a name in it, to act on without looking at the path again.

use crate::file_error::FileError;
use crate::folder::{Folder, NotOpened};
use crate::guard::guarded_target;
use crate::kind::Kind;
use crate::replace;
use crate::walk::Found;
use cap_fs_ext::DirExt;
use cap_std::fs::{File, Metadata};
use lango_core::GuardedTarget;
use lango_sandbox::Access;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

/// Something that is there, or may come to be.
#[derive(Debug)]
pub(crate) struct Spot<'a> {
    found: Found<'a>,
    shown: String,
}

impl<'a> Spot<'a> {
    pub(crate) fn new(found: Found<'a>, shown: String) -> Self {
        Self { found, shown }
    }

    /// The path as it was asked for, for a reader's eyes.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Where it is, absolute and free of links.
    pub(crate) fn path(&self) -> PathBuf {
        self.found.folder.path().join(self.below())
    }

    /// The folder's handle and the name in it, unless it is a root or lacks its parents.
    pub(crate) fn parent_and_name(&self) -> Option<(&Folder<'a>, &OsStr)> {
        match self.found.rest.as_slice() {
            [name] => Some((&self.found.folder, name)),
            _ => None,
        }
    }

    /// What is here.
    pub(crate) fn metadata(&self) -> Result<Metadata, FileError> {
        let folder = self.found.folder.dir();
        let metadata = match self.found.rest.as_slice() {
            [] => folder.dir_metadata(),
            [name] => folder.symlink_metadata(name),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        metadata.map_err(|cause| self.explain(cause))
    }

    /// What kind it is; nothing if it is not there.
    pub(crate) fn kind(&self) -> Result<Option<Kind>, FileError> {
        match self.metadata() {
            Ok(metadata) => Ok(Some(metadata.file_type().into())),
            Err(FileError::Missing { .. } | FileError::Dangling { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the link that is here points to.
    pub(crate) fn link_target(&self) -> Result<PathBuf, FileError> {
        let target = self.found.folder.dir().read_link_contents(self.below());
        target.map_err(|cause| self.explain(cause))
    }

    /// Opens the regular file that is here for reading, and says how many bytes it has.
    pub(crate) fn open_file(&self) -> Result<(File, u64), FileError> {
        let path = self.shown.clone();
        let name = match self.found.rest.as_slice() {
            [] => return Err(FileError::IsFolder { path }),
            [name] => name,
            _ => return Err(self.explain(io::ErrorKind::NotFound.into())),
        };
        match self.found.folder.open_file(name) {
            Ok((file, metadata)) => Ok((file, metadata.len())),
            Err(NotOpened::Kind(Kind::Folder)) => Err(FileError::IsFolder { path }),
            Err(NotOpened::Kind(kind)) => Err(FileError::NotAFile { path, kind }),
            Err(NotOpened::Failed(cause)) => Err(self.explain(cause)),
        }
    }

    /// Opens the folder that is here.
    pub(crate) fn open_folder(&self) -> Result<Folder<'a>, FileError> {
        let folder = match self.found.rest.as_slice() {
            [] => self.found.folder.try_clone(),
            [name] => self.found.folder.child(name),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        folder.map_err(|cause| self.explain(cause))
    }

    /// Refuses what may be looked at and not changed.
    pub(crate) fn expect_changeable(&self) -> Result<(), FileError> {
        let roots = self.found.folder.roots();
        let place = self.path();
        let path = self.shown.clone();
        match roots.access(&place).min(self.found.ceiling) {
            Access::Write | Access::Guarded => Ok(()),
            Access::Read if roots.is_in_writable(&place) => Err(FileError::Kept { path }),
            Access::Read => Err(FileError::ReadOnly { path }),
            Access::None => Err(FileError::Missing { path }),
        }
    }

    /// What is guarded about it: a change of it is asked for each time.
    pub(crate) fn guarded(&self) -> Option<GuardedTarget> {
        let (roots, path) = (self.found.folder.roots(), self.path());
        let access = roots.access(&path).min(self.found.ceiling);
        guarded_target(roots, &path, access)
    }

    /// Makes the folders above that are missing.
    pub(crate) fn make_parents(&mut self) -> Result<(), FileError> {
        while self.found.rest.len() > 1 {
            self.make_first().map_err(|cause| self.explain(cause))?;
        }
        Ok(())
    }

    /// Makes a folder here, and those above that are missing; says whether it is new.
    pub(crate) fn make_folder(mut self) -> Result<bool, FileError> {
        let mut is_new = false;
        while !self.found.rest.is_empty() {
            is_new = self.make_first().map_err(|cause| match cause.kind() {
                io::ErrorKind::NotADirectory => FileError::Occupied {
                    path: self.shown.clone(),
                },
                _ => self.explain(cause),
            })?;
        }
        Ok(is_new)
    }

    /// Puts a file with this content here, whole or not at all.
    pub(crate) fn replace(&mut self, content: &[u8]) -> Result<(), FileError> {
        self.make_parents()?;
        let path = self.shown.clone();
        let Some((folder, name)) = self.parent_and_name() else {
            return Err(FileError::IsFolder { path });
        };
        replace::replace(folder.dir(), name, content).map_err(|cause| match self.explain(cause) {
            FileError::Failed { path, cause } => FileError::NotWritten { path, cause },
            error => error,
        })
    }

    /// What an error of the operating system means for whoever named this.
    pub(crate) fn explain(&self, cause: io::Error) -> FileError {
        FileError::explain(self.shown.clone(), self.found.link.as_deref(), cause)
    }

    /// Makes the first missing folder, or takes the one that is there by now, and goes into it.
    fn make_first(&mut self) -> io::Result<bool> {
        let folder = &self.found.folder;
        let name = &self.found.rest[0];
        let is_new = match folder.dir().create_dir(name) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        let dir = folder.dir().open_dir_nofollow(name)?;
        self.found.folder = Folder::new(folder.roots(), dir, folder.path().join(name));
        self.found.rest.remove(0);
        Ok(is_new)
    }

    fn below(&self) -> PathBuf {
        self.found.rest.iter().collect()
    }
}
