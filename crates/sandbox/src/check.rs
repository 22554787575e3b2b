//! What no policy can open safely, refused before anything is started.

use crate::{LaunchError, Policy};
use std::fs;
use std::path::Path;

/// Folders that no command may write in or around.
const NEVER_WRITABLE: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/sys", "/dev", "/run", "/var", "/boot",
];

/// Refuses what cannot be opened safely.
pub(crate) fn policy(policy: &Policy) -> Result<(), LaunchError> {
    let refuse = |path: &Path, problem: &str| {
        Err(LaunchError::Policy {
            path: path.to_path_buf(),
            problem: problem.to_string(),
        })
    };
    let all = policy
        .writable()
        .chain(&policy.read)
        .chain(&policy.kept)
        .chain(&policy.hidden);
    for path in all {
        if !path.is_absolute() {
            return refuse(path, "it is not an absolute path");
        }
    }
    for path in policy.writable() {
        let real = fs::canonicalize(path).map_err(|cause| LaunchError::Policy {
            path: path.clone(),
            problem: format!("{cause}; choose a folder that exists"),
        })?;
        if real != *path {
            return refuse(path, "it leads over a link; give the folder it leads to");
        }
        if !real.is_dir() {
            return refuse(path, "it is not a folder");
        }
        for system in NEVER_WRITABLE.iter().map(Path::new) {
            if system.starts_with(path) {
                return refuse(
                    path,
                    "it holds folders of the system; choose one for the work alone",
                );
            }
        }
        for system in ["/proc", "/sys", "/dev", "/run"] {
            if path.starts_with(system) {
                return refuse(path, "it belongs to the system; choose another folder");
            }
        }
    }
    match policy.read.iter().find(|path| path.parent().is_none()) {
        Some(root) => refuse(
            root,
            "it is the whole disk; open the folders that are needed",
        ),
        None => Ok(()),
    }
}
