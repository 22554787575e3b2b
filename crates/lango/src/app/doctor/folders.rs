//! The folder checks of `lango doctor`: writes a file to every folder that lango writes to, and removes it.

use super::{CheckStatus, Finding};
use crate::app::App;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Examines lango's own folders. A folder that does not exist yet is not created.
pub(super) fn examine(app: &App) -> Vec<Finding> {
    let paths = &app.loaded.paths;
    let config = paths.user_file.parent().unwrap_or(Path::new("."));
    let trash = paths.trash();
    let folders = [
        ("data folder", paths.data.as_path(), CheckStatus::Failed),
        ("state folder", paths.state.as_path(), CheckStatus::Failed),
        ("trash", trash.as_path(), CheckStatus::Failed),
        // Only `lango setup` and tools for skills write here, so it may be read-only on purpose.
        ("config folder", config, CheckStatus::Warning),
    ];
    let mut findings: Vec<Finding> = Vec::new();
    let mut seen: Vec<&Path> = Vec::new();
    for (name, path, status) in folders {
        let is_optional = path == config || path == trash;
        if seen.contains(&path) || (is_optional && path != paths.data && !path.exists()) {
            continue;
        }
        seen.push(path);
        findings.push(examine_folder(name, path, status));
    }
    findings
}

/// Tries to write to a folder; `status` is the result if that fails.
fn examine_folder(name: &'static str, path: &Path, status: CheckStatus) -> Finding {
    let shown = path.display();
    let (problem, passed) = if path.symlink_metadata().is_ok() {
        (probe(path).err(), shown.to_string())
    } else {
        let passed = format!("{shown} (does not exist yet)");
        (check_creatable(path).err(), passed)
    };
    let (status, detail) = match problem {
        None => (CheckStatus::Passed, passed),
        Some(error) => (
            status,
            format!(
                "{shown} cannot be written: {error}\nnext: make it writable, free some disk space, or set LANGO_HOME to another folder"
            ),
        ),
    };
    Finding {
        name,
        status,
        detail,
    }
}

/// Writes to a new file of a folder. The file is removed before it is written, so that nothing stays behind if the
/// process ends.
pub(super) fn probe(folder: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    let name = format!(".lango-doctor-{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, &name, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?;
    let mut file = File::from(file);
    file.write_all(b"written by `lango doctor`\n")?;
    file.sync_all()
}

/// Checks that a folder can be created in the nearest one that exists.
fn check_creatable(path: &Path) -> io::Result<()> {
    let existing = path.ancestors().find(|above| above.exists());
    let existing = existing.unwrap_or(Path::new("/"));
    if !existing.is_dir() {
        let message = format!("`{}` is not a folder", existing.display());
        return Err(io::Error::other(message));
    }
    // The permissions alone do not tell: nobody can create a folder in `/proc`.
    probe(existing).map_err(|_| {
        let message = format!("it cannot be created in `{}`", existing.display());
        io::Error::other(message)
    })
}
