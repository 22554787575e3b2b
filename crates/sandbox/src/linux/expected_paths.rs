//! Paths that the guard verifies before it starts the command.
//!
//! Bubblewrap mounts by path. Another command in the same workspace could replace a folder on one of these paths by a
//! link just when bubblewrap follows it. So the launcher records the identities of all paths without following links,
//! and the guard compares them.

use super::view::{View, Visibility};
use crate::LaunchError;
use crate::plan::ExpectedPath;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::path::Path;

/// Records the identities of all mounted paths in the writable folders.
pub(crate) fn record(view: &View) -> Result<Vec<ExpectedPath>, LaunchError> {
    let roots: Vec<&Path> = view
        .paths(Visibility::Write)
        .map(|path| path.as_path())
        .collect();
    let in_reach = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let mounted = view.items.iter().filter(|(path, _)| in_reach(path));
    let record = |(path, visibility): (&std::path::PathBuf, &Visibility)| {
        let identity = identity(path).map_err(|error| LaunchError::Policy {
            path: path.clone(),
            problem: format!("it changed while a command was starting ({error}); try again"),
        })?;
        let is_hidden = matches!(
            visibility,
            Visibility::HiddenFolder | Visibility::HiddenFile
        );
        Ok(ExpectedPath {
            path: path.clone(),
            identity: (!is_hidden).then_some(identity),
            is_read_only: is_hidden || *visibility == Visibility::Protected,
        })
    };
    mounted.map(record).collect()
}

fn identity(path: &Path) -> rustix::io::Result<(u64, u64)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let stat = rustix::fs::fstat(&handle)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Checks that all paths are as expected. The error names one that is not.
pub(crate) fn verify(expected: &[ExpectedPath]) -> Result<(), String> {
    for entry in expected {
        let explain = |problem: &str| format!("`{}` {problem}", entry.path.display());
        let found = identity(&entry.path).map_err(|error| explain(&error.to_string()))?;
        if entry.identity.is_some_and(|expected| expected != found) {
            return Err(explain("was replaced while the command was starting"));
        }
        let is_read_only = rustix::fs::statvfs(&entry.path)
            .is_ok_and(|stat| stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
        if entry.is_read_only && !is_read_only {
            return Err(explain("is not read-only"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_or_writable_path_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(folder.path()).unwrap();
        let path = real.join("file");
        std::fs::create_dir(&path).unwrap();
        let expected = |is_read_only| {
            let identity = Some(identity(&path).unwrap());
            vec![ExpectedPath {
                path: path.clone(),
                identity,
                is_read_only,
            }]
        };
        let open = expected(false);
        assert_eq!(verify(&open), Ok(()));
        assert!(verify(&expected(true)).is_err());
        std::fs::rename(&path, real.join("moved")).unwrap();
        assert!(verify(&open).is_err());
        std::os::unix::fs::symlink(real.join("moved"), &path).unwrap();
        assert!(verify(&open).is_err());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(verify(&open).is_err());
    }
}
