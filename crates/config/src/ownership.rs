//! Ownership checks. A project file that another user owns or can change is ignored, as git ignores such a
//! repository. Otherwise a file that anyone left in a shared directory such as `/tmp` would configure lango for all
//! users working below it.

use super::process_env::ProcessEnv;
use std::ffi::OsStr;
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The permission bits that matter here.
const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_ALL: u32 = 0o002;
/// In a directory with this bit only the owner of an entry can rename or delete it.
const STICKY: u32 = 0o1000;

/// The user whose files are accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    user: u32,
    group: u32,
    /// The user who started lango with `sudo`, if this process runs as root.
    sudo_user: Option<u32>,
}

/// A file or directory of a project that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignPath {
    pub path: PathBuf,
    pub reason: ForeignReason,
}

/// Why a file or directory is not under the user's sole control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForeignReason {
    /// Another user owns it or its parent directory.
    Owner {
        /// The path that the other user owns.
        path: PathBuf,
        /// The user id.
        user: u32,
    },
    /// Other users can change it, or replace entries in its parent directory.
    Writable {
        /// The path that they can change.
        path: PathBuf,
    },
    /// The owner could not be determined.
    Unreadable {
        /// The error of the operating system.
        cause: String,
    },
}

impl fmt::Display for ForeignReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner { path, user } => {
                write!(
                    formatter,
                    "`{}` belongs to another user (uid {user})",
                    path.display()
                )
            }
            Self::Writable { path } => {
                write!(formatter, "other users can change `{}`", path.display())
            }
            Self::Unreadable { cause } => {
                write!(formatter, "its owner could not be determined: {cause}")
            }
        }
    }
}

impl Owner {
    /// Returns the user of this process.
    pub(crate) fn of_process(process_env: &ProcessEnv) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let variable = process_env.env.get(OsStr::new("SUDO_UID"));
        let sudo_user = variable.and_then(|number| number.to_str()?.parse().ok());
        Self {
            user,
            group: rustix::process::getegid().as_raw(),
            // Users other than root could set the variable to any number.
            sudo_user: sudo_user.filter(|_| user == 0),
        }
    }

    /// Returns the user of this process, also if `sudo` started it: a file that this process replaces becomes its own.
    pub(crate) fn without_sudo() -> Self {
        Self {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
            sudo_user: None,
        }
    }

    /// Returns why this path is not under the user's sole control, judging by the path itself and its parent
    /// directory.
    pub(crate) fn foreign_reason(&self, path: &Path) -> Option<ForeignReason> {
        let folder = path.parent().unwrap_or(path);
        let checked = self.check(path).and_then(|own| match own {
            Some(reason) => Ok(Some(reason)),
            None => self.check_folder(folder),
        });
        checked.unwrap_or_else(|error| {
            Some(ForeignReason::Unreadable {
                cause: error.to_string(),
            })
        })
    }

    /// Checks the entry itself and, if it is a link, its target.
    fn check(&self, path: &Path) -> io::Result<Option<ForeignReason>> {
        let link = path.symlink_metadata()?;
        if !self.is_own(&link) {
            return Ok(Some(owned_by_other(path, &link)));
        }
        Ok(self.check_metadata(path, &path.metadata()?))
    }

    /// Checks the parent directory. A shared directory with the sticky bit passes: there only the owner can replace
    /// an entry.
    fn check_folder(&self, folder: &Path) -> io::Result<Option<ForeignReason>> {
        let metadata = folder.metadata()?;
        let is_shared = metadata.mode() & WRITABLE_BY_ALL != 0 && metadata.mode() & STICKY != 0;
        if is_shared {
            Ok(None)
        } else {
            Ok(self.check_metadata(folder, &metadata))
        }
    }

    fn check_metadata(&self, path: &Path, metadata: &Metadata) -> Option<ForeignReason> {
        if !self.is_own(metadata) {
            return Some(owned_by_other(path, metadata));
        }
        let mode = metadata.mode();
        // On systems where each user has a private group, files are writable by that group.
        let by_others = mode & WRITABLE_BY_GROUP != 0 && metadata.gid() != self.group;
        (by_others || mode & WRITABLE_BY_ALL != 0).then(|| ForeignReason::Writable {
            path: path.to_path_buf(),
        })
    }

    fn is_own(&self, metadata: &Metadata) -> bool {
        metadata.uid() == self.user || Some(metadata.uid()) == self.sudo_user
    }
}

fn owned_by_other(path: &Path, metadata: &Metadata) -> ForeignReason {
    ForeignReason::Owner {
        path: path.to_path_buf(),
        user: metadata.uid(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn owner_of(path: &Path) -> Owner {
        let metadata = path.metadata().unwrap();
        Owner {
            user: metadata.uid(),
            group: metadata.gid(),
            sudo_user: None,
        }
    }

    #[test]
    fn a_file_and_its_folder_must_both_be_the_users() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lango.toml");
        fs::write(&file, "").unwrap();
        let owner = owner_of(&file);
        assert_eq!(owner.foreign_reason(&file), None);
        let other = Owner {
            user: owner.user + 1,
            ..owner
        };
        assert!(matches!(
            other.foreign_reason(&file),
            Some(ForeignReason::Owner { path, user }) if path == file && user == owner.user
        ));
        let with_sudo = Owner {
            sudo_user: Some(owner.user),
            ..other
        };
        assert_eq!(with_sudo.foreign_reason(&file), None);
    }

    #[test]
    fn a_file_or_folder_that_others_can_change_is_foreign() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lango.toml");
        fs::write(&file, "").unwrap();
        let owner = owner_of(&file);
        let writable = |path: &Path| Some(ForeignReason::Writable { path: path.into() });
        set_mode(&file, 0o666);
        assert_eq!(owner.foreign_reason(&file), writable(&file));
        set_mode(&file, 0o664);
        assert_eq!(owner.foreign_reason(&file), None);
        let in_other_group = Owner {
            group: owner.group + 1,
            ..owner
        };
        assert_eq!(in_other_group.foreign_reason(&file), writable(&file));
        set_mode(&file, 0o644);
        set_mode(folder.path(), 0o777);
        assert_eq!(owner.foreign_reason(&file), writable(folder.path()));
        set_mode(folder.path(), 0o1777);
        assert_eq!(owner.foreign_reason(&file), None);
    }
}
