//! What the file tools can reach: the folder that the agents work in, and further folders that the user opened.
//!
//! A workspace is built from the same [`Policy`] that applies to commands, so file tools and commands have the same
//! limits. Its folders are open handles; a path from a model becomes a [`RequestedPath`] and is resolved from those
//! handles only.

mod transfer;

pub use transfer::WorkspaceEntry;

use crate::file_error::FileError;
use crate::requested_path::RequestedPath;
use crate::roots::Roots;
use lango_core::ToolError;
use lango_sandbox::Policy;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folders of a policy, opened for the tools. Clones share the handles.
#[derive(Debug, Clone)]
pub struct Workspace {
    roots: Arc<Roots>,
}

/// Why a folder cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("the workspace `{}` does not exist; create it or name another folder", path.display())]
    Missing { path: PathBuf },
    #[error("the workspace `{}` is not a folder; name the folder that contains it", path.display())]
    NotAFolder { path: PathBuf },
    /// The operating system refuses to open the workspace or one of the additional folders.
    #[error("the folder `{}` cannot be opened", path.display())]
    Unreachable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

impl Workspace {
    /// Opens the folders of the policy, following links in their paths. An additional folder that does not exist yet
    /// stays unreachable, even if it is created later.
    pub fn open(policy: Policy) -> Result<Self, WorkspaceError> {
        let roots = Roots::open(policy).map_err(|(path, cause)| match cause.kind() {
            io::ErrorKind::NotFound => WorkspaceError::Missing { path },
            io::ErrorKind::NotADirectory => WorkspaceError::NotAFolder { path },
            _ => WorkspaceError::Unreachable { path, cause },
        })?;
        Ok(Self {
            roots: Arc::new(roots),
        })
    }

    /// Returns the absolute path of the folder that the agents work in, without links.
    pub fn path(&self) -> &Path {
        self.roots.workspace()
    }

    /// Returns the path as text, escaped if it is not UTF-8, so that different folders never have the same name.
    pub fn name(&self) -> String {
        match self.path().to_str() {
            Some(path) => path.to_owned(),
            None => format!("{:?}", self.path()),
        }
    }

    /// Returns the policy, with links resolved in the paths that exist.
    pub fn policy(&self) -> &Policy {
        self.roots.policy()
    }

    /// Opens a regular file inside the folders of the policy, which commands and file tools may read too. The path may
    /// come from anyone: no link leads outside, even if another process swaps it in at this moment.
    ///
    /// # Errors
    /// The file does not exist, is hidden or outside, or cannot be opened.
    pub fn open_file(&self, path: &str) -> Result<File, ToolError> {
        let (file, _) = self.locate(path)?.target()?.open_file()?;
        Ok(file.into_std())
    }

    /// Checks a path from a model, which is relative to the workspace or absolute. Does not access it yet.
    pub(crate) fn locate(&self, path: &str) -> Result<RequestedPath<'_>, FileError> {
        RequestedPath::new(&self.roots, path)
    }

    pub(crate) fn roots(&self) -> &Roots {
        &self.roots
    }
}
