//! The operating system user that a command runs as.

use super::Mode;
use crate::LaunchError;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The user that a command runs as, seen from outside the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    /// Root without capabilities, with another user id inside.
    Root,
    /// The user of the lango process, who is not root.
    Same,
    /// The owner of the workspace. Used if lango runs as root: root without capabilities could not work in the
    /// workspace.
    Owner { user: u32, group: u32 },
}

impl User {
    pub(super) fn of(mode: Mode, workspace: &Path) -> Result<Self, LaunchError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Same);
        }
        if mode == Mode::LandlockOnly {
            return Err(LaunchError::NoSandbox {
                why: "commands of root cannot be confined without bubblewrap; install it, for example with \
                      `apt install bubblewrap`, or run lango as another user"
                    .to_string(),
            });
        }
        let workspace =
            std::fs::metadata(workspace).map_err(LaunchError::system("read the workspace"))?;
        Ok(match workspace.uid() {
            0 => Self::Root,
            user => Self::Owner {
                user,
                group: workspace.gid(),
            },
        })
    }
}
