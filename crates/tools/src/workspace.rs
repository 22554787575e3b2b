//! The folder that the file tools may reach, and nothing else.
//!
//! It is held as an open handle. A model's path becomes a [`Place`] here, by its text alone; whether what it names
//! lies inside is decided by the operating system when the place is opened relative to the handle.

use crate::file_error::FileError;
use crate::place::Place;
use crate::show;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The longest path the operating system takes on Linux.
const LONGEST_PATH_BYTES: usize = 4096;

/// A folder opened for the tools. Cloning it shares the handle.
#[derive(Debug, Clone)]
pub struct Workspace {
    folder: Arc<Folder>,
}

#[derive(Debug)]
struct Folder {
    handle: Dir,
    canonical: PathBuf,
    /// The path as it was given, made absolute: a model that was told this one will use it.
    given: PathBuf,
}

/// Why a folder cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is nothing of that name.
    #[error("the workspace `{}` does not exist; create it or name another folder", path.display())]
    Missing {
        /// The path that was given.
        path: PathBuf,
    },
    /// It is something else than a folder.
    #[error("the workspace `{}` is not a folder; name the folder that holds it", path.display())]
    NotAFolder {
        /// The path that was given.
        path: PathBuf,
    },
    /// The operating system refuses.
    #[error("the workspace `{}` cannot be opened", path.display())]
    Unreachable {
        /// The path that was given.
        path: PathBuf,
        /// What it says.
        #[source]
        cause: io::Error,
    },
}

impl Workspace {
    /// Opens the folder; links in `path` itself are followed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let path = path.as_ref();
        Folder::open(path)
            .map(|folder| Self {
                folder: Arc::new(folder),
            })
            .map_err(|cause| {
                let path = path.to_owned();
                match cause.kind() {
                    io::ErrorKind::NotFound => WorkspaceError::Missing { path },
                    io::ErrorKind::NotADirectory => WorkspaceError::NotAFolder { path },
                    _ => WorkspaceError::Unreachable { path, cause },
                }
            })
    }

    /// The absolute path of the folder, without links.
    pub fn path(&self) -> &Path {
        &self.folder.canonical
    }

    /// The place that a model's `path` names: relative to the workspace, or absolute and inside it.
    pub(crate) fn locate(&self, path: &str) -> Result<Place<'_>, FileError> {
        if path.contains('\0') {
            return Err(FileError::UnusablePath {
                problem: "it contains a NUL character",
            });
        }
        if path.len() > LONGEST_PATH_BYTES {
            return Err(FileError::UnusablePath {
                problem: "it is longer than 4096 bytes",
            });
        }
        let inside = self
            .relative(Path::new(path))
            .ok_or_else(|| FileError::Outside {
                path: show::name(path.as_ref()),
            })?;
        let normal: PathBuf = inside
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        let named = if normal.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            normal
        };
        Ok(Place::new(&self.folder.handle, named))
    }

    fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        if path.is_relative() {
            return Some(path);
        }
        let Folder {
            canonical, given, ..
        } = &*self.folder;
        path.strip_prefix(canonical)
            .or_else(|_| path.strip_prefix(given))
            .ok()
    }
}

impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        let canonical = path.canonicalize()?;
        let handle = Dir::open_ambient_dir(&canonical, ambient_authority())?;
        Ok(Self {
            handle,
            canonical,
            given: std::path::absolute(path)?,
        })
    }
}
