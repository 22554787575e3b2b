//! Who runs a command.

use super::Mode;
use crate::LaunchError;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who runs a command, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    /// Root, without capabilities, and inside under another name.
    Root,
    /// The user that lango is, who is not root.
    Same,
    /// The owner of the workspace. Without capabilities root could not work in it; so lango as root becomes its owner.
    Owner { user: u32, group: u32 },
}

impl User {
    pub(super) fn of(mode: Mode, workspace: &Path) -> Result<Self, LaunchError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Same);
        }
        if mode == Mode::LandlockOnly {
            return Err(LaunchError::NoSandbox {
                why: "without bubblewrap a command of root is not held; install it, for example with \
                      `apt install bubblewrap`, or run lango as another user"
                    .to_string(),
            });
        }
        let workspace =
            std::fs::metadata(workspace).map_err(LaunchError::system("look at the workspace"))?;
        Ok(match workspace.uid() {
            0 => Self::Root,
            user => Self::Owner {
                user,
                group: workspace.gid(),
            },
        })
    }
}
