//! What the file tools may reach: the folder the agents work in, and what the person opened besides.
//!
//! It is made from the [`Policy`] that holds for commands too, so neither can do what the other may not. All of it is
//! held as open handles; a model's path becomes a [`Place`] here, and is followed from those handles alone.

mod transfer;

pub use transfer::WorkspaceEntry;

use crate::file_error::FileError;
use crate::place::Place;
use crate::roots::Roots;
use lango_sandbox::Policy;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A policy's folders opened for the tools. Cloning it shares the handles.
#[derive(Debug, Clone)]
pub struct Workspace {
    roots: Arc<Roots>,
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
    /// The operating system refuses; it may also be a folder opened besides the workspace.
    #[error("the folder `{}` cannot be opened", path.display())]
    Unreachable {
        /// The path that was given.
        path: PathBuf,
        /// What it says.
        #[source]
        cause: io::Error,
    },
}

impl Workspace {
    /// Opens the folders of the policy; links in its paths are followed. Folders opened besides the workspace that are
    /// not there now cannot be reached later.
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

    /// The absolute path of the folder the agents work in, without links.
    pub fn path(&self) -> &Path {
        self.roots.workspace()
    }

    /// The policy, without links in its paths as far as they exist.
    pub fn policy(&self) -> &Policy {
        self.roots.policy()
    }

    /// The place that a model's `path` names: relative to the workspace, or absolute.
    pub(crate) fn locate(&self, path: &str) -> Result<Place<'_>, FileError> {
        Place::new(&self.roots, path)
    }

    pub(crate) fn roots(&self) -> &Roots {
        &self.roots
    }
}
