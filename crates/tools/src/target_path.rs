//! The resolved target of a path: a folder's handle and a name in it. Operations use this pair and never resolve the
//! path a second time.

use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::folder::{Folder, OpenError};
use crate::guard::guarded_target;
use crate::resolve::{FollowedLink, ResolvedPath};
use crate::roots::Roots;
use crate::show;
use cap_fs_ext::DirExt;
use cap_std::fs::{File, Metadata};
use lango_core::{GuardedTarget, Inspection, PathResolution};
use lango_sandbox::Access;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of folders and files that one call creates.
const MAX_NEW_NAMES: usize = 64;

/// A file or folder that exists, or a path where one can be created.
#[derive(Debug)]
pub(crate) struct TargetPath<'a> {
    resolved: ResolvedPath<'a>,
    display_path: String,
    /// The absolute path that the text of the requested path means if no part of it is a link.
    textual_path: PathBuf,
}

impl<'a> TargetPath<'a> {
    pub(crate) fn new(
        resolved: ResolvedPath<'a>,
        display_path: String,
        textual_path: PathBuf,
    ) -> Self {
        Self {
            resolved,
            display_path,
            textual_path,
        }
    }

    /// Returns the requested path, escaped for display.
    pub(crate) fn display_path(&self) -> &str {
        &self.display_path
    }

    /// Returns the absolute path without links.
    pub(crate) fn path(&self) -> PathBuf {
        self.resolved.folder.path().join(self.below())
    }

    /// Returns the links that lead from the requested path to this one.
    pub(crate) fn links(&self) -> &[FollowedLink] {
        &self.resolved.links
    }

    /// Returns where the requested path leads, or `None` if its text tells that.
    pub(crate) fn resolution(&self) -> Option<PathResolution> {
        let path = self.path();
        let links = &self.resolved.links;
        if links.is_empty() && path == self.textual_path {
            return None;
        }
        let roots = self.roots();
        let text = |path: &Path| match roots.shorten(path).as_os_str() {
            workspace if workspace.is_empty() => ".".into(),
            path => show::exact(path).into(),
        };
        Some(PathResolution {
            target: text(&path),
            links: links.iter().map(|link| text(&link.full_path())).collect(),
        })
    }

    /// Fails if the requested path led to another place when the call was inspected. Without links it cannot.
    pub(crate) fn expect_same_path(&self, inspection: &Inspection) -> Result<(), FileError> {
        let (now, inspected) = (self.resolution(), inspection.path.as_ref());
        let has_links = |path: &&PathResolution| !path.links.is_empty();
        if now.as_ref().filter(has_links) == inspected.filter(has_links) {
            return Ok(());
        }
        Err(FileError::Redirected {
            path: self.display_path.clone(),
        })
    }

    /// Returns the requested path for a preview, with the path that links lead to.
    pub(crate) fn preview_path(&self) -> String {
        let linked = self.resolution().filter(|path| !path.links.is_empty());
        match linked {
            Some(_) => {
                let path = self.path();
                let path = show::name(self.roots().shorten(&path).as_os_str());
                format!("{} → {path}", self.display_path)
            }
            None => self.display_path.clone(),
        }
    }

    pub(crate) fn roots(&self) -> &'a Roots {
        self.resolved.folder.roots()
    }

    /// Returns the parent folder's handle and the name in it; `None` for a root, or if a parent folder is missing.
    pub(crate) fn parent_and_name(&self) -> Option<(&Folder<'a>, &OsStr)> {
        match self.resolved.names.as_slice() {
            [name] => Some((&self.resolved.folder, name)),
            _ => None,
        }
    }

    pub(crate) fn metadata(&self) -> Result<Metadata, FileError> {
        let folder = self.resolved.folder.dir();
        let metadata = match self.resolved.names.as_slice() {
            [] => folder.dir_metadata(),
            [name] => folder.symlink_metadata(name),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        metadata.map_err(|cause| self.explain(cause))
    }

    /// Returns the kind of the entry, or `None` if it does not exist.
    pub(crate) fn kind(&self) -> Result<Option<EntryKind>, FileError> {
        match self.metadata() {
            Ok(metadata) => Ok(Some(metadata.file_type().into())),
            Err(FileError::Missing { .. } | FileError::Dangling { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the target of the symbolic link at this path.
    pub(crate) fn link_target(&self) -> Result<PathBuf, FileError> {
        let target = self.resolved.folder.dir().read_link_contents(self.below());
        target.map_err(|cause| self.explain(cause))
    }

    /// Opens the regular file at this path for reading, and returns it with its size in bytes.
    pub(crate) fn open_file(&self) -> Result<(File, u64), FileError> {
        let (file, metadata) = self.open_with_metadata()?;
        Ok((file, metadata.len()))
    }

    /// Opens the regular file at this path for reading.
    pub(crate) fn open_with_metadata(&self) -> Result<(File, Metadata), FileError> {
        let path = self.display_path.clone();
        let name = match self.resolved.names.as_slice() {
            [] => return Err(FileError::IsFolder { path }),
            [name] => name,
            _ => return Err(self.explain(io::ErrorKind::NotFound.into())),
        };
        match self.resolved.folder.open_file(name) {
            Ok(opened) => Ok(opened),
            Err(OpenError::NotAFile(EntryKind::Folder)) => Err(FileError::IsFolder { path }),
            Err(OpenError::NotAFile(kind)) => Err(FileError::NotAFile { path, kind }),
            Err(OpenError::Failed(cause)) => Err(self.explain(cause)),
        }
    }

    pub(crate) fn open_folder(&self) -> Result<Folder<'a>, FileError> {
        let folder = match self.resolved.names.as_slice() {
            [] => self.resolved.folder.try_clone(),
            [name] => self.resolved.folder.child(name),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        folder.map_err(|cause| self.explain(cause))
    }

    /// Fails if the policy does not allow changes here.
    pub(crate) fn expect_changeable(&self) -> Result<(), FileError> {
        let roots = self.resolved.folder.roots();
        let resolved = self.path();
        let path = self.display_path.clone();
        match roots.access(&resolved).min(self.resolved.max_access) {
            Access::Write | Access::Guarded => Ok(()),
            Access::Read if roots.is_in_writable(&resolved) => Err(FileError::Protected { path }),
            Access::Read => Err(FileError::ReadOnly { path }),
            Access::None => Err(FileError::Missing { path }),
        }
    }

    /// Fails if too many folders are missing.
    pub(crate) fn expect_few_new_folders(&self) -> Result<(), FileError> {
        if self.resolved.names.len() <= MAX_NEW_NAMES {
            return Ok(());
        }
        Err(FileError::TooManyFolders {
            path: self.display_path.clone(),
            limit: MAX_NEW_NAMES,
        })
    }

    /// Returns the guarded target if other programs act on this path. Every change of it needs the user's approval.
    pub(crate) fn guarded(&self) -> Option<GuardedTarget> {
        let (roots, path) = (self.resolved.folder.roots(), self.path());
        let access = roots.access(&path).min(self.resolved.max_access);
        guarded_target(roots, &path, access)
    }

    /// Returns the paths of the missing parent folders, outermost first.
    pub(crate) fn missing_parents(&self) -> Vec<PathBuf> {
        let mut missing = self.missing_folders();
        missing.pop();
        missing
    }

    /// Returns the paths of the missing parent folders and of this path itself if it is missing too, outermost first.
    pub(crate) fn missing_folders(&self) -> Vec<PathBuf> {
        let mut path = self.resolved.folder.path().to_owned();
        let names = self.resolved.names.iter().map(|name| {
            path.push(name);
            path.clone()
        });
        names.collect()
    }

    /// Creates the missing parent folders.
    pub(crate) fn create_parents(&mut self) -> Result<(), FileError> {
        while self.resolved.names.len() > 1 {
            self.create_next().map_err(|cause| self.explain(cause))?;
        }
        Ok(())
    }

    /// Creates a folder at this path, and its missing parents. Returns `false` if the folder already existed.
    pub(crate) fn create_folder(mut self) -> Result<bool, FileError> {
        let mut is_new = false;
        while !self.resolved.names.is_empty() {
            is_new = self.create_next().map_err(|cause| match cause.kind() {
                io::ErrorKind::NotADirectory => FileError::Occupied {
                    path: self.display_path.clone(),
                },
                _ => self.explain(cause),
            })?;
        }
        Ok(is_new)
    }

    /// Turns an error of the operating system into one that the model can act on.
    pub(crate) fn explain(&self, cause: io::Error) -> FileError {
        FileError::explain(
            self.display_path.clone(),
            self.resolved.link.as_deref(),
            cause,
        )
    }

    /// Creates the first missing folder and descends into it. Returns `false` if another process created it meanwhile.
    fn create_next(&mut self) -> io::Result<bool> {
        let folder = &self.resolved.folder;
        let name = &self.resolved.names[0];
        let is_new = match folder.dir().create_dir(name) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        let dir = folder.dir().open_dir_nofollow(name)?;
        self.resolved.folder = Folder::new(folder.roots(), dir, folder.path().join(name));
        self.resolved.names.remove(0);
        Ok(is_new)
    }

    fn below(&self) -> PathBuf {
        self.resolved.names.iter().collect()
    }
}
