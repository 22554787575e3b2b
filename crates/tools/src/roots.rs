//! The folders that a policy opens, held as handles, and the policy with no links left in its paths.
//!
//! An absolute path begins at the handle of the folder it lies in; what lies in none of them has no beginning, and so
//! cannot be reached at all.

use crate::folder::Folder;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use lango_sandbox::{Access, Policy};
use std::io;
use std::path::{Path, PathBuf};

/// What a workspace is made of.
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
    /// The path as it was given, made absolute: whoever was told this one will use it.
    given: PathBuf,
}

impl Roots {
    /// Opens what the policy names. A path that fails comes with its reason; a folder besides the workspace that is
    /// not there is left out.
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
            read: policy.read.iter().map(|path| settled(path)).collect(),
            write: policy.write.iter().map(|path| settled(path)).collect(),
            unprotected: policy
                .unprotected
                .iter()
                .map(|path| settled(path))
                .collect(),
            kept: both_names(&policy.kept),
            hidden: both_names(&policy.hidden),
            hide_dotfiles_in: policy.hide_dotfiles_in.as_deref().map(settled),
            network: policy.network,
            allow_git_init: policy.allow_git_init,
        };
        Ok(Self { policy, open })
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The path of the workspace, without links.
    pub(crate) fn workspace(&self) -> &Path {
        &self.policy.workspace
    }

    /// What may be done with a path that is absolute and free of links.
    pub(crate) fn access(&self, path: &Path) -> Access {
        self.policy.access(path)
    }

    /// Whether a path lies in an opened folder, be it hidden there or not.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        let mut opened = self.policy.writable().chain(&self.policy.read);
        opened.any(|folder| path.starts_with(folder))
    }

    /// Whether a path lies in a folder whose content may be changed, be it kept there or not.
    pub(crate) fn is_in_writable(&self, path: &Path) -> bool {
        self.policy
            .writable()
            .any(|folder| path.starts_with(folder))
    }

    /// Whether a path is an opened folder, or holds one.
    pub(crate) fn holds_root(&self, path: &Path) -> bool {
        self.open.iter().any(|root| root.path.starts_with(path))
    }

    /// Where the way to `path` begins, and what of it is left to go. Relative paths begin at the workspace.
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

    /// The folder at a path that is absolute and free of links; a link that has come in its way stops it.
    pub(crate) fn open_without_links(&self, path: &Path) -> io::Result<Folder<'_>> {
        let Some((mut folder, rest)) = self.start(path)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        for name in rest {
            folder = folder.child(name)?;
        }
        Ok(folder)
    }

    /// A path as people and models are shown it: relative to the workspace if it lies there.
    pub(crate) fn short<'p>(&self, path: &'p Path) -> &'p Path {
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

    /// A file begins at its folder; the policy says that nothing else there may be touched.
    fn open_file_or_folder(path: &Path) -> io::Result<Self> {
        match path.canonicalize()? {
            file if !file.is_dir() => Self::open(file.parent().unwrap_or(&file)),
            _ => Self::open(path),
        }
    }
}

/// Each path as it is named and as it ends up, should it be a link: neither the link nor what it leads to is free.
fn both_names(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut both = Vec::new();
    for path in paths {
        let end = settled(path);
        let named = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => settled(parent).join(name),
            _ => end.clone(),
        };
        if named != end {
            both.push(named);
        }
        both.push(end);
    }
    both
}

/// The path, absolute, and without links as far as it exists.
fn settled(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (
        absolute.canonicalize(),
        absolute.parent(),
        absolute.file_name(),
    ) {
        (Ok(canonical), ..) => canonical,
        (Err(_), Some(parent), Some(name)) => settled(parent).join(name),
        (Err(_), ..) => absolute,
    }
}
