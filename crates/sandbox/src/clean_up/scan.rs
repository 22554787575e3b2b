//! The first look: which protected files exist in the writable directories before a command starts. It only reads, breadth
//! first, so that what lies near the top is seen for sure where a limit ends it.

use super::checklist::{Checklist, KnownDirectory, Root};
use super::directory::{Directory, Identity, Status, open_root};
use crate::protected::{self, GitEntries, Place};
use crate::{Command, LaunchError, Policy};
use rustix::fs::FileType;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many entries a scan reads.
const MOST_ENTRIES: usize = 2_000_000;
/// How many protected files one command's view can cover.
const MOST_PROTECTED: usize = 1024;

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) checklist: Checklist,
    /// The protected files that exist, and what they lead to inside of the writable directories.
    pub(crate) protected: Vec<PathBuf>,
}

impl Scan {
    /// Scans the policy's writable directories.
    pub(crate) fn take(policy: &Policy, command: &Command) -> Result<Self, LaunchError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let started_ns = now.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(0));
        let mut scanner = Scanner {
            policy,
            entries: 0,
            is_complete: true,
            protected: Vec::new(),
            known: Vec::new(),
        };
        let roots: Vec<Root> = policy
            .writable()
            .filter(|path| !policy.unprotected.contains(path))
            .filter_map(|path| scanner.root(path))
            .collect();
        for path in policy.kept.iter().chain(&policy.hidden) {
            let found = Status::of(rustix::fs::CWD, path).ok();
            scanner.known.extend(found.map(|status| status.identity));
        }
        let incomplete = (!scanner.is_complete).then(|| {
            format!("there are more than {MOST_ENTRIES} files, and only those nearest to the top were checked")
        });
        let mut protected = scanner.protected;
        let is_writable = |path: &PathBuf| policy.writable().any(|root| path.starts_with(root));
        let targets = protected.iter().flat_map(|path| pointer_targets(path));
        let targets: Vec<PathBuf> = targets.filter(is_writable).collect();
        protected.extend(targets);
        if protected.len() > MOST_PROTECTED {
            return Err(LaunchError::Policy {
                path: policy.workspace.clone(),
                problem: format!(
                    "it holds more than {MOST_PROTECTED} protected files (such as `.git` and `.vscode`); choose a smaller \
                     folder"
                ),
            });
        }
        Ok(Self {
            checklist: Checklist {
                started_ns,
                boot: super::pending::boot(),
                new_names: command.new_names,
                allow_git_init: policy.allow_git_init,
                known: scanner.known,
                roots,
                incomplete,
            },
            protected,
        })
    }
}

struct Scanner<'a> {
    policy: &'a Policy,
    entries: usize,
    is_complete: bool,
    protected: Vec<PathBuf>,
    known: Vec<Identity>,
}

impl Scanner<'_> {
    /// Scans one writable directory; nothing if it cannot be opened.
    fn root(&mut self, path: &Path) -> Option<Root> {
        let handle = open_root(path).ok()?;
        let identity = Status::of_handle(&handle).ok()?.identity;
        let inside = |listed: &[PathBuf]| -> Vec<PathBuf> {
            let inside = listed
                .iter()
                .filter_map(|listed| listed.strip_prefix(path).ok());
            inside.map(Path::to_path_buf).collect()
        };
        let hidden = inside(&self.policy.hidden);
        let mut listed = inside(&self.policy.kept);
        listed.extend(hidden.iter().cloned());
        let mut root = Root {
            path: path.to_path_buf(),
            identity,
            directories: Vec::new(),
            listed,
            hidden,
            links: Vec::new(),
            protects_dotfiles: self.policy.hide_dotfiles_in.as_deref() == Some(path),
        };
        let mut queue = VecDeque::from([PathBuf::new()]);
        while let Some(inside) = queue.pop_front() {
            if self.entries >= MOST_ENTRIES {
                self.is_complete = false;
                break;
            }
            let Ok(directory) = Directory::open(rustix::fd::AsFd::as_fd(&handle), &inside) else {
                continue;
            };
            if let Some(found) = self.directory(&mut root, &directory, &inside, &mut queue) {
                root.directories.push(found);
            }
        }
        Some(root)
    }

    fn directory(
        &mut self,
        root: &mut Root,
        directory: &Directory,
        inside: &Path,
        queue: &mut VecDeque<PathBuf>,
    ) -> Option<KnownDirectory> {
        let status = Status::of_handle(directory).ok()?;
        let place = Place::of(inside);
        let (mut directories, mut protected) = (Vec::new(), Vec::new());
        let mut git = GitEntries::default();
        let read = directory.each(|name, kind| {
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
                let status = Status::of(directory, name);
                self.known.extend(status.map(|status| status.identity));
            } else if place.protection_of(name).is_some() {
                protected.push(name.to_owned());
            } else if is_directory() {
                directories.push(inside.join(name));
            }
        });
        read.ok()?;
        if git.is_repository() {
            self.known.push(status.identity);
            if !inside.as_os_str().is_empty() {
                self.protected.push(root.path.join(inside));
                return None;
            }
        }
        for name in protected {
            if let Ok(status) = Status::of(directory, name.as_os_str()) {
                let path = inside.join(name);
                self.known.push(status.identity);
                self.protected.push(root.path.join(&path));
                if status.kind() == FileType::Symlink {
                    root.links.push(path);
                }
            }
        }
        directories.retain(|directory| !root.hidden.contains(directory));
        queue.extend(directories);
        Some(KnownDirectory {
            path: inside.to_path_buf(),
            identity: status.identity,
            changed_ns: u64::try_from(status.changed_ns).unwrap_or_default(),
        })
    }
}

/// Where a `.git` file or a protected link points to, as far as that exists. The result is only ever made read-only.
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
