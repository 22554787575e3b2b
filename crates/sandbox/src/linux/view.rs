//! What a command sees of the disk: a policy turned into a list of paths, parents before what lies in them.
//!
//! Reads go by an allow-list. The system's programs are on it, a handful of files of `/etc`, and what the policy opens;
//! all else does not exist for a command. What is kept or hidden inside of something open is carved out of it again.

use crate::{Access, Network, Policy, Profile};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One path and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Show {
    /// To be read and run.
    Read,
    /// To be read, run and changed.
    Write,
    /// To be read and run, though what it lies in may be changed.
    Keep,
    /// As what it lies in, but not to be moved, for something kept or hidden is below it.
    Pin,
    /// An empty folder in its place.
    HideFolder,
    /// Something unreadable in its place.
    HideFile,
}

/// What a command sees, in the order of the paths, so that each comes after what it lies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) items: BTreeMap<PathBuf, Show>,
}

/// Programs and what they need to start.
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

/// What programs look up about the machine; none of it is secret.
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

/// What programs need besides to reach the network.
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

/// What programs need to resolve names themselves; a proxy does it for its clients.
const RESOLVER_FILES: &[&str] = &["/etc/gai.conf", "/etc/resolv.conf"];

/// The settings of a browser, an administrator's rules for it among them.
const BROWSER_FILES: &[&str] = &["/etc/chromium", "/etc/chromium.d", "/etc/opt/chrome"];

impl View {
    /// The system's programs and nothing else.
    pub(crate) fn system() -> Self {
        let system = SYSTEM_FOLDERS.iter().chain(SYSTEM_FILES).map(PathBuf::from);
        let items = system.filter(|path| path.exists());
        Self {
            items: items.map(|path| (path, Show::Read)).collect(),
        }
    }

    /// What a policy shows to a command of a profile, given the protected files in its writable folders.
    pub(crate) fn of(
        policy: &Policy,
        profile: Profile,
        protected: &[PathBuf],
        dotfiles: &[PathBuf],
    ) -> Self {
        let mut items = Self::system().items;
        let browser = BROWSER_FILES.iter().filter(|_| profile == Profile::Browser);
        items.extend(browser.map(|path| (PathBuf::from(path), Show::Read)));
        let network: &[&[&str]] = match policy.network {
            Network::None => &[],
            Network::Proxied => &[NETWORK_FILES],
            Network::Host => &[NETWORK_FILES, RESOLVER_FILES],
        };
        for path in network.iter().copied().flatten() {
            items.insert(PathBuf::from(path), Show::Read);
        }
        for path in policy.read.iter().chain(policy.writable()) {
            match policy.access(path) {
                Access::None => {}
                Access::Read | Access::Guarded => drop(items.insert(path.clone(), Show::Read)),
                Access::Write => drop(items.insert(path.clone(), Show::Write)),
            }
        }
        let in_reach = |path: &Path| policy.writable().any(|root| path.starts_with(root));
        for path in protected.iter().chain(&policy.kept) {
            // A folder that was opened for writing by its own path stays so.
            if in_reach(path) && items.get(path) != Some(&Show::Write) {
                items.insert(path.clone(), Show::Keep);
            }
        }
        items.retain(|path, show| path.exists() && (*show != Show::Keep || !path.is_symlink()));
        let mut view = Self { items };
        view.drop_what_is_shown_already();
        view.hide_dotfiles(policy, dotfiles);
        for path in &policy.hidden {
            view.hide(path);
        }
        let kept: Vec<PathBuf> = view.paths(Show::Keep).cloned().collect();
        for path in policy.hidden.iter().chain(&kept) {
            view.pin(path);
        }
        view
    }

    /// The paths that are shown one way.
    pub(crate) fn paths(&self, wanted: Show) -> impl Iterator<Item = &PathBuf> {
        self.items
            .iter()
            .filter(move |(_, show)| **show == wanted)
            .map(|(path, _)| path)
    }

    /// Whether a command can see this path.
    pub(crate) fn shows(&self, path: &Path) -> bool {
        let nearest = path.ancestors().find_map(|folder| self.items.get(folder));
        matches!(
            nearest,
            Some(Show::Read | Show::Write | Show::Keep | Show::Pin)
        )
    }

    /// What is to be read and lies in something that is to be read needs no mount of its own, and could not have one.
    fn drop_what_is_shown_already(&mut self) {
        let read: Vec<PathBuf> = self.paths(Show::Read).cloned().collect();
        let is_below = |path: &PathBuf| {
            let above = path
                .ancestors()
                .skip(1)
                .find_map(|above| self.items.get(above));
            above == Some(&Show::Read)
        };
        let below: Vec<PathBuf> = read.into_iter().filter(is_below).collect();
        for path in below {
            self.items.remove(&path);
        }
    }

    /// Holds in place the folders on the way to something kept or hidden. Otherwise a command could move one of them, and
    /// the next command would find the thing by another path, or something else by this one.
    fn pin(&mut self, path: &Path) {
        if !self.items.contains_key(path) {
            return;
        }
        for folder in path.ancestors().skip(1) {
            let above = folder.ancestors().find_map(|above| self.items.get(above));
            match (self.items.contains_key(folder), above) {
                (false, Some(Show::Write | Show::Pin)) => {
                    self.items.insert(folder.to_path_buf(), Show::Pin);
                }
                _ => return,
            }
        }
    }

    /// Takes the dotfiles of the home out of sight, but not what the policy opens inside of them by its own name.
    fn hide_dotfiles(&mut self, policy: &Policy, dotfiles: &[PathBuf]) {
        for dotfile in dotfiles {
            let items = self.items.iter();
            let opened: Vec<(PathBuf, Show)> = items
                .filter(|(path, _)| path.starts_with(dotfile) && !policy.is_hidden_dotfile(path))
                .map(|(path, show)| (path.clone(), *show))
                .collect();
            self.hide(dotfile);
            self.items.extend(opened);
        }
    }

    /// Takes a path and all below it out of sight. What no one sees needs no mask, and one that does not exist cannot
    /// have any without leaving a trace.
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
        let show = match metadata.is_dir() {
            true => Show::HideFolder,
            false => Show::HideFile,
        };
        self.items.insert(path.to_path_buf(), show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewFiles;
    use crate::clean_up::scan::Scan;

    /// A home with a workspace, a repository in it, and keys.
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
        let scan = Scan::take(policy, NewFiles::Remove, None).unwrap();
        View::of(policy, Profile::Command, &scan.protected, &scan.dotfiles)
    }

    #[test]
    fn what_is_kept_is_covered_and_the_way_to_it_held() {
        let (_folder, root) = home();
        let view = view(&Policy::of(root.join("work")));
        let show = |path: &str| view.items.get(&root.join(path)).copied();
        assert_eq!(show("work"), Some(Show::Write));
        assert_eq!(show("work/.git"), Some(Show::Keep));
        assert_eq!(show("work/a/.git"), Some(Show::Keep));
        assert_eq!(show("work/a"), Some(Show::Pin));
        assert!(!view.shows(&root.join("data")));
    }

    #[test]
    fn what_is_hidden_is_covered_only_where_something_open_would_show_it() {
        let (_folder, root) = home();
        let mut policy = Policy::of(root.join("work"));
        policy.read = vec![root.join("data")];
        policy.hidden = vec![
            root.join("data/deep/secret"),
            root.join("keys"),
            root.join("work/none"),
        ];
        let view = view(&policy);
        let show = |path: &str| view.items.get(&root.join(path)).copied();
        assert_eq!(show("data/deep/secret"), Some(Show::HideFolder));
        assert_eq!(show("keys"), None);
        assert_eq!(show("work/none"), None);
        assert!(!view.shows(&root.join("data/deep/secret/file")));
        assert!(view.shows(&root.join("data/deep")));
    }

    #[test]
    fn dotfiles_of_the_home_are_covered_and_what_is_opened_inside_of_them_is_not() {
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
        let show = |path: &str| view.items.get(&root.join(path)).copied();
        assert_eq!(show(".ssh"), Some(Show::HideFolder));
        assert_eq!(show(".config"), Some(Show::HideFolder));
        assert_eq!(show(".netrc"), Some(Show::HideFile));
        assert!(!view.shows(&root.join(".config/lango/lango.toml")));
        assert!(view.shows(&skill.join("SKILL.md")));
        assert!(view.shows(&root.join("work")));
    }

    #[test]
    fn keeping_something_does_not_show_it() {
        let (_folder, root) = home();
        let mut policy = Policy::of(root.join("work"));
        policy.kept = vec![root.join("config")];
        assert!(!view(&policy).shows(&root.join("config")));
    }

    #[test]
    fn a_folder_opened_inside_of_what_is_kept_can_be_written() {
        let (_folder, root) = home();
        let inside = root.join("work/.git/hooks");
        fs::create_dir(&inside).unwrap();
        let mut policy = Policy::of(root.join("work"));
        policy.write = vec![inside.clone()];
        let view = view(&policy);
        assert_eq!(view.items.get(&inside), Some(&Show::Write));
        assert_eq!(view.items.get(&root.join("work/.git")), Some(&Show::Keep));
    }
}
