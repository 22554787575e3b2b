//! A path that a model passed to a tool, and the ways to resolve it.
//!
//! The text of the path decides nothing. It is resolved from handle to handle (see [`resolve`](crate::resolve)) to a
//! [`TargetPath`], which the tools operate on.

use crate::file_error::FileError;
use crate::resolve::{FinalLink, ResolveError, resolve};
use crate::roots::Roots;
use crate::show;
use crate::target_path::TargetPath;
use std::path::{Component, Path, PathBuf};

/// Longest path that Linux accepts.
const MAX_PATH_BYTES: usize = 4096;

/// An unresolved path inside the folders of a workspace.
pub(crate) struct RequestedPath<'a> {
    roots: &'a Roots,
    path: PathBuf,
    /// The absolute path that the text means if no part of it is a link.
    textual_path: PathBuf,
    /// Whether the text ends like a folder's path: `a/`, `a/.`.
    ends_as_folder: bool,
}

impl<'a> RequestedPath<'a> {
    /// Checks the text of a path, which is relative to the workspace or absolute and may contain `..`.
    pub(crate) fn new(roots: &'a Roots, path: &str) -> Result<Self, FileError> {
        let problem = if path.contains('\0') {
            Some("it contains a NUL character")
        } else if path.len() > MAX_PATH_BYTES {
            Some("it is longer than 4096 bytes")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(FileError::UnusablePath { problem });
        }
        let short = roots.shorten(Path::new(path));
        let normal: PathBuf = short
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        Ok(Self {
            roots,
            path: if normal.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                normal
            },
            textual_path: without_parents(&roots.workspace().join(path)),
            ends_as_folder: path.ends_with('/') || path.ends_with("/."),
        })
    }

    /// Returns the path, escaped for display.
    pub(crate) fn display_path(&self) -> String {
        show::name(self.path.as_os_str())
    }

    /// Resolves the path to the entry itself; does not follow a link at its end.
    pub(crate) fn entry(&self) -> Result<TargetPath<'a>, FileError> {
        self.resolve(FinalLink::Keep)
            .map_err(|error| self.explain(error))
    }

    /// Resolves the path; follows a link at its end.
    pub(crate) fn target(&self) -> Result<TargetPath<'a>, FileError> {
        self.resolve(FinalLink::Follow)
            .map_err(|error| self.explain(error))
    }

    /// Resolves the path to something that may be created or replaced; follows a link at its end.
    pub(crate) fn destination(&self) -> Result<TargetPath<'a>, FileError> {
        let target = self
            .resolve(FinalLink::Follow)
            .map_err(|error| match error {
                // `Missing` would invite the model to create it.
                ResolveError::Hidden => FileError::Reserved {
                    path: self.display_path(),
                },
                error => self.explain(error),
            })?;
        target.expect_changeable()?;
        target.expect_few_new_folders()?;
        Ok(target)
    }

    /// Like [`destination`](Self::destination), for a file: fails if the path ends like that of a folder.
    pub(crate) fn file_destination(&self) -> Result<TargetPath<'a>, FileError> {
        if self.ends_as_folder {
            Err(FileError::NamesAFolder {
                path: self.display_path(),
            })
        } else {
            self.destination()
        }
    }

    fn resolve(&self, final_link: FinalLink) -> Result<TargetPath<'a>, ResolveError> {
        let resolved = resolve(self.roots, &self.path, final_link)?;
        Ok(TargetPath::new(
            resolved,
            self.display_path(),
            self.textual_path.clone(),
        ))
    }

    fn explain(&self, error: ResolveError) -> FileError {
        let path = self.display_path();
        match error {
            ResolveError::Outside => FileError::Outside { path },
            ResolveError::Hidden => FileError::Missing { path },
            ResolveError::Missing { link } => FileError::missing(path, link.as_deref()),
            ResolveError::TooLong => FileError::UnusablePath {
                problem: "it passes through too many folders",
            },
            ResolveError::Failed(cause) => FileError::explain(path, None, cause),
        }
    }
}

/// Resolves `.` and `..` in an absolute path textually.
fn without_parents(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    resolved
}
