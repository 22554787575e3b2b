//! The entries of `/proc` that do not belong to a process.
//!
//! For most commands all of `/proc` is mounted read-only: otherwise root could write files there that it owns, even
//! without capabilities. A browser must write to the files of its processes, to map the users of its namespaces. So for
//! a browser the mount is writable, and all entries that do not belong to a process are covered one by one.

use rustix::fs::StatVfsMountFlags;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An entry that stays uncovered: the guard reads the size of shared memory segments there, and nothing in it is
/// writable.
const READ_BY_GUARD: &str = "sysvipc";

/// An entry that must be covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExposedEntry {
    Directory(PathBuf),
    File(PathBuf),
}

/// Lists the entries of `/proc` that belong to no process and may be writable. The list is the same inside and outside
/// of a sandbox.
pub(crate) fn exposed_entries() -> std::io::Result<Vec<ExposedEntry>> {
    let mut exposed = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let name = entry.file_name();
        let is_process = name.as_bytes().iter().all(u8::is_ascii_digit);
        if is_process || name == READ_BY_GUARD {
            continue;
        }
        let Ok(metadata) = entry.path().symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            exposed.push(ExposedEntry::Directory(entry.path()));
        } else if metadata.is_file() && metadata.permissions().mode() & 0o222 != 0 {
            exposed.push(ExposedEntry::File(entry.path()));
        }
    }
    Ok(exposed)
}

/// Checks that all entries from [`exposed_entries`] are covered. The error names one that is not.
pub(crate) fn verify() -> Result<(), String> {
    let exposed = exposed_entries().map_err(|error| format!("read `/proc`: {error}"))?;
    let is_open = |path: &Path| {
        rustix::fs::statvfs(path).map_or(true, |numbers| {
            !numbers.f_flag.contains(StatVfsMountFlags::RDONLY)
        })
    };
    let open = exposed.iter().find_map(|exposed| match exposed {
        ExposedEntry::Directory(path) | ExposedEntry::File(path) => is_open(path).then_some(path),
    });
    match open {
        None => Ok(()),
        Some(path) => Err(format!("`{}` is not read-only", path.display())),
    }
}
