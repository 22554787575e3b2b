//! Validates a policy before a command starts: refuses paths that cannot be opened safely.

use crate::{LaunchError, Policy};
use std::fs;
use std::path::Path;

/// System folders. A writable folder must not contain any of them.
const NEVER_WRITABLE: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/sys", "/dev", "/run", "/var", "/boot",
];

/// Fails if the policy opens a path that cannot be opened safely.
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
        .chain(&policy.read_only)
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
            return refuse(
                path,
                "its path contains a link; use the folder that the link points to",
            );
        }
        if !real.is_dir() {
            return refuse(path, "it is not a folder");
        }
        for system in NEVER_WRITABLE.iter().map(Path::new) {
            if system.starts_with(path) {
                return refuse(
                    path,
                    "it contains system folders; choose a folder just for your work",
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
            "it is the whole file system; open only the folders that are needed",
        ),
        None => Ok(()),
    }
}
