//! What may be touched. One value says it for a command in the sandbox and for the file tools of this process alike, so
//! that neither can do what the other may not.
//!
//! It speaks of paths that are absolute and have no links left in them; finding those is the work of whoever asks.

use crate::protected::{Protection, protection_of_path};
use std::path::{Path, PathBuf};

/// What may be touched: the workspace, and what the person opened besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The folder the agents work in: read and written.
    pub workspace: PathBuf,
    /// More files and folders that may be read.
    pub read: Vec<PathBuf>,
    /// More folders that may be written.
    pub write: Vec<PathBuf>,
    /// Those of the writable folders in which no name is protected: nobody works there, so no other program acts on it.
    pub unprotected: Vec<PathBuf>,
    /// Never written, wherever they lie: what decides over lango itself, or is run by others later.
    pub kept: Vec<PathBuf>,
    /// Neither read nor seen, wherever they lie: lango's data, and the keys of the person.
    pub hidden: Vec<PathBuf>,
    /// A folder, the user's home, whose direct entries with a leading dot are hidden too, also those created later. A
    /// path inside of such an entry that is opened by its own name in `read` or `write` stays open.
    pub hide_dotfiles_in: Option<PathBuf>,
    /// Whether commands reach the network.
    pub network: Network,
    /// Whether commands may create git repositories.
    pub allow_git_init: bool,
}

/// Whether commands reach the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// No address at all, this machine's own included.
    None,
    /// A network of its own that has nothing in it but two listeners on 127.0.0.1, on [`PROXY_PORT`](crate::PROXY_PORT) and
    /// [`FILES_PORT`](crate::FILES_PORT). Whoever started the command accepts on them, with
    /// [`Child::listeners`](crate::Child::listeners). Needs bubblewrap, so Linux.
    Proxied,
    /// Every address that this machine reaches.
    Host,
}

/// What may be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing; it is as if it were not there.
    None,
    /// Looking at it.
    Read,
    /// Looking at it; changing it only with a file tool, which asks the user each time.
    Guarded,
    /// Looking at it and changing it.
    Write,
}

impl Policy {
    /// A workspace alone.
    pub fn of(workspace: PathBuf) -> Self {
        Self {
            workspace,
            read: Vec::new(),
            write: Vec::new(),
            unprotected: Vec::new(),
            kept: Vec::new(),
            hidden: Vec::new(),
            hide_dotfiles_in: None,
            network: Network::None,
            allow_git_init: false,
        }
    }

    /// What may be done with a path that is absolute and free of links.
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
            return match below(&self.read) {
                true => Access::Read,
                false => Access::None,
            };
        };
        if below(&self.kept) {
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

    /// Whether a path is hidden because it is, or lies in, an entry of [`hide_dotfiles_in`](Self::hide_dotfiles_in)
    /// whose name begins with a dot.
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

    /// The folders whose content may be changed, the workspace first.
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
        policy.kept = vec!["/home/ada/work/settings.toml".into()];
        policy.hidden = vec!["/home/ada/.ssh".into(), "/home/ada/work/db".into()];
        policy
    }

    #[test]
    fn the_workspace_and_opened_folders_are_reached_and_nothing_else() {
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
    fn kept_and_hidden_things_stay_so_inside_the_workspace() {
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
    fn a_workspace_inside_of_a_repository_folder_is_judged_by_what_is_below_it() {
        let policy = Policy::of("/x/.git/worktrees".into());
        assert_eq!(
            policy.access(Path::new("/x/.git/worktrees/a")),
            Access::Write
        );
    }
}
