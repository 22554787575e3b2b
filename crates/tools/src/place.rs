//! A path inside a workspace, and the ways to open it that cannot lead out or hang.
//!
//! All access goes through the workspace's handle, so the answer to "is this inside" and the opening are one step.

use crate::file_error::FileError;
use crate::kind::Kind;
use crate::show;
use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::io;
use std::path::PathBuf;

/// Where something is or may be in a workspace.
pub(crate) struct Place<'a> {
    workspace: &'a Dir,
    path: PathBuf,
}

impl<'a> Place<'a> {
    /// `path` is relative; it may contain `..`.
    pub(crate) fn new(workspace: &'a Dir, path: PathBuf) -> Self {
        Self { workspace, path }
    }

    /// The path for a reader's eyes.
    pub(crate) fn shown(&self) -> String {
        show::name(self.path.as_os_str())
    }

    /// What is here; a link is not followed.
    pub(crate) fn metadata(&self) -> Result<Metadata, FileError> {
        self.workspace
            .symlink_metadata(&self.path)
            .map_err(|error| self.explain(error))
    }

    /// Where the link that is here points to.
    pub(crate) fn link_target(&self) -> Result<PathBuf, FileError> {
        self.workspace
            .read_link_contents(&self.path)
            .map_err(|error| self.explain(error))
    }

    /// Opens the folder that is here.
    pub(crate) fn open_folder(&self) -> Result<Dir, FileError> {
        self.workspace
            .open_dir(&self.path)
            .map_err(|error| self.explain(error))
    }

    /// Opens the regular file that is here for reading, and says how many bytes it has.
    pub(crate) fn open_file(&self) -> Result<(File, u64), FileError> {
        // Opening a device can have effects of its own, so the kind is looked at first; what was opened is looked
        // at again, and without blocking, because something else may have taken the name in between.
        let before = self
            .workspace
            .metadata(&self.path)
            .map_err(|error| self.explain(error))?;
        self.expect_file(&before)?;
        let options = OpenOptions::new().read(true).nonblock(true).clone();
        let file = self
            .workspace
            .open_with(&self.path, &options)
            .map_err(|error| self.explain(error))?;
        let opened = file.metadata().map_err(|error| self.explain(error))?;
        self.expect_file(&opened)?;
        Ok((file, opened.len()))
    }

    /// What an error of the operating system means for whoever named this place.
    pub(crate) fn explain(&self, cause: io::Error) -> FileError {
        let path = self.shown();
        match cause.kind() {
            io::ErrorKind::NotFound => match self.workspace.read_link_contents(&self.path) {
                Ok(target) => FileError::Dangling {
                    path,
                    target: show::name(target.as_os_str()),
                },
                Err(_) => FileError::Missing { path },
            },
            // An escape is refused by cap-std itself, so no code of the operating system comes with it.
            io::ErrorKind::PermissionDenied if cause.raw_os_error().is_none() => {
                FileError::Outside { path }
            }
            io::ErrorKind::PermissionDenied => FileError::Forbidden { path },
            io::ErrorKind::NotADirectory => FileError::NotAFolder { path },
            io::ErrorKind::InvalidFilename => FileError::UnusablePath {
                problem: "a name in it is too long",
            },
            _ => FileError::Failed { path, cause },
        }
    }

    fn expect_file(&self, metadata: &Metadata) -> Result<(), FileError> {
        let path = self.shown();
        match Kind::from(metadata.file_type()) {
            Kind::File => Ok(()),
            Kind::Folder => Err(FileError::IsFolder { path }),
            kind => Err(FileError::NotAFile { path, kind }),
        }
    }
}
