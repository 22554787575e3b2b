//! The policy: what commands and file tools may touch. Both use the same value, so they have the same limits.
//!
//! All paths in a policy are absolute and free of links; callers must resolve links before they ask.

use crate::protected::{Protection, protection_of_path};
use std::path::{Path, PathBuf};

/// What may be touched: the workspace, and further paths that the user opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The folder that the agents work in; readable and writable.
    pub workspace: PathBuf,
    /// Further readable files and folders.
    pub read: Vec<PathBuf>,
    /// Further writable folders.
    pub write: Vec<PathBuf>,
    /// Writable folders in which no names are protected, because users and other programs do not work there.
    pub unprotected: Vec<PathBuf>,
    /// Paths that are never written, wherever they are: for example files that configure lango itself.
    pub read_only: Vec<PathBuf>,
    /// Paths that are invisible, wherever they are: lango's data and the user's keys.
    pub hidden: Vec<PathBuf>,
    /// The user's home, whose direct entries with a leading dot are hidden too, including those created later. A path
    /// inside of a dotfile stays open if it is itself listed in `read` or `write`.
    pub hide_dotfiles_in: Option<PathBuf>,
    pub network: Network,
    /// Whether commands may create git repositories.
    pub allow_git_init: bool,
}

/// The network access of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// No address at all, not even this machine's own.
    None,
    /// A separate network with nothing but two listeners on 127.0.0.1, on [`PROXY_PORT`](crate::PROXY_PORT) and
    /// [`FILES_PORT`](crate::FILES_PORT). The caller gets them from [`Child::listeners`](crate::Child::listeners).
    /// Needs bubblewrap, and therefore Linux.
    Proxied,
    /// Every address that this machine can reach.
    Host,
}

/// What may be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing; the path seems not to exist.
    None,
    Read,
    /// Reading. Only file tools can change the path, and they ask the user each time.
    Guarded,
    /// Reading and changing.
    Write,
}

impl Policy {
    /// Creates a policy that opens only a workspace.
    pub fn of(workspace: PathBuf) -> Self {
        Self {
            workspace,
            read: Vec::new(),
            write: Vec::new(),
            unprotected: Vec::new(),
            read_only: Vec::new(),
            hidden: Vec::new(),
            hide_dotfiles_in: None,
            network: Network::None,
            allow_git_init: false,
        }
    }

    /// Returns what may be done with a path that is absolute and free of links.
    pub fn access(&self, path: &Path) -> Access {
        let below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        if below(&self.hidden) || self.is_hidden_dotfile(path) {
            return Access::None;
        }
        let Some(root) = self
            .writable()
            .filter(|folder| path.starts_with(folder))
            .max_by_key(|folder| folder.as_os_str().len())
        else {
            return if below(&self.read) {
                Access::Read
            } else {
                Access::None
            };
        };
        if below(&self.read_only) {
            return Access::Read;
        }
        if self.unprotected.contains(root) {
            return Access::Write;
        }
        match protection_of_path(path.strip_prefix(root).unwrap_or(path)) {
            Some(Protection::Locked) => Access::Read,
            Some(Protection::Guarded) => Access::Guarded,
            None => Access::Write,
        }
    }

    /// Whether a path is hidden because it is, or lies in, a dotfile of [`hide_dotfiles_in`](Self::hide_dotfiles_in).
    pub fn is_hidden_dotfile(&self, path: &Path) -> bool {
        let Some(home) = &self.hide_dotfiles_in else {
            return false;
        };
        let Some(name) = path
            .strip_prefix(home)
            .ok()
            .and_then(|rest| rest.iter().next())
        else {
            return false;
        };
        if !name.as_encoded_bytes().starts_with(b".") {
            return false;
        }
        let entry = home.join(name);
        let mut opened = self.writable().chain(&self.read);
        !opened.any(|root| root.starts_with(&entry) && path.starts_with(root))
    }

    /// Returns the writable folders, the workspace first.
    pub fn writable(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.workspace).chain(&self.write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::of("/home/ada/work".into());
        policy.read = vec!["/opt/data".into()];
        policy.write = vec!["/srv/out".into()];
        policy.read_only = vec!["/home/ada/work/settings.toml".into()];
        policy.hidden = vec!["/home/ada/.ssh".into(), "/home/ada/work/db".into()];
        policy
    }

    #[test]
    fn only_the_workspace_and_opened_folders_are_accessible() {
        let access = |path: &str| policy().access(Path::new(path));
        assert_eq!(access("/home/ada/work"), Access::Write);
        assert_eq!(access("/home/ada/work/a/b"), Access::Write);
        assert_eq!(access("/srv/out/x"), Access::Write);
        assert_eq!(access("/opt/data/x"), Access::Read);
        assert_eq!(access("/home/ada"), Access::None);
        assert_eq!(access("/home/ada/workshop"), Access::None);
        assert_eq!(access("/etc/passwd"), Access::None);
    }

    #[test]
    fn read_only_and_hidden_paths_stay_so_inside_the_workspace() {
        let access = |path: &str| policy().access(Path::new(path));
        assert_eq!(access("/home/ada/work/.git/hooks/pre-commit"), Access::Read);
        assert_eq!(access("/home/ada/work/sub/.GIT/config"), Access::Read);
        assert_eq!(access("/home/ada/work/.env.local"), Access::Read);
        assert_eq!(access("/home/ada/work/lango.toml"), Access::Read);
        assert_eq!(access("/home/ada/work/settings.toml"), Access::Read);
        assert_eq!(access("/home/ada/work/db/lango.db"), Access::None);
        assert_eq!(access("/home/ada/work/.gitignore"), Access::Write);
        assert_eq!(access("/home/ada/work/environment"), Access::Write);
        assert_eq!(access("/home/ada/work/a/.vscode/x"), Access::Guarded);
    }

    #[test]
    fn dotfiles_of_the_home_are_hidden_by_name_whether_they_exist_or_not() {
        let mut policy = Policy::of("/home/ada".into());
        policy.hide_dotfiles_in = Some("/home/ada".into());
        policy.read = vec!["/home/ada/.config/lango/skills/greet".into()];
        let access = |path: &str| policy.access(Path::new(path));
        assert_eq!(access("/home/ada"), Access::Write);
        assert_eq!(access("/home/ada/notes/.hidden"), Access::Write);
        assert_eq!(access("/home/ada/.netrc"), Access::None);
        assert_eq!(access("/home/ada/.created-later/x"), Access::None);
        assert_eq!(access("/home/ada/.config/gh/hosts.yml"), Access::None);
        assert_ne!(
            access("/home/ada/.config/lango/skills/greet/SKILL.md"),
            Access::None
        );
        assert_eq!(access("/home/ada/.config/lango/skills/other"), Access::None);
    }

    #[test]
    fn protected_names_above_the_workspace_do_not_count() {
        let policy = Policy::of("/x/.git/worktrees".into());
        assert_eq!(
            policy.access(Path::new("/x/.git/worktrees/a")),
            Access::Write
        );
    }
}
