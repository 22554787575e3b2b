//! A file's content replaced in one step: written beside it under another name, then renamed over it.
//!
//! Whoever reads meanwhile sees the old content or the new. The old file itself is not written to, so another hard
//! link to it keeps the old content.

use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

/// How often a name that is taken is drawn again.
const ATTEMPTS: usize = 8;

/// Puts a file with this content at `name`; a file that is there gives its mode to the new one.
pub(crate) fn replace(folder: &Dir, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let mode = match folder.symlink_metadata(name) {
        Ok(metadata) => Some(metadata.permissions().mode() & 0o777),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let (fresh, mut file) = create_beside(folder)?;
    let written = (|| {
        file.write_all(content)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.sync_all()?;
        folder.rename(&fresh, folder, name)
    })();
    if written.is_err() {
        // The reason to report is why it was not written.
        let _ = folder.remove_file(&fresh);
    }
    written
}

/// A number that another process does not come up with at the same time.
pub(crate) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn create_beside(folder: &Dir) -> io::Result<(String, cap_std::fs::File)> {
    let options = OpenOptions::new().write(true).create_new(true).clone();
    let mut attempts = 0;
    loop {
        let name = format!(".{:016x}.lango-new", random_number());
        match folder.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS => {
                attempts += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
