//! What a command finds in `/proc` besides its own processes.
//!
//! For most commands all of it is mounted read-only: files there that are root's would be root's to write even without
//! capabilities. A browser maps the users of its own namespaces by writing to the files of its processes, so for a browser
//! the mount can be written, and everything that belongs to no process is covered one by one.

use rustix::fs::StatVfsMountFlags;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The guard reads there how much memory shared segments hold; nothing in it can be written.
const READ_BY_GUARD: &str = "sysvipc";

/// What has to be covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exposed {
    Directory(PathBuf),
    File(PathBuf),
}

/// What in `/proc` belongs to no process and could be written: the same inside and outside of a sandbox.
pub(crate) fn exposed() -> std::io::Result<Vec<Exposed>> {
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
            exposed.push(Exposed::Directory(entry.path()));
        } else if metadata.is_file() && metadata.permissions().mode() & 0o222 != 0 {
            exposed.push(Exposed::File(entry.path()));
        }
    }
    Ok(exposed)
}

/// Whether all of it is covered; if not, what is not.
pub(crate) fn verify() -> Result<(), String> {
    let exposed = exposed().map_err(|error| format!("look at `/proc`: {error}"))?;
    let is_open = |path: &Path| {
        rustix::fs::statvfs(path).map_or(true, |numbers| {
            !numbers.f_flag.contains(StatVfsMountFlags::RDONLY)
        })
    };
    let open = exposed.iter().find_map(|exposed| match exposed {
        Exposed::Directory(path) | Exposed::File(path) => is_open(path).then_some(path),
    });
    match open {
        None => Ok(()),
        Some(path) => Err(format!("`{}` is not closed to writing", path.display())),
    }
}
