//! The first pass: finds the protected files that exist in the writable directories before a command starts. Only
//! reads, and proceeds breadth first.

use super::checklist::{Checklist, ForeignFile, KnownDirectory, KnownLink, Root};
use super::directory::{Directory, Identity, Status, open_root};
use super::pending;
use crate::protected::{self, GitEntries, ParentDirectory};
use crate::{LaunchError, NewFiles, Policy};
use rustix::fd::AsFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of entries that a scan reads. Files it does not see cannot be protected, so no command starts in a
/// larger workspace.
const MAX_ENTRIES: usize = 5_000_000;
/// Maximum number of protected files that mounts can cover.
const MAX_PROTECTED: usize = 1024;

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) checklist: Checklist,
    /// The existing protected files, and the paths inside the writable directories that links and `.git` files among
    /// them point to.
    pub(crate) protected: Vec<PathBuf>,
    /// Hidden dotfiles in the user's home.
    pub(crate) dotfiles: Vec<PathBuf>,
}

impl Scan {
    /// Scans the policy's writable directories.
    pub(crate) fn run(
        policy: &Policy,
        new_files: NewFiles,
        records: Option<&Path>,
    ) -> Result<Self, LaunchError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let started_ns = now.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(0));
        let mut scanner = Scanner {
            policy,
            others: records.map(pending::pending_checklists).unwrap_or_default(),
            entries: 0,
            protected: Vec::new(),
            dotfiles: Vec::new(),
            known: Vec::new(),
        };
        let roots: Vec<Root> = policy
            .writable()
            .filter(|path| !policy.unprotected.contains(path))
            .map(|path| scanner.scan_root(path))
            .collect::<Result<_, _>>()?;
        let mut protected = scanner.protected;
        let is_writable = |path: &PathBuf| policy.writable().any(|root| path.starts_with(root));
        let targets = protected.iter().flat_map(|path| pointer_targets(path));
        let targets: Vec<PathBuf> = targets.filter(is_writable).collect();
        protected.extend(targets);
        if protected.len() > MAX_PROTECTED {
            return Err(LaunchError::Policy {
                path: policy.workspace.clone(),
                problem: format!(
                    "it contains more than {MAX_PROTECTED} protected files (such as `.git` and `.vscode`); choose a smaller \
                     folder"
                ),
            });
        }
        Ok(Self {
            checklist: Checklist {
                started_ns,
                boot: pending::boot_id(),
                new_files,
                allow_git_init: policy.allow_git_init,
                known: scanner.known,
                roots,
            },
            protected,
            dotfiles: scanner.dotfiles,
        })
    }
}

struct Scanner<'a> {
    policy: &'a Policy,
    /// The checklists of other commands that are still running or not cleaned up yet.
    others: Vec<Checklist>,
    entries: usize,
    protected: Vec<PathBuf>,
    dotfiles: Vec<PathBuf>,
    known: Vec<Identity>,
}

impl Scanner<'_> {
    /// Scans one writable directory.
    fn scan_root(&mut self, path: &Path) -> Result<Root, LaunchError> {
        let refused = |error: Errno| LaunchError::Policy {
            path: path.to_path_buf(),
            problem: match error {
                Errno::NOSYS => {
                    "the kernel does not support `openat2`; use Linux 5.6 or later".to_string()
                }
                error => {
                    format!("it cannot be scanned ({error}); choose a readable folder")
                }
            },
        };
        let handle = open_root(path).map_err(refused)?;
        let identity = Status::of_handle(&handle).map_err(refused)?.identity;
        let inside = |listed: &[PathBuf]| -> Vec<PathBuf> {
            let inside = listed
                .iter()
                .filter_map(|listed| listed.strip_prefix(path).ok());
            inside.map(Path::to_path_buf).collect()
        };
        let hidden = inside(&self.policy.hidden);
        let mut listed = inside(&self.policy.read_only);
        listed.extend(hidden.iter().cloned());
        let exists = |inside: &&PathBuf| Status::of(&handle, inside.as_path()).is_ok();
        let covered = listed.iter().filter(exists).cloned().collect();
        let mut root = Root {
            path: path.to_path_buf(),
            identity,
            directories: Vec::new(),
            listed,
            hidden,
            covered,
            links: Vec::new(),
            foreign: Vec::new(),
            unscanned: Vec::new(),
            hides_dotfiles: self.policy.hide_dotfiles_in.as_deref() == Some(path),
        };
        let mut queue = VecDeque::from([PathBuf::new()]);
        while let Some(inside) = queue.pop_front() {
            if self.entries >= MAX_ENTRIES {
                return Err(LaunchError::Policy {
                    path: path.to_path_buf(),
                    problem: format!(
                        "it contains more than {MAX_ENTRIES} files, too many to protect; choose a smaller folder"
                    ),
                });
            }
            let scanned = Directory::open_as_owner(handle.as_fd(), &inside).and_then(|directory| {
                self.scan_directory(&mut root, &directory, &inside, &mut queue)
            });
            match scanned {
                Ok(found) => root.directories.extend(found),
                // It was just removed or replaced.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                // It belongs to another user; the command cannot open it either.
                Err(Errno::ACCESS | Errno::PERM) => root.unscanned.push(inside),
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(root)
    }

    fn scan_directory(
        &mut self,
        root: &mut Root,
        directory: &Directory,
        inside: &Path,
        queue: &mut VecDeque<PathBuf>,
    ) -> rustix::io::Result<Option<KnownDirectory>> {
        let status = Status::of_handle(directory)?;
        let parent = ParentDirectory::of(inside);
        let (mut directories, mut protected, mut covered) = (Vec::new(), Vec::new(), Vec::new());
        let mut git = GitEntries::default();
        directory.each(|name, kind| {
            self.entries += 1;
            git.add(name);
            let is_directory = || match kind {
                FileType::Unknown => Status::of(directory, name)
                    .is_ok_and(|status| status.kind() == FileType::Directory),
                kind => kind == FileType::Directory,
            };
            let is_hidden =
                root.hides(inside, name) && self.policy.is_hidden_dotfile(&root.path.join(name));
            if is_hidden {
                self.dotfiles.push(root.path.join(name));
                covered.push(inside.join(name));
            } else if parent.protection_of(name).is_some() {
                protected.push(name.to_owned());
            } else if is_directory() {
                directories.push(inside.join(name));
            }
        })?;
        if git.is_repository() && !self.is_foreign(&root.path.join(inside), status.identity) {
            self.known.push(status.identity);
            if !inside.as_os_str().is_empty() {
                self.protected.push(root.path.join(inside));
                root.covered.push(inside.to_path_buf());
                return Ok(None);
            }
        }
        for name in protected {
            let status = match Status::of(directory, name.as_os_str()) {
                Err(Errno::NOENT) => continue,
                status => status?,
            };
            let path = inside.join(name);
            let identity = status.identity;
            self.protected.push(root.path.join(&path));
            if self.is_foreign(&root.path.join(&path), identity) {
                root.foreign.push(ForeignFile {
                    path,
                    identity,
                    changed_ns: u64::try_from(status.changed_ns).unwrap_or_default(),
                });
            } else {
                if status.kind() == FileType::Symlink {
                    root.links.push(KnownLink { path, identity });
                } else {
                    self.known.push(identity);
                    root.covered.push(path);
                }
            }
        }
        root.covered.extend(covered);
        directories.retain(|directory| !root.hidden.contains(directory));
        queue.extend(directories);
        Ok(Some(KnownDirectory {
            path: inside.to_path_buf(),
            identity: status.identity,
            changed_ns: u64::try_from(status.changed_ns).unwrap_or_default(),
            is_closed: directory.has_changed_modes() || status.mode & 0o500 != 0o500,
        }))
    }
}

impl Scanner<'_> {
    /// Whether a protected file appeared during another command whose clean-up is still pending.
    fn is_foreign(&self, path: &Path, identity: Identity) -> bool {
        let mut others = self.others.iter();
        others.any(|other| other.existed_before(path, identity) == Some(false))
    }
}

/// Returns the existing paths that a `.git` file or a protected link points to. They are only ever made read-only.
fn pointer_targets(path: &Path) -> Vec<PathBuf> {
    let mut targets: Vec<PathBuf> = Vec::new();
    if path.is_symlink() {
        targets.extend(fs::canonicalize(path));
    } else if path.file_name().is_some_and(protected::is_git_name)
        && let Ok(metadata) = fs::symlink_metadata(path)
        && metadata.is_file()
        && metadata.len() < 4096
        && let Ok(text) = fs::read_to_string(path)
        && let Some(target) = text.strip_prefix("gitdir:")
        && let Some(folder) = path.parent()
        && let Ok(target) = fs::canonicalize(folder.join(target.trim()))
    {
        let common = fs::read_to_string(target.join("commondir")).unwrap_or_default();
        if !common.is_empty() {
            targets.extend(fs::canonicalize(target.join(common.trim())));
        }
        targets.push(target);
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unprotected_directory_is_not_scanned() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("profile/.git")).unwrap();
        let mut policy = Policy::of(root.clone());
        let scan = |policy: &Policy| Scan::run(policy, NewFiles::Remove, None).unwrap();
        assert_eq!(scan(&policy).checklist.roots.len(), 1);
        policy.unprotected = vec![root];
        let scan = scan(&policy);
        assert_eq!(scan.checklist.roots, Vec::new());
        assert_eq!(scan.protected, Vec::<PathBuf>::new());
    }
}
