//! The file system that a command sees: a policy converted to a list of paths, parents first.
//!
//! Only listed paths are visible: the system's programs, a few files of `/etc`, and what the policy opens. Read-only
//! and hidden paths inside of opened folders are listed separately.

use crate::{Access, Network, Policy, SandboxProfile};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How a path is visible to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Visibility {
    /// Readable and executable.
    Read,
    /// Readable, executable and writable.
    Write,
    /// Readable and executable, inside of a writable folder.
    Protected,
    /// Like its parent folder, but cannot be moved, because it contains a read-only or hidden path.
    Pinned,
    /// Replaced by an empty folder.
    HiddenFolder,
    /// Replaced by an unreadable file.
    HiddenFile,
}

/// The visible paths, sorted, so that each comes after its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) items: BTreeMap<PathBuf, Visibility>,
}

/// Programs and the libraries they need.
const SYSTEM_FOLDERS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// Files that programs read about the machine. None of them is secret.
const SYSTEM_FILES: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/profile",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Further files that programs need to use the network.
const NETWORK_FILES: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// Files that programs need to resolve host names themselves. Not needed with a proxy.
const RESOLVER_FILES: &[&str] = &["/etc/gai.conf", "/etc/resolv.conf"];

/// The system-wide settings of browsers, including the administrator's policies.
const BROWSER_FILES: &[&str] = &["/etc/chromium", "/etc/chromium.d", "/etc/opt/chrome"];

impl View {
    /// Creates a view that shows only the system's programs.
    pub(crate) fn system() -> Self {
        let system = SYSTEM_FOLDERS.iter().chain(SYSTEM_FILES).map(PathBuf::from);
        let items = system.filter(|path| path.exists());
        Self {
            items: items.map(|path| (path, Visibility::Read)).collect(),
        }
    }

    /// Creates the view of a command, given the protected files in the policy's writable folders and the hidden
    /// dotfiles.
    pub(crate) fn of(
        policy: &Policy,
        profile: SandboxProfile,
        protected: &[PathBuf],
        dotfiles: &[PathBuf],
    ) -> Self {
        let mut items = Self::system().items;
        let browser = BROWSER_FILES
            .iter()
            .filter(|_| profile == SandboxProfile::Browser);
        items.extend(browser.map(|path| (PathBuf::from(path), Visibility::Read)));
        let network: &[&[&str]] = match policy.network {
            Network::None => &[],
            Network::Proxied => &[NETWORK_FILES],
            Network::Host => &[NETWORK_FILES, RESOLVER_FILES],
        };
        for path in network.iter().copied().flatten() {
            items.insert(PathBuf::from(path), Visibility::Read);
        }
        for path in policy.read.iter().chain(policy.writable()) {
            let visibility = match policy.access(path) {
                Access::None => continue,
                Access::Read | Access::Guarded => Visibility::Read,
                Access::Write => Visibility::Write,
            };
            items.insert(path.clone(), visibility);
        }
        let in_reach = |path: &Path| policy.writable().any(|root| path.starts_with(root));
        for path in protected.iter().chain(&policy.read_only) {
            // A folder that the policy itself opens for writing stays writable.
            if in_reach(path) && items.get(path) != Some(&Visibility::Write) {
                items.insert(path.clone(), Visibility::Protected);
            }
        }
        items.retain(|path, visibility| {
            path.exists() && (*visibility != Visibility::Protected || !path.is_symlink())
        });
        let mut view = Self { items };
        view.drop_redundant_paths();
        view.hide_dotfiles(policy, dotfiles);
        for path in &policy.hidden {
            view.hide(path);
        }
        let protected: Vec<PathBuf> = view.paths(Visibility::Protected).cloned().collect();
        for path in policy.hidden.iter().chain(&protected) {
            view.pin(path);
        }
        view
    }

    /// Returns the paths with this visibility.
    pub(crate) fn paths(&self, wanted: Visibility) -> impl Iterator<Item = &PathBuf> {
        self.items
            .iter()
            .filter(move |(_, visibility)| **visibility == wanted)
            .map(|(path, _)| path)
    }

    /// Whether a command can see this path.
    pub(crate) fn shows(&self, path: &Path) -> bool {
        let nearest = path.ancestors().find_map(|folder| self.items.get(folder));
        matches!(
            nearest,
            Some(Visibility::Read | Visibility::Write | Visibility::Protected | Visibility::Pinned)
        )
    }

    /// Drops readable paths inside of readable folders: they need no separate mount, and could not have one.
    fn drop_redundant_paths(&mut self) {
        let read: Vec<PathBuf> = self.paths(Visibility::Read).cloned().collect();
        let is_below = |path: &PathBuf| {
            let above = path
                .ancestors()
                .skip(1)
                .find_map(|above| self.items.get(above));
            above == Some(&Visibility::Read)
        };
        let below: Vec<PathBuf> = read.into_iter().filter(is_below).collect();
        for path in below {
            self.items.remove(&path);
        }
    }

    /// Pins the parent folders of a read-only or hidden path. Otherwise a command could move one of them, and the next
    /// command would find the protected file under another path, or another file under this path.
    fn pin(&mut self, path: &Path) {
        if !self.items.contains_key(path) {
            return;
        }
        for folder in path.ancestors().skip(1) {
            let above = folder.ancestors().find_map(|above| self.items.get(above));
            match (self.items.contains_key(folder), above) {
                (false, Some(Visibility::Write | Visibility::Pinned)) => {
                    self.items.insert(folder.to_path_buf(), Visibility::Pinned);
                }
                _ => return,
            }
        }
    }

    /// Hides the dotfiles of the home, except paths inside of them that the policy opens.
    fn hide_dotfiles(&mut self, policy: &Policy, dotfiles: &[PathBuf]) {
        for dotfile in dotfiles {
            let items = self.items.iter();
            let opened: Vec<(PathBuf, Visibility)> = items
                .filter(|(path, _)| path.starts_with(dotfile) && !policy.is_hidden_dotfile(path))
                .map(|(path, visibility)| (path.clone(), *visibility))
                .collect();
            self.hide(dotfile);
            self.items.extend(opened);
        }
    }

    /// Hides a path and everything below it. An invisible path needs no mask, and a path that does not exist cannot be
    /// masked without leaving a file on disk.
    fn hide(&mut self, path: &Path) {
        self.items.retain(|shown, _| !shown.starts_with(path));
        if !self.shows(path) {
            return;
        }
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return;
        };
        if metadata.is_symlink() {
            return;
        }
        let visibility = if metadata.is_dir() {
            Visibility::HiddenFolder
        } else {
            Visibility::HiddenFile
        };
        self.items.insert(path.to_path_buf(), visibility);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewFiles;
    use crate::clean_up::scan::Scan;

    /// Creates a home with a workspace, repositories in it, and keys.
    fn home() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for path in [
            "work/.git",
            "work/a/.git",
            "data/deep/secret",
            "config",
            "keys",
        ] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        (folder, root)
    }

    fn view(policy: &Policy) -> View {
        let scan = Scan::run(policy, NewFiles::Remove, None).unwrap();
        View::of(
            policy,
            SandboxProfile::Command,
            &scan.protected,
            &scan.dotfiles,
        )
    }

    #[test]
    fn protected_paths_are_covered_and_their_parents_pinned() {
        let (_folder, root) = home();
        let view = view(&Policy::of(root.join("work")));
        let visibility = |path: &str| view.items.get(&root.join(path)).copied();
        assert_eq!(visibility("work"), Some(Visibility::Write));
        assert_eq!(visibility("work/.git"), Some(Visibility::Protected));
        assert_eq!(visibility("work/a/.git"), Some(Visibility::Protected));
        assert_eq!(visibility("work/a"), Some(Visibility::Pinned));
        assert!(!view.shows(&root.join("data")));
    }

    #[test]
    fn hidden_paths_are_covered_only_if_they_would_be_visible() {
        let (_folder, root) = home();
        let mut policy = Policy::of(root.join("work"));
        policy.read = vec![root.join("data")];
        policy.hidden = vec![
            root.join("data/deep/secret"),
            root.join("keys"),
            root.join("work/none"),
        ];
        let view = view(&policy);
        let visibility = |path: &str| view.items.get(&root.join(path)).copied();
        assert_eq!(
            visibility("data/deep/secret"),
            Some(Visibility::HiddenFolder)
        );
        assert_eq!(visibility("keys"), None);
        assert_eq!(visibility("work/none"), None);
        assert!(!view.shows(&root.join("data/deep/secret/file")));
        assert!(view.shows(&root.join("data/deep")));
    }

    #[test]
    fn dotfiles_of_the_home_are_covered_but_opened_paths_inside_are_not() {
        let (_folder, root) = home();
        let skill = root.join(".config/lango/skills/greet");
        fs::create_dir_all(&skill).unwrap();
        fs::create_dir_all(root.join(".ssh")).unwrap();
        fs::write(root.join(".netrc"), "secret").unwrap();
        let mut policy = Policy::of(root.clone());
        policy.hide_dotfiles_in = Some(root.clone());
        policy.hidden = vec![root.join(".ssh"), root.join(".config/gh")];
        policy.read = vec![skill.clone()];
        let view = view(&policy);
        let visibility = |path: &str| view.items.get(&root.join(path)).copied();
        assert_eq!(visibility(".ssh"), Some(Visibility::HiddenFolder));
        assert_eq!(visibility(".config"), Some(Visibility::HiddenFolder));
        assert_eq!(visibility(".netrc"), Some(Visibility::HiddenFile));
        assert!(!view.shows(&root.join(".config/lango/lango.toml")));
        assert!(view.shows(&skill.join("SKILL.md")));
        assert!(view.shows(&root.join("work")));
    }

    #[test]
    fn a_read_only_path_is_not_made_visible() {
        let (_folder, root) = home();
        let mut policy = Policy::of(root.join("work"));
        policy.read_only = vec![root.join("config")];
        assert!(!view(&policy).shows(&root.join("config")));
    }

    #[test]
    fn a_folder_opened_inside_of_a_protected_one_is_writable() {
        let (_folder, root) = home();
        let inside = root.join("work/.git/hooks");
        fs::create_dir(&inside).unwrap();
        let mut policy = Policy::of(root.join("work"));
        policy.write = vec![inside.clone()];
        let view = view(&policy);
        assert_eq!(view.items.get(&inside), Some(&Visibility::Write));
        assert_eq!(
            view.items.get(&root.join("work/.git")),
            Some(&Visibility::Protected)
        );
    }
}
