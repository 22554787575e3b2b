//! The folders that a policy opens, as open handles, and the policy itself with all links in its paths resolved.
//!
//! An absolute path is resolved from the handle of the root it lies in. A path outside of all roots has no starting
//! handle, so it cannot be reached at all.

use crate::folder::Folder;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use lango_sandbox::{Access, Policy};
use std::io;
use std::path::{Path, PathBuf};

/// The open folders of a workspace and its policy.
#[derive(Debug)]
pub(crate) struct Roots {
    policy: Policy,
    /// The workspace first.
    open: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    dir: Dir,
    path: PathBuf,
    /// The path from the configuration, made absolute. Users and models that know this spelling may use it.
    given: PathBuf,
}

impl Roots {
    /// Opens the folders of the policy. Skips additional folders that do not exist. An error names the path that could
    /// not be opened.
    pub(crate) fn open(policy: Policy) -> Result<Self, (PathBuf, io::Error)> {
        let mut open = Vec::new();
        let named = |path: PathBuf| move |cause| (path, cause);
        let workspace = policy.workspace.clone();
        open.push(Root::open(&workspace).map_err(named(workspace.clone()))?);
        for path in policy.write.iter().chain(&policy.read) {
            match Root::open_file_or_folder(path) {
                Ok(root) => open.push(root),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err((path.clone(), cause)),
            }
        }
        let policy = Policy {
            workspace: open[0].path.clone(),
            read: policy.read.iter().map(|path| resolve_links(path)).collect(),
            write: policy
                .write
                .iter()
                .map(|path| resolve_links(path))
                .collect(),
            unprotected: policy
                .unprotected
                .iter()
                .map(|path| resolve_links(path))
                .collect(),
            read_only: with_link_targets(&policy.read_only),
            hidden: with_link_targets(&policy.hidden),
            hide_dotfiles_in: policy.hide_dotfiles_in.as_deref().map(resolve_links),
            network: policy.network,
            allow_git_init: policy.allow_git_init,
        };
        Ok(Self { policy, open })
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the path of the workspace, without links.
    pub(crate) fn workspace(&self) -> &Path {
        &self.policy.workspace
    }

    /// Returns what the policy allows for a path that is absolute and free of links.
    pub(crate) fn access(&self, path: &Path) -> Access {
        self.policy.access(path)
    }

    /// Whether a path lies in an opened folder, even if the policy hides it there.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        let mut opened = self.policy.writable().chain(&self.policy.read);
        opened.any(|folder| path.starts_with(folder))
    }

    /// Whether a path lies in a writable folder, even if the policy protects it there.
    pub(crate) fn is_in_writable(&self, path: &Path) -> bool {
        self.policy
            .writable()
            .any(|folder| path.starts_with(folder))
    }

    /// Whether a path is an opened folder or contains one.
    pub(crate) fn contains_root(&self, path: &Path) -> bool {
        self.open.iter().any(|root| root.path.starts_with(path))
    }

    /// Returns the root to resolve `path` from and the path relative to it, or `None` if it lies in no root. Relative
    /// paths start at the workspace.
    pub(crate) fn start<'a, 'p>(
        &'a self,
        path: &'p Path,
    ) -> io::Result<Option<(Folder<'a>, &'p Path)>> {
        if path.is_relative() {
            return Ok(Some((self.folder(&self.open[0])?, path)));
        }
        let below = |root: &'a Root| {
            let rest = path.strip_prefix(&root.path);
            let rest = rest.or_else(|_| path.strip_prefix(&root.given)).ok()?;
            Some((root, rest))
        };
        let nearest = self
            .open
            .iter()
            .filter_map(below)
            .min_by_key(|(_, rest)| rest.as_os_str().len());
        nearest
            .map(|(root, rest)| Ok((self.folder(root)?, rest)))
            .transpose()
    }

    /// Opens the folder at a path that is absolute and free of links. Fails if a component has become a link.
    pub(crate) fn open_without_links(&self, path: &Path) -> io::Result<Folder<'_>> {
        let Some((mut folder, rest)) = self.start(path)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        for name in rest {
            folder = folder.child(name)?;
        }
        Ok(folder)
    }

    /// Returns the path relative to the nearest writable folder, and unchanged if it lies in none.
    pub(crate) fn inside<'p>(&self, path: &'p Path) -> &'p Path {
        let root = self
            .policy
            .writable()
            .filter(|root| path.starts_with(root))
            .max_by_key(|root| root.as_os_str().len());
        root.and_then(|root| path.strip_prefix(root).ok())
            .unwrap_or(path)
    }

    /// Returns the path relative to the workspace if it lies there, and unchanged otherwise. For display.
    pub(crate) fn shorten<'p>(&self, path: &'p Path) -> &'p Path {
        let root = &self.open[0];
        path.strip_prefix(&root.path)
            .or_else(|_| path.strip_prefix(&root.given))
            .unwrap_or(path)
    }

    fn folder(&self, root: &Root) -> io::Result<Folder<'_>> {
        Ok(Folder::new(self, root.dir.try_clone()?, root.path.clone()))
    }
}

impl Root {
    fn open(path: &Path) -> io::Result<Self> {
        let canonical = path.canonicalize()?;
        Ok(Self {
            dir: Dir::open_ambient_dir(&canonical, ambient_authority())?,
            path: canonical,
            given: std::path::absolute(path)?,
        })
    }

    /// Opens a folder, or the parent folder of a file; the policy gives no access to the file's siblings.
    fn open_file_or_folder(path: &Path) -> io::Result<Self> {
        match path.canonicalize()? {
            file if !file.is_dir() => Self::open(file.parent().unwrap_or(&file)),
            _ => Self::open(path),
        }
    }
}

/// Returns every path and, if it is a link, also the link's target, so that a rule applies to both.
fn with_link_targets(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut both = Vec::new();
    for path in paths {
        let target = resolve_links(path);
        let named = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => resolve_links(parent).join(name),
            _ => target.clone(),
        };
        if named != target {
            both.push(named);
        }
        both.push(target);
    }
    both
}

/// Makes the path absolute and resolves links in the part of it that exists.
fn resolve_links(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (
        absolute.canonicalize(),
        absolute.parent(),
        absolute.file_name(),
    ) {
        (Ok(canonical), ..) => canonical,
        (Err(_), Some(parent), Some(name)) => resolve_links(parent).join(name),
        (Err(_), ..) => absolute,
    }
}
